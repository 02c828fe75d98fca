// What kernels and copies that a graph repeats need: random numbers, and memory of the host.
#pragma once
#include <vector>

#include "host/launch.h"

namespace plait::cuda {

// A part of the stream of a generator. In a graph, which runs its kernels again and again, the
// numbers must differ from run to run: `base` is an address on the device of two words that each
// run sets, a number of blocks to add to `offset`, and the seed. Else it is NULL.
struct RandomPart {
  uint64_t seed, offset;  // in blocks of four 32-bit words
  const uint64_t *base;
};

// Takes blocks of the generator that a call names, or of the default one.
plait_status reserve_blocks(const plait_call *c, int64_t blocks, RandomPart *out);

// A copy was put into a stream: if it is recorded, the graph keeps the memory of the host.
void keep_for_graph(DLDevice device, driver::Stream stream, const void *host);

// Pinned memory that a graph keeps: the block at an address joins the list, until it is released.
void hold_pinned(const void *address, std::vector<void *> &held);
void release_pinned(void *block);

}  // namespace plait::cuda
