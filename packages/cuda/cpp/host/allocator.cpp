#include "host/allocator.h"

#include <plait/caching_allocator.hpp>

#include "host/device.h"

namespace plait::cuda {

const plait_allocator *allocator_table() {
  // storages may end after everything else
  static const auto *memory = new CachingAllocator(runtime, &device_table());
  return memory->table();
}

}  // namespace plait::cuda
