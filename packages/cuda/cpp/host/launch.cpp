#include "host/launch.h"

#include <cstdio>
#include <string>

#include "host/activity.h"
#include "host/device.h"

namespace plait::cuda {
namespace {

const char *const kSuffixes[kKinds] = {
    "bool", "u8",  "i8",   "u16", "i16",  "u32",    "i32",      "u64",  "i64",      "f32",
    "f64",  "f16", "bf16", "c64", "c128", "e4m3fn", "e4m3fnuz", "e5m2", "e5m2fnuz", "e8m0fnu"};
const char *const kSizes[] = {"b1", "b2", "b4", "b8", "b16"};

// "cpp/kernels/normalization/softmax.cpp" -> "normalization_softmax"
std::string module_of(const char *file) {
  std::string text(file);
  const size_t folder = text.rfind("kernels/");
  if (folder != std::string::npos) text = text.substr(folder + 8);
  text.resize(text.rfind('.'));
  for (char &each : text)
    if (each == '/') each = '_';
  return text;
}

struct LoadedModule {
  std::string name;
  driver::Module module;
  LoadedModule *next;
};
LoadedModule *modules[kMaxDevices];  // under the lock
ForkMutex &lock() {
  static auto *mutex = new ForkMutex();  // used until the process ends
  return *mutex;
}

// Under the lock: the image of kernels of one file, loaded once on each device.
plait_status module(plait_thread *thread, int device, const std::string &name,
                    driver::Module *out) {
  for (const LoadedModule *each = modules[device]; each; each = each->next)
    if (each->name == name) return *out = each->module, PLAIT_OK;
  const std::string path = std::string(driver::folder()) + "../kernels/" + name + ".fatbin";
  const driver::Result result = driver::api.module_load(out, path.c_str());
  if (result == driver::kNoBinaryForGpu)
    return runtime->raise(thread, PLAIT_ERROR, "cuda",
                          "%s has no code for a device of compute capability %d.%d", path.c_str(),
                          used_state(device).facts.major, used_state(device).facts.minor);
  if (result == driver::kFileNotFound)
    return runtime->raise(thread, PLAIT_ERROR, "cuda",
                          "there is no %s: this plait-cuda was built without kernels; install a "
                          "wheel of it, or build it with PLAIT_CUDA_ARCHITECTURES=%d%d in the "
                          "environment, which needs nvcc",
                          path.c_str(), used_state(device).facts.major,
                          used_state(device).facts.minor);
  if (result != driver::kSuccess) {
    const std::string what = "loading " + path;
    return driver::fail(thread, result, what.c_str());
  }
  modules[device] = new LoadedModule{name, *out, modules[device]};
  return PLAIT_OK;
}

}  // namespace

plait_status DeviceKernel::function(plait_thread *thread, int device, int instance,
                                    driver::Function *out) const {
  std::atomic<driver::Function> &cached = functions_[device][instance];
  if (PLAIT_LIKELY((*out = cached.load(std::memory_order_acquire)) != nullptr)) return PLAIT_OK;
  const bool by_size = strstr(suffixes_, " b1 ") != nullptr;
  const std::string suffix = by_size ? kSizes[instance] : kSuffixes[instance];
  if (!strstr(suffixes_, (" " + suffix + " ").c_str())) return PLAIT_DECLINE;
  const std::lock_guard<ForkMutex> hold(lock());
  driver::Module image;
  PLAIT_TRY(module(thread, device, module_of(file_), &image));
  const std::string name = std::string(name_) + "_" + suffix;
  const driver::Result result = driver::api.module_function(out, image, name.c_str());
  if (result != driver::kSuccess) return driver::fail(thread, result, name.c_str());
  // a block may ask for all shared memory that the device has
  driver::api.function_set(*out, driver::kFunctionDynamicShared,
                           int(used_state(device).facts.shared_memory));
  cached.store(*out, std::memory_order_release);
  return PLAIT_OK;
}

plait_status launch_bytes(const plait_call *c, const DeviceKernel &kernel, int instance,
                          const void *args, Grid grid, int threads, int64_t shared) {
  if (grid.x <= 0 || grid.y <= 0 || grid.z <= 0) return PLAIT_OK;
  if (instance < 0) return PLAIT_DECLINE;
  driver::Function function;
  PLAIT_TRY(use(c->thread, c->device));
  PLAIT_TRY(kernel.function(c->thread, c->device.device_id, instance, &function));
  void *parameters[] = {const_cast<void *>(args)};
  const Activity measure(c->device, stream_of(c), PLAIT_ACTIVITY_KERNEL, kernel.name(), c->launch);
  const driver::Result result = driver::api.launch(
      function, unsigned(grid.x), unsigned(grid.y), unsigned(grid.z), unsigned(threads), 1, 1,
      unsigned(shared), stream_of(c), parameters, nullptr);
  if (PLAIT_UNLIKELY(result != driver::kSuccess))
    return fail_on(c->thread, c->device, result,
                   (std::string("launching ") + kernel.name()).c_str());
  return PLAIT_OK;
}

Fault fault_of(const plait_call *c, int argument) {
  for (int i = 0; argument < 0 && i < c->n_in; i++) {
    const char *name = plait_arg_at(c->op, uint64_t(i))->name;
    for (const char *each : {"index", "indices", "target"})
      if (!strcmp(name, each)) argument = i;
  }
  const char *name = argument < 0 ? nullptr : plait_arg_at(c->op, uint64_t(argument))->name;
  return Fault{used_state(c->device.device_id).fault_address, tagged(c->launch, name)};
}

const Facts &facts(int device) { return used_state(device).facts; }

bool has_setting(uint64_t setting) {
  return (__atomic_load_n(runtime->settings, __ATOMIC_RELAXED) & setting) != 0;
}

driver::Stream stream_of(const plait_call *c) { return native(c->stream); }

DeviceWorkspace::~DeviceWorkspace() {
  if (data_) from_->free(from_->ctx, data_, nbytes_, block_);
}
plait_status DeviceWorkspace::take(const plait_call *c, int64_t nbytes) {
  static const plait_role role = runtime->role("allocator", kDLCUDA);
  if (nbytes <= 0) return PLAIT_OK;
  from_ = PLAIT_ROLE(plait_allocator, role);
  nbytes_ = uint64_t(nbytes);
  const plait_status status =
      from_->alloc(from_->ctx, c->device, nbytes_, c->stream, &data_, &block_);
  if (status == PLAIT_OK) return PLAIT_OK;
  data_ = nullptr;
  if (c->thread->error) return status;
  return Workspace::out_of_memory(c, nbytes_);
}

plait_status fill_bytes(const plait_call *c, void *to, int value, int64_t nbytes) {
  if (nbytes <= 0) return PLAIT_OK;
  PLAIT_TRY(use(c->thread, c->device));
  const Activity measure(c->device, stream_of(c), PLAIT_ACTIVITY_FILL, "fill", c->launch,
                         uint64_t(nbytes));
  PLAIT_CUDA(c->thread, c->device, "filling memory",
             fill_bytes(driver::Address(to), static_cast<unsigned char>(value), size_t(nbytes),
                        stream_of(c)));
  return PLAIT_OK;
}
plait_status copy_bytes(const plait_call *c, void *to, const void *from, int64_t nbytes) {
  if (nbytes <= 0) return PLAIT_OK;
  PLAIT_TRY(use(c->thread, c->device));
  const Activity measure(c->device, stream_of(c), PLAIT_ACTIVITY_COPY, "copy", c->launch,
                         uint64_t(nbytes));
  PLAIT_CUDA(
      c->thread, c->device, "copying memory",
      copy_on_device(driver::Address(to), driver::Address(from), size_t(nbytes), stream_of(c)));
  return PLAIT_OK;
}
plait_status read_bytes(const plait_call *c, void *to, const void *from, int64_t nbytes) {
  PLAIT_TRY(use(c->thread, c->device));
  PLAIT_CUDA(c->thread, c->device, "reading a result",
             copy_to_host(to, driver::Address(from), size_t(nbytes), stream_of(c)));
  PLAIT_CUDA(c->thread, c->device, "waiting for a result", stream_synchronize(stream_of(c)));
  return raise_noted(c->thread, c->device);
}

}  // namespace plait::cuda
