// Random numbers of kernels, also of those that a graph repeats.
#pragma once
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

}  // namespace plait::cuda
