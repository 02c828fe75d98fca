// Products of float32 rows with weights of 16 or 8 bits, which are widened in registers, or while
// they are packed: no float32 copy of all weights is made. See docs/design/0030.
#pragma once
#include "kernel/kernel.h"
#include "linalg/matrix.h"

namespace plait::core {

constexpr int64_t kRowsInPlace = 16;  // up to so many rows, weights are read where they lie
constexpr int64_t kWeightsInPlace = 1 << 16;  // for a unit of parallel work, read where they lie

// out = (a wᵀ) * scale + bias for the m x k matrix a and the n x k matrix w.
struct SmallProduct {
  int64_t m, n, k;
  const float *a;
  int64_t a_row;  // elements from a row to the next, as below
  const void *w;
  int64_t w_row, w_column;  // one of them is 1, for int8 the latter
  Kind w_kind;  // BF16, F16 or I8
  const float *scale, *bias;  // n numbers each, or NULL: 1 and 0
  void *out;  // dense
  Kind out_kind;  // F32, BF16 or F16
};

// Sums are of float32 numbers, and each result is rounded once.
plait_status multiply_small(const plait_call *c, const SmallProduct &p);

// Results j to j + n of one row: to[j] = sums[j] * scale + bias.
void finish_row(const SmallProduct &p, int64_t row, int64_t j, int64_t n, const float *sums);

// The rows of a tensor, all leading dimensions as one, as dense rows of float32: where they lie, or
// in a workspace.
class FloatRows {
 public:
  plait_status take(const plait_call *c, const DLTensor *t);
  const float *data = nullptr;
  int64_t count = 1, row = 0;

 private:
  Workspace space_;
};

// A matrix whose rows or, if `either`, columns have adjacent elements: where it lies, or a copy.
class DenseRows {
 public:
  plait_status take(const plait_call *c, const DLTensor *t, bool either = false);
  const void *data = nullptr;
  int64_t row = 0, column = 1;

 private:
  Workspace space_;
};

}  // namespace plait::core
