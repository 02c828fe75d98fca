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

// The sum of the values of this thread and all before it; *total: of all threads. `room` has one
// element for each warp, and is free again afterwards.
template <class T>
PLAIT_DEVICE T inclusive_sum(Block &t, const Shared<T> &room, T value, T *total) {
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
  return before + sum;
}
// The sum of the whole numbers of the threads before this one.
template <class T>
PLAIT_DEVICE T exclusive_sum(Block &t, const Shared<T> &room, T value, T *total) {
  static_assert(std::is_integral_v<T>, "a difference of sums is exact for integers alone");
  return inclusive_sum(t, room, value, total) - value;
}

}  // namespace plait::cuda
#endif
