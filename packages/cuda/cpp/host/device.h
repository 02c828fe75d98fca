// The devices of this process: contexts, streams and facts.
#pragma once
#include <plait/abi.h>

#include "driver/driver.h"
#include "host/launch.h"

namespace plait::cuda {

extern const plait_runtime *runtime;

struct DeviceState {
  driver::Context context = nullptr;
  Facts facts{};
  FaultRecord *fault = nullptr;          // memory of the host that the device writes
  FaultRecord *fault_address = nullptr;  // its address on the device
  std::atomic<int> lost{0};              // result of the driver after which nothing works
};

// The state of a device, started at its first use; NULL after an error.
DeviceState *state_of(plait_thread *thread, int device);
// The same of a device that was used before.
DeviceState &used_state(int device);

// Makes the device current on this thread; part of every call of the driver.
plait_status use(plait_thread *thread, DLDevice device);

// Number of devices; 0 without a driver.
int32_t device_count(void *);

// Remembers a fatal result, and sets the error.
plait_status fail_on(plait_thread *thread, DLDevice device, driver::Result result,
                     const char *what);

#define PLAIT_CUDA(thread, device, what, call)                                     \
  do {                                                                             \
    const ::plait::cuda::driver::Result result_ = ::plait::cuda::driver::api.call; \
    if (PLAIT_UNLIKELY(result_ != ::plait::cuda::driver::kSuccess))                \
      return ::plait::cuda::fail_on(thread, device, result_, what);                \
  } while (0)

inline driver::Stream native(const plait_stream *s) {
  return s ? static_cast<driver::Stream>(s->native) : nullptr;
}

extern const plait_device device_table;

}  // namespace plait::cuda
