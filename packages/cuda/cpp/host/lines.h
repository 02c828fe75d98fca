// The lines of tensors along one dimension, numbered in C order of the other dimensions. Strides
// are in elements.
#pragma once
#include "host/launch.h"
#include "host/walk.h"

namespace plait::cuda {

// The kind of kernels that sort: bool sorts as uint8.
inline Kind sort_kind(const DLTensor *t) {
  const Kind k = kind(t->dtype);
  return k == Bool ? U8 : k;
}

inline int64_t step_of(const DLTensor *t, int dim) { return t->ndim ? t->strides[dim] : 0; }

// The first elements of the lines of tensors that have the same sizes but for `dim`.
template <int operands>
bool lines_of_all(const DLTensor *const (&tensors)[operands], int dim, Walk<operands> *walk) {
  Plan p;
  p.operands = operands;
  const DLTensor *first = tensors[0];
  for (int d = 0; d < first->ndim; d++) {
    if (d == dim) continue;
    p.numel *= p.size[p.ndim] = first->shape[d];
    for (int k = 0; k < operands; k++) p.stride[k][p.ndim] = tensors[k]->strides[d];
    p.ndim++;
  }
  p.finish(false);
  return make_walk(p, walk);
}
inline bool lines_of(const DLTensor *a, const DLTensor *b, int dim, Walk<2> *walk) {
  return lines_of_all<2>({a, b}, dim, walk);
}

// The lines of an array of lines of n elements, and those of `a` or the other way round.
inline bool lines_of_array(const DLTensor *a, int dim, int64_t n, bool is_first, Walk<2> *walk) {
  DLTensor lines = *a;
  int64_t strides[PLAIT_MAX_DIMS], step = n;
  for (int d = a->ndim - 1; d >= 0; d--) {
    strides[d] = step;
    if (d != dim) step *= a->shape[d];
  }
  lines.strides = strides;
  return is_first ? lines_of(&lines, a, dim, walk) : lines_of(a, &lines, dim, walk);
}

// The second operand of a walk.
inline Walk<1> second_of(const Walk<2> &w) {
  Walk<1> one{};
  one.dims = w.dims, one.is_large = w.is_large;
  for (int d = 0; d < w.dims; d++) {
    one.size[d] = w.size[d], one.by[d] = w.by[d];
    one.stride[d][0] = w.stride[d][1];
  }
  return one;
}

}  // namespace plait::cuda
