// Operands as C-order arrays: the tensor's own memory, or a copy of it.
#pragma once
#include "kernel/copy.h"

namespace plait::core {

inline void dense_strides(const DLTensor *t, int64_t *strides) {
  int64_t step = 1;
  for (int d = t->ndim - 1; d >= 0; d--) {
    strides[d] = step;
    step *= t->shape[d];
  }
}

template <class T>
class Dense {
 public:
  plait_status take(const plait_call *c, const DLTensor *t) {
    data_ = data<T>(t);
    return is_contiguous(t) ? PLAIT_OK : take_copy(c, t);
  }
  operator const T *() const { return data_; }

 private:
  PLAIT_NOINLINE plait_status take_copy(const plait_call *c, const DLTensor *t) {
    PLAIT_TRY(space_.take(c, uint64_t(numel(t)) * sizeof(T)));
    int64_t strides[PLAIT_MAX_DIMS];
    dense_strides(t, strides);
    copy_strided(c, space_.as<char>(), strides, data<char>(t), t->strides, t->shape, t->ndim,
                 sizeof(T));
    data_ = space_.as<T>();
    return PLAIT_OK;
  }

  const T *data_ = nullptr;
  Workspace space_;
};

// A result as a C-order array: its own memory, or other memory that `give_back` copies from.
template <class T>
class DenseResult {
 public:
  plait_status take(const plait_call *c, DLTensor *t) {
    to_ = t;
    data_ = data<T>(t);
    if (is_contiguous(t)) return PLAIT_OK;
    PLAIT_TRY(space_.take(c, uint64_t(numel(t)) * sizeof(T)));
    data_ = space_.as<T>();
    return PLAIT_OK;
  }
  plait_status give_back(const plait_call *c) const {
    if (data_ == data<T>(to_)) return PLAIT_OK;
    int64_t strides[PLAIT_MAX_DIMS];
    dense_strides(to_, strides);
    copy_strided(c, data<char>(to_), to_->strides, reinterpret_cast<const char *>(data_), strides,
                 to_->shape, to_->ndim, sizeof(T));
    return PLAIT_OK;
  }
  operator T *() const { return data_; }

 private:
  T *data_ = nullptr;
  DLTensor *to_ = nullptr;
  Workspace space_;
};

}  // namespace plait::core
