// Random numbers of kernels that a graph repeats.
#pragma once
#include "host/launch.h"

namespace plait::cuda {

// Takes blocks (of four 32-bit words) of a generator for a call whose work is recorded, which runs
// again and again with other numbers. `base` is the address on the device of two words that each
// run sets: a number of blocks to add to `offset`, and the seed.
// Returns PLAIT_DECLINE if the call is not recorded: then the generator gives its blocks itself.
plait_status reserve_in_graph(const plait_call *c, plait_generator *generator, uint64_t blocks,
                              uint64_t *offset, const uint64_t **base);

}  // namespace plait::cuda
