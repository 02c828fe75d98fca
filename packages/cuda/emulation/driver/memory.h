// Memory of the emulated devices.
#pragma once
#include "emulation/driver/state.h"

namespace plait::cuda::driver {

size_t memory_limit();  // bytes of a device

// A range of addresses. Memory of devices lies behind its addresses; pinned memory at them.
struct Allocation {
  uintptr_t begin, end;
  int device;       // -1: pinned memory of the host
  bool opened;      // memory of another process
  ptrdiff_t distance;
};
bool find_allocation(uintptr_t address, Allocation *out);

// Files that hold the memory of devices, for other processes.
int file_of(int device);
size_t offset_of(const Allocation &);  // in the file
// Maps memory of another process's file; 0: it cannot be.
Address map_opened(int device, int file, size_t offset, size_t bytes);
bool unmap_opened(Address begin);

}  // namespace plait::cuda::driver
