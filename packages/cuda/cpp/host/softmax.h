// How softmax of rows and of columns is launched (block/softmax_rows.h).
#pragma once
#include "block/softmax_rows.h"
#include "host/rows.h"

namespace plait::cuda {

// Threads of columns: 32 neighbouring ones where there are so many, and lanes that read 4 elements
// each. A row that is longer than registers hold is a column of neighbours.
inline void share_columns(SoftmaxArgs *a) {
  RowShape &s = a->shape;
  int64_t beside = 1, lanes = 1;
  while (beside < 32 && beside < s.rows && a->inner > 1) beside *= 2;
  while (lanes < kRowThreads / beside && lanes * 4 < s.n) lanes *= 2;
  s.lanes = int32_t(lanes);
}

// `args` are those of the kernels, and `a` is the part of them that softmax reads.
template <class Args>
plait_status launch_softmax(const plait_call *c, Kind k, const Args &args, SoftmaxArgs &a,
                            const DeviceKernel &rows, const DeviceKernel &long_rows,
                            const DeviceKernel &columns) {
  if (a.inner == 1 && a.shape.n <= kHeldRow)
    return launch(c, rows, k, args, row_blocks(a.shape), kRowThreads, 1024);
  if (a.inner == 1) {
    const int64_t bytes = long_row_bytes(c, a.shape.n, k);
    a.is_kept = bytes > 0;
    return launch(c, long_rows, k, args, long_row_blocks(a.shape), kLongRowThreads,
                  bytes ? bytes : 1024);
  }
  share_columns(&a);
  return launch(c, columns, k, args, row_blocks(a.shape), kRowThreads, kRowThreads * 16);
}

}  // namespace plait::cuda
