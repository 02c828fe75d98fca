// nonzero_rows(self, count): the coordinates of the elements that are not 0, of which there are
// `count`.
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

plait_status nonzero_rows(plait_call *c) {
  const DLTensor *self = tensor(c, 0);
  const Test test = test_of(kind(self->dtype));
  if (!test) return PLAIT_DECLINE;
  DLTensor *out = result(c);
  int64_t *to = data<int64_t>(out), left = out->shape[0];
  memset(to, 0,
         size_t(numel(out)) * sizeof(int64_t));  // should self have changed since it was counted
  each_set(self, test, [&](const int64_t *at) {
    if (left-- <= 0) return;
    for (int d = 0; d < self->ndim; d++) *to++ = at[d];
  });
  return PLAIT_OK;
}
PLAIT_KERNEL("nonzero_rows", nonzero_rows);

}  // namespace
}  // namespace plait::core
