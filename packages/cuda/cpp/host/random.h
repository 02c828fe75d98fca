// Positions in the streams of generators, reserved by the host.
#pragma once
#include "block/philox.h"
#include "host/copy.h"

namespace plait::cuda {

// The CPU makes numbers in groups of so many blocks, and positions advance by whole groups.
constexpr int64_t kPhiloxBlocks = 32;

// Takes blocks from the generator among the arguments, or from the default one.
plait_status reserve_blocks(const plait_call *c, int64_t blocks, RandomStream *out);

// Blocks for `n` elements of which a block makes `each`.
inline int64_t blocks_of_groups(int64_t n, int64_t each) {
  return ceil_div(n, each * kPhiloxBlocks) * kPhiloxBlocks;
}

// The first `keep` elements of each sorted line of a dense matrix, and the indices that they had.
plait_status sort_rows(const plait_call *c, Kind k, const void *rows, int64_t lines, int64_t n,
                       int64_t keep, void *values, int64_t *indices);

}  // namespace plait::cuda
