// How rows of dense tensors are shared by threads (block/softmax.h).
#pragma once
#include <initializer_list>

#include "block/softmax.h"
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
// Blocks of kRowThreads threads for all rows.
inline int64_t row_blocks(const RowShape &s) { return ceil_div(s.rows, kRowThreads / s.lanes); }

}  // namespace plait::cuda
