// The role "device": contexts, streams, events, copies, and errors that are found late.
#include "host/device.h"

#include <unistd.h>

#include <mutex>

namespace plait::cuda {

const plait_runtime *runtime;

namespace {

using driver::api;

DeviceState states[kMaxDevices];
std::atomic<DeviceState *> used[kMaxDevices];
std::mutex &lock() {
  static auto *mutex = new std::mutex();  // used until the process ends
  return *mutex;
}
thread_local int current = -1;  // device whose context this thread has

int attribute(int device, int which) {
  int value = 0;
  api.device_attribute(&value, which, device);
  return value;
}

plait_status start_device(plait_thread *thread, int device, DeviceState *s) {
  driver::Device handle;
  PLAIT_DRIVER(thread, "opening a device", device_get(&handle, device));
  PLAIT_DRIVER(thread, "creating the context of a device", primary_retain(&s->context, handle));
  PLAIT_DRIVER(thread, "choosing a device", context_set(s->context));
  s->facts = {attribute(handle, driver::kUnits),
              attribute(handle, driver::kMaxThreadsPerUnit),
              attribute(handle, driver::kMajor),
              attribute(handle, driver::kMinor),
              attribute(handle, driver::kMaxSharedMemoryOptIn),
              attribute(handle, driver::kL2Bytes)};
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

// Results after which the context of a device does nothing more.
bool is_fatal(driver::Result r) {
  return r == driver::kIllegalAddress || r == driver::kLaunchTimeout || r == driver::kAssert ||
         (r >= driver::kHardwareStackError && r <= driver::kLaunchFailed) ||
         r == driver::kEccUncorrectable || r == driver::kUnknown || r == driver::kNotInitialized ||
         r == driver::kDeinitialized;
}

}  // namespace

DeviceState &used_state(int device) { return states[device]; }

DeviceState *state_of(plait_thread *thread, int device) {
  if (PLAIT_LIKELY(used[device].load(std::memory_order_acquire) != nullptr)) return &states[device];
  if (driver::open(thread) != PLAIT_OK) return nullptr;
  const std::lock_guard<std::mutex> hold(lock());
  if (used[device].load(std::memory_order_relaxed)) return &states[device];
  if (start_device(thread, device, &states[device]) != PLAIT_OK) return nullptr;
  current = device;
  used[device].store(&states[device], std::memory_order_release);
  return &states[device];
}

plait_status use(plait_thread *thread, DLDevice device) {
  if (PLAIT_LIKELY(current == device.device_id)) return PLAIT_OK;
  const DeviceState *s = state_of(thread, device.device_id);
  if (!s) return thread->error ? thread->error->code : PLAIT_ERROR;
  PLAIT_DRIVER(thread, "choosing a device", context_set(s->context));
  current = device.device_id;
  return PLAIT_OK;
}

plait_status fail_on(plait_thread *thread, DLDevice device, driver::Result result,
                     const char *what) {
  if (is_fatal(result)) used_state(device.device_id).lost.store(int(result));
  return driver::fail(thread, result, what);
}

// The number of devices without starting them: it is asked at every call, and in children.
int32_t device_count(void *) {
  static std::atomic<int32_t> number{-1};
  int32_t n = number.load(std::memory_order_relaxed);
  if (PLAIT_LIKELY(n >= 0)) return n;
  plait_thread *thread = runtime->thread();
  int count = 0;
  if (driver::open(thread) != PLAIT_OK) {
    runtime->clear(thread);
  } else if (api.device_count(&count) != driver::kSuccess) {
    count = 0;
  }
  n = count < kMaxDevices ? count : kMaxDevices;
  number.store(n, std::memory_order_relaxed);
  return n;
}

namespace {

plait_status start(void *, plait_thread *thread) { return driver::open(thread); }

plait_status copy(void *, plait_thread *thread, void *to, DLDevice there, const void *from,
                  DLDevice here, uint64_t nbytes, plait_stream *s, uint64_t flags) {
  if (!nbytes) return PLAIT_OK;
  const bool to_host = there.device_type == kDLCPU, from_host = here.device_type == kDLCPU;
  const DLDevice device = from_host ? there : here;
  PLAIT_TRY(use(thread, device));
  const driver::Stream stream = native(s);
  const auto target = driver::Address(to), source = driver::Address(from);
  if (from_host) {
    PLAIT_CUDA(thread, device, "copying to the device",
               copy_to_device(target, from, nbytes, stream));
  } else if (to_host) {
    PLAIT_CUDA(thread, device, "copying from the device", copy_to_host(to, source, nbytes, stream));
  } else if (here.device_id == there.device_id) {
    PLAIT_CUDA(thread, device, "copying on the device",
               copy_on_device(target, source, nbytes, stream));
  } else {
    DeviceState *other = state_of(thread, there.device_id);
    if (!other) return thread->error ? thread->error->code : PLAIT_ERROR;
    PLAIT_TRY(use(thread, here));
    PLAIT_CUDA(thread, device, "copying between devices",
               copy_to_peer(target, other->context, source, used_state(here.device_id).context,
                            nbytes, stream));
  }
  if ((to_host || from_host) && !(flags & PLAIT_COPY_ASYNC))
    PLAIT_CUDA(thread, device, "waiting for a copy", stream_synchronize(stream));
  return PLAIT_OK;
}

plait_status synchronize(void *, plait_thread *thread, DLDevice device) {
  PLAIT_TRY(use(thread, device));
  PLAIT_CUDA(thread, device, "waiting for the device", context_synchronize());
  return PLAIT_OK;
}

plait_status stream_synchronize(void *, plait_thread *thread, DLDevice device, plait_stream *s) {
  PLAIT_TRY(use(thread, device));
  PLAIT_CUDA(thread, device, "waiting for a stream", stream_synchronize(native(s)));
  return PLAIT_OK;
}

plait_status stream_new(void *, plait_thread *thread, plait_stream *s) {
  PLAIT_TRY(use(thread, s->device));
  driver::Stream stream;
  PLAIT_CUDA(thread, s->device, "creating a stream",
             stream_create(&stream, driver::kStreamNonBlocking, s->priority));
  s->native = stream;
  return PLAIT_OK;
}
void stream_free(void *, plait_stream *s) {
  plait_thread *thread = runtime->thread();
  if (use(thread, s->device) != PLAIT_OK) return runtime->clear(thread);
  api.stream_destroy(native(s));
}
plait_status query(plait_thread *thread, DLDevice device, driver::Result result, int32_t *done) {
  *done = result == driver::kSuccess;
  if (result == driver::kSuccess || result == driver::kNotReady) return PLAIT_OK;
  return fail_on(thread, device, result, "asking for the state of work");
}
plait_status stream_query(void *, plait_thread *thread, DLDevice device, plait_stream *s,
                          int32_t *done) {
  PLAIT_TRY(use(thread, device));
  return query(thread, device, api.stream_query(native(s)), done);
}

driver::Event event_of(const plait_device_event *e) {
  return static_cast<driver::Event>(e->native);
}

plait_status event_new(void *, plait_thread *thread, plait_device_event *e) {
  PLAIT_TRY(use(thread, e->device));
  unsigned flags = e->flags & PLAIT_EVENT_TIMED ? 0u : unsigned(driver::kEventNoTiming);
  if (e->flags & PLAIT_EVENT_SHARED) flags |= driver::kEventInterprocess;
  driver::Event event;
  PLAIT_CUDA(thread, e->device, "creating an event", event_create(&event, flags));
  e->native = event;
  return PLAIT_OK;
}
void event_free(void *, plait_device_event *e) {
  plait_thread *thread = runtime->thread();
  if (use(thread, e->device) != PLAIT_OK) return runtime->clear(thread);
  api.event_destroy(event_of(e));
}
plait_status event_record(void *, plait_thread *thread, plait_device_event *e, plait_stream *s) {
  PLAIT_TRY(use(thread, e->device));
  PLAIT_CUDA(thread, e->device, "recording an event", event_record(event_of(e), native(s)));
  return PLAIT_OK;
}
plait_status event_query(void *, plait_thread *thread, plait_device_event *e, int32_t *done) {
  PLAIT_TRY(use(thread, e->device));
  return query(thread, e->device, api.event_query(event_of(e)), done);
}
plait_status event_wait(void *, plait_thread *thread, plait_device_event *e) {
  PLAIT_TRY(use(thread, e->device));
  PLAIT_CUDA(thread, e->device, "waiting for an event", event_synchronize(event_of(e)));
  return PLAIT_OK;
}
plait_status stream_wait(void *, plait_thread *thread, DLDevice device, plait_stream *s,
                         plait_device_event *e) {
  PLAIT_TRY(use(thread, device));
  PLAIT_CUDA(thread, device, "waiting for an event in a stream",
             stream_wait(native(s), event_of(e), 0));
  return PLAIT_OK;
}
plait_status event_elapsed(void *, plait_thread *thread, plait_device_event *from,
                           plait_device_event *to, double *milliseconds) {
  PLAIT_TRY(use(thread, from->device));
  float time = 0;
  PLAIT_CUDA(thread, from->device, "reading the time between events",
             event_elapsed(&time, event_of(from), event_of(to)));
  *milliseconds = double(time);
  return PLAIT_OK;
}

plait_status pinned_alloc(void *, plait_thread *thread, uint64_t nbytes, void **data) {
  const DLDevice device{kDLCUDA, current >= 0 ? current : 0};
  PLAIT_TRY(use(thread, device));
  PLAIT_CUDA(thread, device, "pinning memory",
             pinned_alloc(data, nbytes, driver::kPinnedPortable | driver::kPinnedMapped));
  return PLAIT_OK;
}
void pinned_free(void *, void *data, uint64_t) { api.pinned_free(data); }

// What a kernel reported, or what the driver found.
int32_t take_error(void *, DLDevice device, plait_device_error *out) {
  if (!used[device.device_id].load(std::memory_order_acquire)) return 0;
  DeviceState &s = states[device.device_id];
  const int lost = s.lost.load(std::memory_order_relaxed);
  FaultRecord *r = s.fault;
  const uint32_t code = __atomic_load_n(&r->code, __ATOMIC_ACQUIRE);
  if (PLAIT_LIKELY(!lost && !code)) return 0;
  plait_device_error e{};
  e.size = sizeof e;
  if (code) {
    e.code = code == kIndexFault ? PLAIT_INDEX_ERROR : PLAIT_VALUE_ERROR;
    e.launch = r->launch;
    if (code == kIndexFault)
      snprintf(e.text, sizeof e.text, "index %.0f is out of bounds: it must be in [%.0f, %.0f]",
               r->value, r->low, r->high - 1);
    else
      snprintf(e.text, sizeof e.text, "elements must be in [%g, %g]; got %g", r->low, r->high,
               r->value);
    __atomic_store_n(&r->code, 0u, __ATOMIC_RELAXED);
    __atomic_store_n(&r->claimed, 0u, __ATOMIC_RELEASE);
  } else {
    const char *text = "unknown error";
    api.error_text(driver::Result(lost), &text);
    e.code = PLAIT_ERROR, e.fatal = 1;
    snprintf(e.text, sizeof e.text, "the device failed: %s (error %d of the driver)", text, lost);
  }
  const uint64_t size = out->size < sizeof e ? out->size : sizeof e;
  memcpy(out, &e, size);
  out->size = size;
  return 1;
}

plait_status properties(void *, plait_thread *thread, DLDevice device,
                        plait_device_properties *out) {
  const DeviceState *s = state_of(thread, device.device_id);
  if (!s) return thread->error ? thread->error->code : PLAIT_ERROR;
  plait_device_properties p{};
  p.size = out->size < sizeof p ? out->size : sizeof p;
  size_t total = 0;
  PLAIT_CUDA(thread, device, "asking for properties", device_memory(&total, device.device_id));
  p.memory = total;
  p.shared_memory = uint64_t(s->facts.shared_memory);
  p.major = uint32_t(s->facts.major), p.minor = uint32_t(s->facts.minor);
  p.units = uint32_t(s->facts.units), p.threads = uint32_t(s->facts.threads_per_unit);
  if (attribute(device.device_id, driver::kIntegrated)) p.flags |= PLAIT_DEVICE_UNIFIED;
  driver::Uuid uuid{};
  PLAIT_CUDA(thread, device, "asking for properties",
             device_name(p.name, int(sizeof p.name), device.device_id));
  PLAIT_CUDA(thread, device, "asking for properties", device_uuid(&uuid, device.device_id));
  memcpy(p.uuid, uuid.bytes, sizeof p.uuid);
  memcpy(out, &p, p.size);
  return PLAIT_OK;
}

plait_status priorities(void *, plait_thread *thread, DLDevice device, int32_t *lowest,
                        int32_t *highest) {
  PLAIT_TRY(use(thread, device));
  PLAIT_CUDA(thread, device, "asking for priorities", stream_priorities(lowest, highest));
  return PLAIT_OK;
}

plait_status memory_alloc(void *, plait_thread *thread, DLDevice device, uint64_t nbytes,
                          void **data) {
  PLAIT_TRY(use(thread, device));
  driver::Address address = 0;
  const driver::Result result = api.memory_alloc(&address, nbytes);
  if (result == driver::kOutOfMemory) return PLAIT_MEMORY_ERROR;
  if (result != driver::kSuccess) return fail_on(thread, device, result, "allocating memory");
  *data = reinterpret_cast<void *>(address);
  return PLAIT_OK;
}
void memory_free(void *, DLDevice device, void *data, uint64_t) {
  plait_thread *thread = runtime->thread();
  if (use(thread, device) != PLAIT_OK) return runtime->clear(thread);
  api.memory_free(driver::Address(data));
}
plait_status memory_info(void *, plait_thread *thread, DLDevice device, uint64_t *free_bytes,
                         uint64_t *total_bytes) {
  PLAIT_TRY(use(thread, device));
  size_t free = 0, total = 0;
  PLAIT_CUDA(thread, device, "asking for free memory", memory_info(&free, &total));
  *free_bytes = free, *total_bytes = total;
  return PLAIT_OK;
}

}  // namespace

const plait_device device_table = {PLAIT_HEADER(plait_device),
                                   "cuda",
                                   nullptr,
                                   0,
                                   device_count,
                                   copy,
                                   synchronize,
                                   stream_synchronize,
                                   stream_new,
                                   stream_free,
                                   stream_query,
                                   event_new,
                                   event_free,
                                   event_record,
                                   event_query,
                                   event_wait,
                                   stream_wait,
                                   event_elapsed,
                                   pinned_alloc,
                                   pinned_free,
                                   take_error,
                                   nullptr,
                                   nullptr,
                                   nullptr,
                                   start,
                                   properties,
                                   priorities,
                                   memory_alloc,
                                   memory_free,
                                   memory_info,
                                   nullptr,
                                   nullptr,
                                   nullptr,
                                   nullptr,
                                   nullptr,
                                   nullptr,
                                   nullptr,
                                   nullptr,
                                   nullptr};

}  // namespace plait::cuda
