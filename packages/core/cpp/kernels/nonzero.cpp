// nonzero and masked_select: the result's size is known only when the elements have been read.
#include "kernels/indices.h"

namespace plait::core {
namespace {

template <class T>
bool is_set(const char *p) {
  return *reinterpret_cast<const T *>(p) != T(0);
}
bool half_set(const char *p) { return (*reinterpret_cast<const uint16_t *>(p) & 0x7fff) != 0; }
template <class T>
bool complex_set(const char *p) {
  return reinterpret_cast<const T *>(p)[0] != 0 || reinterpret_cast<const T *>(p)[1] != 0;
}

using Test = bool (*)(const char *);
Test test_of(Kind k) {
  switch (k) {
    case Bool:
    case U8:
    case I8: return is_set<uint8_t>;
    case U16:
    case I16: return is_set<uint16_t>;
    case U32:
    case I32: return is_set<uint32_t>;
    case U64:
    case I64: return is_set<uint64_t>;
    case F32: return is_set<float>;
    case F64: return is_set<double>;
    case F16:
    case BF16: return half_set;
    case C64: return complex_set<float>;
    case C128: return complex_set<double>;
    default: return nullptr;
  }
}

template <class F>
void each_set(const DLTensor *t, Test test, F &&f) {
  const int item = t->dtype.bits / 8;
  Counter at(t->ndim, t->shape, t->strides);
  for (int64_t i = 0, n = numel(t); i < n; i++, at.next())
    if (test(static_cast<const char *>(t->data) + at.offset * item)) f(at.at);
}

plait_status nonzero(plait_call *c) {
  const DLTensor *self = tensor(c, 0);
  const Test test = test_of(kind(self->dtype));
  if (!test) return PLAIT_DECLINE;
  int64_t hits = 0;
  each_set(self, test, [&](const int64_t *) { hits++; });
  const int64_t shape[2] = {hits, self->ndim};
  PLAIT_TRY(c->thread->runtime->result(c, 0, DLDataType{kDLInt, 64, 1}, 2, shape));
  int64_t *to = data<int64_t>(result(c));
  each_set(self, test, [&](const int64_t *at) {
    for (int d = 0; d < self->ndim; d++) *to++ = at[d];
  });
  return PLAIT_OK;
}
PLAIT_KERNEL("nonzero", nonzero);

plait_status masked_select(plait_call *c) {  // self and mask broadcast together
  const DLTensor *self = tensor(c, 0), *mask = tensor(c, 1);
  const int ndim = self->ndim > mask->ndim ? self->ndim : mask->ndim;
  int64_t shape[PLAIT_MAX_DIMS], a[PLAIT_MAX_DIMS], b[PLAIT_MAX_DIMS], n = 1, hits = 0;
  for (int d = 0; d < ndim; d++) {
    const int i = d - (ndim - self->ndim), k = d - (ndim - mask->ndim);
    const int64_t x = i < 0 ? 1 : self->shape[i], y = k < 0 ? 1 : mask->shape[k];
    shape[d] = x == 1 ? y : x;
    a[d] = x == 1 ? 0 : self->strides[i];
    b[d] = y == 1 ? 0 : mask->strides[k];
    n *= shape[d];
  }
  Counter first(ndim, shape, b);
  for (int64_t i = 0; i < n; i++, first.next()) hits += data<uint8_t>(mask)[first.offset] != 0;
  PLAIT_TRY(c->thread->runtime->result(c, 0, self->dtype, 1, &hits));
  DLTensor *out = result(c);
  Counter from(ndim, shape, a), test(ndim, shape, b);
  PLAIT_BY_SIZE(self->dtype.bits / 8, {
    T *to = data<T>(out);
    for (int64_t i = 0; i < n; i++, from.next(), test.next())
      if (data<uint8_t>(mask)[test.offset]) *to++ = data<T>(self)[from.offset];
  })
  return PLAIT_OK;
}
PLAIT_KERNEL("masked_select", masked_select);

}  // namespace
}  // namespace plait::core
