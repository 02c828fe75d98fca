// Positions in the streams of generators, reserved by the host.
#pragma once
#include "block/philox.h"
#include "host/capture.h"
#include "host/copy.h"

namespace plait::cuda {

// The CPU makes numbers in groups of so many blocks, and positions advance by whole groups.
constexpr int64_t kPhiloxBlocks = 32;

// Blocks for `n` elements of which a block makes `each`.
inline int64_t blocks_of_groups(int64_t n, int64_t each) {
  return ceil_div(n, each * kPhiloxBlocks) * kPhiloxBlocks;
}

// Takes blocks from the generator among the arguments, or from the default one.
inline plait_status reserve_stream(const plait_call *c, int64_t blocks, RandomStream *out) {
  const auto *rng = PLAIT_ROLE(plait_rng, roles.rng);
  if (rng->fill)
    return PLAIT_FAIL(c, PLAIT_NOT_IMPLEMENTED,
                      "the random numbers of %s are not computed on this device", rng->name);
  RandomPart part{};
  PLAIT_TRY(reserve_blocks(c, blocks, &part));
  *out = RandomStream{part.seed, part.offset, part.base};
  return PLAIT_OK;
}

}  // namespace plait::cuda
