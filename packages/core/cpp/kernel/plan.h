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

inline void Plan::add(const DLTensor *t, int item) {
  const int k = operands++;
  data[k] = static_cast<char *>(t->data);
  if (k == 0) {
    ndim = t->ndim;
    for (int d = 0; d < ndim; d++) numel *= size[d] = t->shape[d];
  }
  const int lead = ndim - t->ndim;  // broadcasting aligns at the last dimension
  for (int d = 0; d < lead; d++) stride[k][d] = 0;
  for (int d = 0; d < t->ndim; d++)
    stride[k][lead + d] = t->shape[d] == 1 ? 0 : t->strides[d] * item;
}

inline void Plan::add_constant(void *value) {
  const int k = operands++;
  data[k] = static_cast<char *>(value);
  for (int d = 0; d < ndim; d++) stride[k][d] = 0;
}

inline void Plan::finish(bool sort) {
  int n = 0;
  for (int d = 0; d < ndim; d++) {  // drop
    if (size[d] == 1) continue;
    size[n] = size[d];
    for (int k = 0; k < operands; k++) stride[k][n] = stride[k][d];
    n++;
  }
  if (sort)
    for (int d = 1; d < n; d++)
      for (int e = d; e > 0 && __builtin_llabs(stride[0][e - 1]) < __builtin_llabs(stride[0][e]);
           e--) {
        const int64_t s = size[e];
        size[e] = size[e - 1];
        size[e - 1] = s;
        for (int k = 0; k < operands; k++) {
          const int64_t t = stride[k][e];
          stride[k][e] = stride[k][e - 1];
          stride[k][e - 1] = t;
        }
      }
  int last = 0;
  for (int d = 1; d < n; d++) {  // merge d into `last`
    bool fits = true;
    for (int k = 0; k < operands; k++) fits &= stride[k][last] == stride[k][d] * size[d];
    if (fits) {
      size[last] *= size[d];
    } else {
      size[++last] = size[d];
    }
    for (int k = 0; k < operands; k++) stride[k][last] = stride[k][d];
  }
  ndim = n ? last + 1 : 1;
  if (!n) {
    size[0] = 1;
    for (int k = 0; k < operands; k++) stride[k][0] = 0;
  }
}

inline void Plan::seek(int64_t linear, int64_t *at, char **p) const {
  for (int k = 0; k < operands; k++) p[k] = data[k];
  for (int d = ndim - 1; d >= 0; d--) {
    at[d] = linear % size[d];
    linear /= size[d];
    for (int k = 0; k < operands; k++) p[k] += at[d] * stride[k][d];
  }
}

}  // namespace plait::core
