// The driver's functions, opened when the device is first used.
#pragma once
#include <plait/abi.h>

#include "driver/types.h"

namespace plait::cuda::driver {

struct Functions {
#define PLAIT_CUDA_FUNCTION(name, exported, parameters) Result(*name) parameters;
#include "driver/functions.h"
#undef PLAIT_CUDA_FUNCTION
};

// Opens the driver and starts it; the first call of a process does it, later ones give its result
// until one succeeded. The library is libcuda.so.1, or with PLAIT_CUDA_EMULATION=1 in the
// environment the emulation beside this library.
plait_status open(plait_thread *thread);

// The functions; only after `open` succeeded.
extern Functions api;

// Whether the emulation is chosen.
bool emulated();

// The folder of this library, with a slash at its end.
const char *folder();

// Sets the thread's error from a result of the driver: "cuda: <what>: <the driver's text>".
plait_status fail(plait_thread *thread, Result, const char *what);

#define PLAIT_DRIVER(thread, what, call)                                           \
  do {                                                                             \
    const ::plait::cuda::driver::Result result_ = ::plait::cuda::driver::api.call; \
    if (__builtin_expect(result_ != ::plait::cuda::driver::kSuccess, 0))           \
      return ::plait::cuda::driver::fail(thread, result_, what);                   \
  } while (0)

}  // namespace plait::cuda::driver
