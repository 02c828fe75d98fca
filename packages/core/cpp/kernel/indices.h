// Index tensors as contiguous int64, checked against the size they index.
#pragma once
#include "kernel/kernel.h"

namespace plait::core {

// Byte address of element `linear` (C order) of a tensor.
inline char *element(const DLTensor *t, int64_t linear) {
  int64_t offset = 0;
  for (int d = t->ndim - 1; d >= 0; d--) {
    offset += linear % t->shape[d] * t->strides[d];
    linear /= t->shape[d];
  }
  return static_cast<char *>(t->data) + offset * (t->dtype.bits / 8);
}

class Indices {
 public:
  // Reads the integers of `t` in C order; with size >= 0 negative ones are counted from the end and
  // all are checked.
  plait_status read(const plait_call *c, const DLTensor *t, int64_t size, int dim);
  const int64_t *begin() const { return p_; }
  int64_t operator[](int64_t i) const { return p_[i]; }
  int64_t count() const { return n_; }

 private:
  Workspace space_;
  const int64_t *p_ = nullptr;
  int64_t n_ = 0;
};

// Coordinates that run through a shape in C order, with their `offset` in the unit of the given
// strides.
struct Counter {
  int ndim;
  const int64_t *shape, *stride;
  int64_t at[PLAIT_MAX_DIMS];
  int64_t offset = 0;
  Counter(int n, const int64_t *sizes, const int64_t *strides)
      : ndim(n), shape(sizes), stride(strides) {
    for (int d = 0; d < n; d++) at[d] = 0;
  }
  void seek(int64_t linear) {
    offset = 0;
    for (int d = ndim - 1; d >= 0; d--) {
      at[d] = linear % shape[d];
      offset += at[d] * stride[d];
      linear /= shape[d];
    }
  }
  void next() {
    for (int d = ndim - 1; d >= 0; d--) {
      offset += stride[d];
      if (++at[d] < shape[d]) return;
      offset -= stride[d] * shape[d];
      at[d] = 0;
    }
  }
};

}  // namespace plait::core
