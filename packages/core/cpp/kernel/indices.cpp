#include "kernel/indices.h"

namespace plait::core {
namespace {

template <class T>
void widen(int64_t *to, const DLTensor *t, int64_t n) {
  Counter at(t->ndim, t->shape, t->strides);
  for (int64_t i = 0; i < n; i++, at.next()) to[i] = int64_t(data<T>(t)[at.offset]);
}

}  // namespace

plait_status Indices::read(const plait_call *c, const DLTensor *t, int64_t size, int dim) {
  n_ = numel(t);
  const Kind k = kind(t->dtype);
  if (k == I64 && is_contiguous(t)) {
    p_ = data<int64_t>(t);
    bool plain = true;  // all indices are in range and not negative: use the tensor's own memory
    for (int64_t i = 0; i < n_ && size >= 0; i++) plain &= uint64_t(p_[i]) < uint64_t(size);
    if (plain) return PLAIT_OK;
  }
  PLAIT_TRY(space_.take(c, uint64_t(n_ ? n_ : 1) * sizeof(int64_t)));
  auto *own = space_.as<int64_t>();
  p_ = own;
  switch (k) {
    PLAIT_CASE(I64, int64_t, widen<T>(own, t, n_))
    PLAIT_CASE(I32, int32_t, widen<T>(own, t, n_))
    PLAIT_CASE(I16, int16_t, widen<T>(own, t, n_))
    PLAIT_CASE(I8, int8_t, widen<T>(own, t, n_))
    PLAIT_CASE(U8, uint8_t, widen<T>(own, t, n_))
    default: return PLAIT_DECLINE;
  }
  for (int64_t i = 0; i < n_ && size >= 0; i++) {
    const int64_t request = own[i];
    if (request < -size || request >= size)
      return PLAIT_FAIL(
          c, PLAIT_INDEX_ERROR,
          "index out of range: index %lld is out of bounds for dimension %d with size %lld",
          (long long)request, dim, (long long)size);
    own[i] = request < 0 ? request + size : request;
  }
  return PLAIT_OK;
}

}  // namespace plait::core
