// Operands as C-order arrays: the tensor's own memory, or a copy of it.
#ifndef PLAIT_CORE_DENSE_H
#define PLAIT_CORE_DENSE_H
#include "kernel/copy.h"

namespace plait::core {

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
    int64_t strides[PLAIT_MAX_DIMS], step = 1;
    for (int d = t->ndim - 1; d >= 0; d--) {
      strides[d] = step;
      step *= t->shape[d];
    }
    copy_strided(c, space_.as<char>(), strides, data<char>(t), t->strides, t->shape, t->ndim,
                 sizeof(T));
    data_ = space_.as<T>();
    return PLAIT_OK;
  }

  const T *data_ = nullptr;
  Workspace space_;
};

}  // namespace plait::core
#endif  // PLAIT_CORE_DENSE_H
