// A stable sort of keys that kernels wrote, with the places that they had: lines of keys, each for
// itself. Used by sorting, and by what adds up elements of the same place in order.
#pragma once
#include "host/launch.h"

namespace plait::cuda {

class RadixSort {
 public:
  // Memory for `lines` times `n` keys of `item` bytes, 4 or 8; n is below 2^32.
  plait_status take(const plait_call *c, int64_t lines, int64_t n, int item);
  // To be written before `sort`.
  void *keys() const { return keys_[0].data(); }
  // Sorts by the lowest `bits` bits, which hold the keys. At most 256 * 2^31 digits of lines.
  plait_status sort(const plait_call *c, int bits);
  const void *sorted_keys() const { return keys_[now_].data(); }
  const uint32_t *places() const { return places_[now_].data<uint32_t>(); }

 private:
  int64_t lines_ = 0, n_ = 0, tiles_ = 0;
  int item_ = 4, now_ = 0;
  DeviceWorkspace keys_[2], places_[2], counts_, totals_;
};

// The number of bits of whole numbers below n.
inline int bits_below(int64_t n) {
  int bits = 1;
  while (bits < 63 && (int64_t(1) << bits) < n) bits++;
  return bits;
}

// Replaces counts by the sums of those before them; the sum of all is written behind them.
plait_status sum_counts(const plait_call *c, int64_t *counts, int64_t n);

// The first `keep` elements of each sorted line of a dense matrix, and the indices that they had.
plait_status sort_rows(const plait_call *c, Kind k, const void *rows, int64_t lines, int64_t n,
                       int64_t keep, void *values, int64_t *indices);

// All lines of a tensor along a dimension, sorted: matrices in C order.
plait_status sort_dimension(const plait_call *c, const DLTensor *self, int dim, void *values,
                            int64_t *indices);

}  // namespace plait::cuda
