// The role "device": contexts, what a device is, and the table of its functions.
#include "host/device.h"

namespace plait::cuda {

const plait_runtime *runtime;

namespace {

using driver::api;

DeviceState states[kMaxDevices];
std::atomic<DeviceState *> used[kMaxDevices];
std::atomic<bool> is_stopped;
ForkMutex &lock() {
  static auto *mutex = new ForkMutex();  // used until the process ends
  return *mutex;
}

int attribute(int device, int which) {
  int value = 0;
  api.device_attribute(&value, which, device);
  return value;
}

plait_status new_fault_record(plait_thread *thread, DeviceState *s) {
  void *record;
  driver::Address address;
  PLAIT_DRIVER(
      thread, "pinning memory",
      pinned_alloc(&record, sizeof(FaultRecord), driver::kPinnedPortable | driver::kPinnedMapped));
  PLAIT_DRIVER(thread, "pinning memory", pinned_address(&address, record, 0));
  memset(record, 0, sizeof(FaultRecord));
  s->fault = static_cast<FaultRecord *>(record);
  s->fault_address = reinterpret_cast<FaultRecord *>(address);
  return PLAIT_OK;
}

plait_status start_device(plait_thread *thread, int device, DeviceState *s) {
  driver::Device handle;
  PLAIT_DRIVER(thread, "opening a device", device_get(&handle, device));
  if (!s->context)  // else an earlier start failed behind this
    PLAIT_DRIVER(thread, "creating the context of a device", primary_retain(&s->context, handle));
  PLAIT_DRIVER(thread, "choosing a device", context_set(s->context));
  s->facts = {attribute(handle, driver::kUnits),
              attribute(handle, driver::kMaxThreadsPerUnit),
              attribute(handle, driver::kMajor),
              attribute(handle, driver::kMinor),
              attribute(handle, driver::kMaxSharedMemoryOptIn),
              attribute(handle, driver::kL2Bytes)};
  PLAIT_TRY(new_fault_record(thread, s));
  s->process = forks.number.load(std::memory_order_relaxed);
  return PLAIT_OK;
}

// Results after which the context of a device does nothing more.
bool is_fatal(driver::Result r) {
  return r == driver::kIllegalAddress || r == driver::kLaunchTimeout || r == driver::kAssert ||
         (r >= driver::kHardwareStackError && r <= driver::kLaunchFailed) ||
         r == driver::kEccUncorrectable || r == driver::kUnknown || r == driver::kNotInitialized ||
         r == driver::kDeinitialized;
}

bool remember_if_fatal(DLDevice device, driver::Result result) {
  if (!is_fatal(result)) return false;
  used_state(device.device_id).lost.store(int(result));
  return true;
}

plait_status status_of(const plait_thread *thread) {
  return thread->error ? thread->error->code : PLAIT_ERROR;
}

}  // namespace

DeviceState &used_state(int device) { return states[device]; }

DeviceState *state_if_used(int device) {
  DeviceState *s = used[device].load(std::memory_order_acquire);
  return s && s->process == forks.number.load(std::memory_order_relaxed) ? s : nullptr;
}

DeviceState *state_of(plait_thread *thread, int device) {
  if (DeviceState *s = state_if_used(device); PLAIT_LIKELY(s != nullptr)) return s;
  if (is_stopped.load()) {
    runtime->raise(thread, PLAIT_ERROR, "cuda", "the process ends, and its devices were stopped");
    return nullptr;
  }
  if (driver::open(thread) != PLAIT_OK) return nullptr;
  const std::lock_guard<ForkMutex> hold(lock());
  if (DeviceState *s = state_if_used(device)) return s;
  if (start_device(thread, device, &states[device]) != PLAIT_OK) return nullptr;
  used[device].store(&states[device], std::memory_order_release);
  return &states[device];
}

plait_status use(plait_thread *thread, DLDevice device) {
  const DeviceState *s = state_of(thread, device.device_id);
  if (PLAIT_UNLIKELY(!s)) return status_of(thread);
  driver::Context now = nullptr;
  if (PLAIT_LIKELY(api.context_get(&now) == driver::kSuccess && now == s->context)) return PLAIT_OK;
  PLAIT_DRIVER(thread, "choosing a device", context_set(s->context));
  return PLAIT_OK;
}

bool use_quietly(DLDevice device) {
  const DeviceState *s = state_if_used(device.device_id);
  if (!s) return false;
  driver::Context now = nullptr;
  if (api.context_get(&now) == driver::kSuccess && now == s->context) return true;
  return api.context_set(s->context) == driver::kSuccess;
}

void stop_devices() {
  is_stopped.store(true);
  for (auto &each : used) each.store(nullptr);
}

plait_status fail_on(plait_thread *thread, DLDevice device, driver::Result result,
                     const char *what) {
  remember_if_fatal(device, result);
  return driver::fail(thread, result, what);
}

plait_status settle(plait_thread *thread, DLDevice device, driver::Result result,
                    const char *what) {
  if (PLAIT_LIKELY(result == driver::kSuccess) || remember_if_fatal(device, result))
    return PLAIT_OK;
  return driver::fail(thread, result, what);
}

// The number of devices without starting them: it is asked at every call, and in children.
int32_t device_count(void *) {
  static std::atomic<int32_t> number{-1};
  int32_t n = number.load(std::memory_order_relaxed);
  if (PLAIT_LIKELY(n >= 0)) return n;
  plait_thread *thread = runtime->thread();
  plait_error *before = thread->error;
  thread->error = nullptr;
  int count = 0;
  if (driver::open(thread) != PLAIT_OK || api.device_count(&count) != driver::kSuccess) count = 0;
  runtime->clear(thread);
  thread->error = before;
  n = count < kMaxDevices ? count : kMaxDevices;
  number.store(n, std::memory_order_relaxed);
  return n;
}

namespace {

plait_status start(void *, plait_thread *thread) { return driver::open(thread); }

// Whether another device reads the memory of this one.
bool has_peers(int device) {
  for (int other = 0; other < device_count(nullptr); other++) {
    int can = 0;
    if (other != device && api.can_access_peer(&can, device, other) == driver::kSuccess && can)
      return true;
  }
  return false;
}

plait_status properties(void *, plait_thread *thread, DLDevice device,
                        plait_device_properties *out) {
  const DeviceState *s = state_of(thread, device.device_id);
  if (!s) return status_of(thread);
  plait_device_properties p{};
  p.size = out->size < sizeof p ? out->size : sizeof p;
  size_t total = 0;
  driver::Uuid uuid{};
  PLAIT_CUDA(thread, device, "asking for properties", device_memory(&total, device.device_id));
  PLAIT_CUDA(thread, device, "asking for properties",
             device_name(p.name, int(sizeof p.name), device.device_id));
  PLAIT_CUDA(thread, device, "asking for properties", device_uuid(&uuid, device.device_id));
  p.memory = total;
  p.shared_memory = uint64_t(s->facts.shared_memory);
  p.major = uint32_t(s->facts.major), p.minor = uint32_t(s->facts.minor);
  p.units = uint32_t(s->facts.units), p.threads = uint32_t(s->facts.threads_per_unit);
  if (attribute(device.device_id, driver::kIntegrated)) p.flags |= PLAIT_DEVICE_UNIFIED;
  if (has_peers(device.device_id)) p.flags |= PLAIT_DEVICE_PEERS;
  memcpy(p.uuid, uuid.bytes, sizeof p.uuid);
  memcpy(out, &p, p.size);
  return PLAIT_OK;
}

}  // namespace

const plait_device &device_table() {
  static const plait_device table = [] {
    plait_device t{};
    t.h = PLAIT_HEADER(plait_device);
    t.name = "cuda";
    t.count = device_count;
    t.start = start;
    t.properties = properties;
    add_faults(t);
    add_streams(t);
    add_memory(t);
    add_sharing(t);
    add_capture(t);
    add_activity(t);
    return t;
  }();
  return table;
}

}  // namespace plait::cuda
