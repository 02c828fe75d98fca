// The plug-in: the role "device" of CUDA, its allocator, collectives, and the kernels of all
// operators.
#include "host/allocator.h"
#include "host/device.h"
#include "host/nccl.h"

#ifndef PLAIT_CUDA_VERSION
#define PLAIT_CUDA_VERSION "0.2.0"
#endif

extern "C" {
// The linker defines these around the records of PLAIT_KERNEL.
using plait::core::Registration;
#define PLAIT_HIDDEN __attribute__((visibility("hidden"))) extern const Registration
PLAIT_HIDDEN __start_plait_kernels[], __stop_plait_kernels[];
PLAIT_HIDDEN __start_plait_special[], __stop_plait_special[];
}

namespace {

plait_status implement(const plait_runtime *runtime, const plait_plugin *self,
                       const Registration *r, const Registration *end) {
  for (; r != end; r++)
    PLAIT_TRY(runtime->implement_named(runtime->thread(), r->op, kDLCUDA, r->kernel, nullptr, self,
                                       nullptr));
  return PLAIT_OK;
}

// Work in flight is left to the driver, which ends it with the process.
void quiesce() { plait::cuda::stop_devices(); }

plait_status init(const plait_runtime *runtime, const plait_plugin *self) {
  using namespace plait::cuda;
  plait::cuda::runtime = runtime;
  plait::core::roles = {runtime->role("executor", 0), runtime->role("allocator", kDLCPU),
                        runtime->role("rng", 0)};
  plait_thread *thread = runtime->thread();
  PLAIT_TRY(runtime->provide(thread, "device", kDLCUDA, &device_table().h, self, nullptr));
  PLAIT_TRY(runtime->provide(thread, "allocator", kDLCUDA, &allocator_table()->h, self, nullptr));
  PLAIT_TRY(runtime->provide(thread, "communicator", kDLCUDA, &nccl_table().h, self, nullptr));
  // the last kernel of an operator is called first
  PLAIT_TRY(implement(runtime, self, __start_plait_kernels, __stop_plait_kernels));
  PLAIT_TRY(implement(runtime, self, __start_plait_special, __stop_plait_special));
  return PLAIT_OK;
}

}  // namespace

extern "C" __attribute__((visibility("default"))) const plait_plugin plait_plugin_v1;
extern "C" const plait_plugin plait_plugin_v1 = {PLAIT_HEADER(plait_plugin),
                                                 "plait_cuda",
                                                 PLAIT_CUDA_VERSION,
                                                 PLAIT_PLUGIN_DEFAULT | PLAIT_PLUGIN_OVERWRITES,
                                                 init,
                                                 quiesce};
