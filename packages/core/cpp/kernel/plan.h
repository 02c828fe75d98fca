// How to walk over several tensors of one shape: dimensions of size 1 dropped, sorted by the first
// operand's strides, merged where every operand allows it. Strides are in bytes, signed, 0 where an
// operand is broadcast.
#pragma once
#include "kernel/kernel.h"

namespace plait::core {

constexpr int kMaxOperands = 5;

struct Plan {
  int ndim = 0, operands = 0;
  int64_t numel = 1;
  char *data[kMaxOperands];
  int64_t size[PLAIT_MAX_DIMS + 1];  // a complex tensor may be walked as pairs
  int64_t stride[kMaxOperands][PLAIT_MAX_DIMS + 1];

  // The first operand gives the shape; the others broadcast to it.
  void add(const DLTensor *t, int item);
  void add_constant(void *value);  // one element for all positions
  void finish(bool sort = true);

  // Byte addresses of element `linear` (C order over size[]) and its coordinates.
  void seek(int64_t linear, int64_t *at, char **p) const;
  // One step of dimensions [0, ndim - 1), the innermost left to the caller.
  void next_row(int64_t *at, char **p) const {
    for (int d = ndim - 2; d >= 0; d--) {
      for (int k = 0; k < operands; k++) p[k] += stride[k][d];
      if (++at[d] < size[d]) return;
      for (int k = 0; k < operands; k++) p[k] -= stride[k][d] * size[d];
      at[d] = 0;
    }
  }
};

}  // namespace plait::core
