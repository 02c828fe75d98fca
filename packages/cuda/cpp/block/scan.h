// Sums over the threads of a block in order: where the elements go that threads want to write.
#pragma once
#include "block/block.h"

#if PLAIT_KERNELS
namespace plait::cuda {

PLAIT_DEVICE int count_bits(uint32_t x) {
#if defined(__CUDA_ARCH__)
  return __popc(x);
#else
  return __builtin_popcount(x);
#endif
}

// The sum of the values of all threads before this one; *total: of all threads. `room` has one
// element for each warp, and is free again afterwards.
template <class T>
PLAIT_DEVICE T exclusive_sum(Block &t, const Shared<T> &room, T value, T *total) {
  T sum = value;
#pragma unroll
  for (int by = 1; by < kWarp; by *= 2) {
    const T other = t.shuffle_up(sum, by);
    if (t.lane() >= by) sum += other;
  }
  if (t.lane() == kWarp - 1) room.store(t.warp(), sum);
  t.barrier();
  T before = 0, all = 0;
  for (int w = 0; w < t.warps(); w++) {
    const T each = room.load(w);
    before += w < t.warp() ? each : T(0);
    all += each;
  }
  t.barrier();
  *total = all;
  return before + sum - value;
}

// The number of lanes before this one in the warp for which `yes` holds; *all: of all lanes.
PLAIT_DEVICE int count_before(Block &t, bool yes, int *all) {
  const uint32_t votes = t.ballot(yes);
  *all = count_bits(votes);
  return count_bits(votes & ((1u << t.lane()) - 1));
}

}  // namespace plait::cuda
#endif
