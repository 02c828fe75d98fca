// What the emulated driver and a library of kernels that a compiler of the host made know of each
// other. Both are built from one tree, so nothing here is kept compatible.
#pragma once
#include <cstddef>
#include <cstdint>

#include "driver/types.h"

namespace plait::cuda::emulation {

// Memory that kernels of a device may touch: [begin, end) are the addresses that programs see, and
// the bytes lie `distance` behind them.
struct Range {
  uintptr_t begin, end;
  ptrdiff_t distance;
};

// What the driver does for kernels.
struct Driver {
  // Finds the memory that `address` lies in; false: it is none of this device.
  bool (*find)(int device, uintptr_t address, Range *range);
};

// A launch, and the block of it that a host's thread runs.
struct BlockState;

struct Entry {
  const char *name, *file;
  uint32_t max_threads, args_size;
  bool has_barriers;  // it takes a Block: each thread needs a stack
  // Runs the threads [first, last) of a block.
  void (*run)(BlockState &state, int first, int last, const void *args);
};

struct Launch {
  const Entry *entry;
  const void *args;
  uint32_t grid[3], threads, shared;
  int device;
  const Driver *driver;
};

// Why a kernel was ended.
struct Trap {
  driver::Result code;
  char text[768];
};

struct Library {
  const Entry *begin, *end;
  void (*launch)(const Launch &launch, Trap *trap);  // returns when all blocks have run
  int64_t (*threads)();  // how many threads of the host it has started
};

}  // namespace plait::cuda::emulation

// The one function that a library of kernels exports.
extern "C" const plait::cuda::emulation::Library *plait_cuda_emulated_library();
constexpr const char *kEmulatedLibraryFunction = "plait_cuda_emulated_library";
