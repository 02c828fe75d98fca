#include "host/allocator.h"

#include "host/device.h"

namespace plait::cuda {
namespace {

plait_status alloc(void *, DLDevice device, uint64_t nbytes, plait_stream *, void **data,
                   void **block) {
  plait_thread *thread = runtime->thread();
  *block = nullptr;
  return device_table.memory_alloc(nullptr, thread, device, nbytes, data);
}
void free(void *, void *data, uint64_t nbytes, void *) {
  device_table.memory_free(nullptr, DLDevice{kDLCUDA, 0}, data, nbytes);
}

const plait_allocator table = {PLAIT_HEADER(plait_allocator),
                               "plait_cuda.direct",
                               nullptr,
                               alloc,
                               free,
                               nullptr,
                               nullptr,
                               0,
                               nullptr,
                               nullptr,
                               nullptr,
                               nullptr,
                               nullptr,
                               nullptr,
                               nullptr};

}  // namespace

const plait_allocator *allocator_table() { return &table; }

}  // namespace plait::cuda
