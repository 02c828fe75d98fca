#include "driver/driver.h"

#include <dlfcn.h>
#include <cstdlib>
#include <cstring>
#include <plait/fork.hpp>
#include <string>

namespace plait::cuda::driver {

Functions api{};

namespace {

constexpr int kOldestDriver = 13000;  // images are made by nvcc of that release

ForkMutex &lock() {
  static auto *mutex = new ForkMutex();  // used until the process ends
  return *mutex;
}
uint32_t started;  // the `forks.number` of the process that started the driver, or 0

struct Entry {
  void *to;
  const char *exported;
};

// Fills `api`; returns the name of the first function that is missing, or NULL.
const char *look_up(void *library) {
  const Entry entries[] = {
#define PLAIT_CUDA_FUNCTION(name, exported, parameters) {&api.name, exported},
#include "driver/functions.h"
#undef PLAIT_CUDA_FUNCTION
  };
  for (const Entry &each : entries) {
    void *function = dlsym(library, each.exported);
    if (!function) return each.exported;
    memcpy(each.to, &function, sizeof function);
  }
  return nullptr;
}

std::string version_text(int version) {
  return std::to_string(version / 1000) + "." + std::to_string(version % 1000 / 10);
}

plait_status start(plait_thread *thread) {
  const plait_runtime *rt = thread->runtime;
  const std::string path =
      emulated() ? std::string(folder()) + "../emulation/libcuda.so.1" : "libcuda.so.1";
  void *library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (!library)
    return rt->raise(thread, PLAIT_ERROR, "cuda",
                     "there is no NVIDIA driver on this machine: %s. The CPU needs none; "
                     "PLAIT_CUDA_EMULATION=1 in the environment chooses an emulation for tests",
                     dlerror());
  int version = 0;
  void *ask = dlsym(library, "cuDriverGetVersion");
  if (ask && reinterpret_cast<Result (*)(int *)>(ask)(&version) == kSuccess &&
      version < kOldestDriver)
    return rt->raise(thread, PLAIT_ERROR, "cuda",
                     "the NVIDIA driver of this machine serves CUDA %s; at least %s is required",
                     version_text(version).c_str(), version_text(kOldestDriver).c_str());
  if (const char *missing = look_up(library))
    return rt->raise(thread, PLAIT_ERROR, "cuda", "the driver at %s has no function %s",
                     path.c_str(), missing);
  const Result result = api.init(0);
  if (result == kNoDevice)
    return rt->raise(thread, PLAIT_ERROR, "cuda",
                     "the NVIDIA driver finds no device (CUDA_VISIBLE_DEVICES is %s)",
                     getenv("CUDA_VISIBLE_DEVICES") ? getenv("CUDA_VISIBLE_DEVICES") : "not set");
  if (result != kSuccess) return fail(thread, result, "starting the driver");
  return PLAIT_OK;
}

}  // namespace

bool emulated() {
  const char *choice = getenv("PLAIT_CUDA_EMULATION");
  return choice && *choice && strcmp(choice, "0") != 0;
}

const char *folder() {
  static const auto *text = [] {
    Dl_info info;
    auto *result = new std::string(dladdr(&api, &info) ? info.dli_fname : "");
    result->resize(result->rfind('/') + 1);
    return result;
  }();
  return text->c_str();
}

plait_status open(plait_thread *thread) {
  const uint32_t own = forks.number.load(std::memory_order_relaxed);
  if (__atomic_load_n(&started, __ATOMIC_ACQUIRE) == own) return PLAIT_OK;
  const std::lock_guard<ForkMutex> hold(lock());
  if (started == own) return PLAIT_OK;
  if (started)
    return thread->runtime->raise(
        thread, PLAIT_ERROR, "cuda",
        "the NVIDIA driver was started before this process was forked (asking for the number of "
        "devices starts it), and a child cannot use it; start the process with the method "
        "\"spawn\" or \"forkserver\"");
  const plait_status status = start(thread);
  if (status == PLAIT_OK) __atomic_store_n(&started, own, __ATOMIC_RELEASE);
  return status;
}

plait_status fail(plait_thread *thread, Result result, const char *what) {
  const char *text = nullptr;
  if (!api.error_text || api.error_text(result, &text) != kSuccess || !text) text = "unknown error";
  const plait_status code = result == kOutOfMemory ? PLAIT_MEMORY_ERROR : PLAIT_ERROR;
  return thread->runtime->raise(thread, code, "cuda", "%s: %s (error %d of the driver)", what, text,
                                int(result));
}

}  // namespace plait::cuda::driver

// Tells NVIDIA's tools to begin or to end; the driver's result. Only after a device was used.
extern "C" __attribute__((visibility("default"))) int plait_cuda_profiler(int on) {
  using namespace plait::cuda::driver;
  return int(on ? api.profiler_start() : api.profiler_stop());
}
