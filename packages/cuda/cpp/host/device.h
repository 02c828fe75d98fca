// The devices of this process: contexts, streams and facts. The table of the role "device" is
// filled by topics, each in a file of its own.
#pragma once
#include <plait/abi.h>

#include <functional>
#include <plait/fork.hpp>

#include "driver/driver.h"
#include "host/launch.h"

namespace plait::cuda {

extern const plait_runtime *runtime;

struct DeviceState {
  driver::Context context = nullptr;
  Facts facts{};
  FaultRecord *fault = nullptr;          // memory of the host that the device writes
  FaultRecord *fault_address = nullptr;  // its address on the device
  std::atomic<uint64_t> reported{0};     // the launch of the last error that a kernel reported
  std::atomic<bool> noted{false};        // there is an error of `note_failure`
  std::atomic<int> lost{0};              // result of the driver after which nothing works
  uint32_t process = 0;                  // `forks.number` of the process that started it
};

// The state of a device, started at its first use; NULL after an error.
DeviceState *state_of(plait_thread *thread, int device);
// The state of a device that was used before.
DeviceState &used_state(int device);
// The state of a device, or NULL if it was not used, or the process ends.
DeviceState *state_if_used(int device);

// Makes the device current on this thread; part of every call of the driver. Other libraries of the
// process may have changed that since the last call.
plait_status use(plait_thread *thread, DLDevice device);
// `use` for functions that cannot report an error; false if there is nothing to call.
bool use_quietly(DLDevice device);

// Number of devices; 0 without a driver.
int32_t device_count(void *);

// The number of a launch together with the name of an argument, which `take_error` takes apart.
uint64_t tagged(uint64_t launch, const char *argument);

// Notes an error that ends work in flight and that no kernel found, as the loss of a process: the
// next wait of the host for the device raises it.
using Raise = std::function<plait_status(plait_thread *)>;
void note_failure(DLDevice device, Raise raise);
// Raises it.
plait_status raise_noted(plait_thread *thread, DLDevice device);

// No function of the driver is called from now on: the process ends.
void stop_devices();

// Remembers a fatal result, and sets the error.
plait_status fail_on(plait_thread *thread, DLDevice device, driver::Result result,
                     const char *what);
// `fail_on` behind a wait, but a fatal result is no error here: the runtime asks `take_error` next,
// and its text names the operators that were in flight.
plait_status settle(plait_thread *thread, DLDevice device, driver::Result result, const char *what);

#define PLAIT_CUDA(thread, device, what, call)                                     \
  do {                                                                             \
    const ::plait::cuda::driver::Result result_ = ::plait::cuda::driver::api.call; \
    if (PLAIT_UNLIKELY(result_ != ::plait::cuda::driver::kSuccess))                \
      return ::plait::cuda::fail_on(thread, device, result_, what);                \
  } while (0)

inline driver::Stream native(const plait_stream *s) {
  return s ? static_cast<driver::Stream>(s->native) : nullptr;
}

// The role "device".
const plait_device &device_table();

// The parts of the table, by topic.
void add_faults(plait_device &);
void add_streams(plait_device &);
void add_memory(plait_device &);
void add_sharing(plait_device &);
void add_capture(plait_device &);
void add_activity(plait_device &);

}  // namespace plait::cuda
