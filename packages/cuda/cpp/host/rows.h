// How rows of dense tensors are shared by threads (block/rows.h).
#pragma once
#include <initializer_list>

#include "block/rows.h"
#include "host/launch.h"

namespace plait::cuda {

constexpr int kRowThreads = 256;
constexpr int64_t kHeldRow = int64_t(kRowThreads) * kRowItems;  // elements of rows in registers

// The threads of rows of n elements of up to `item` bytes, which begin at `data` and are dense.
inline RowShape row_shape(int64_t rows, int64_t n, int item,
                          std::initializer_list<const void *> data) {
  const int64_t width = 16 / item;
  bool is_vector = n % width == 0;
  for (const void *each : data) is_vector &= reinterpret_cast<uintptr_t>(each) % 16 == 0;
  const int64_t reads = is_vector ? n / width : n;
  int64_t lanes = 1;
  while (lanes < kRowThreads && (lanes < kWarp ? lanes < reads : lanes * kRowItems < n)) lanes *= 2;
  return {rows, n, int32_t(lanes), is_vector};
}
// Bytes of shared memory in which a block keeps a row, or 0 if there are not so many.
inline int64_t long_row_bytes(const plait_call *c, int64_t n, Kind k) {
  constexpr int64_t kOther = 1024;  // for sums
  const int64_t bytes = (n + kLongRowMargin) * (k == F64 ? 8 : 4) + kOther;
  return bytes <= facts(c->device.device_id).shared_memory ? bytes : 0;
}
// Blocks of kLongRowThreads threads.
inline int64_t long_row_blocks(const RowShape &s) {
  constexpr int64_t kMost = 1 << 20;
  return s.rows < kMost ? s.rows : kMost;
}
// Blocks of kRowThreads threads for all rows.
inline int64_t row_blocks(const RowShape &s) { return ceil_div(s.rows, kRowThreads / s.lanes); }

}  // namespace plait::cuda
