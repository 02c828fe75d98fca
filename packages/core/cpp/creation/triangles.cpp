// tril and triu: one triangle of the last two dimensions, zeros elsewhere.
#include "kernel/indices.h"

namespace plait::core {
namespace {

template <class T, bool Lower>
void triangle(const DLTensor *self, DLTensor *out, int64_t diagonal) {
  const int nd = self->ndim;
  const int64_t rows = self->shape[nd - 2], columns = self->shape[nd - 1];
  const int64_t row_step = self->strides[nd - 2], step = self->strides[nd - 1];
  int64_t matrices = 1;
  for (int d = 0; d < nd - 2; d++) matrices *= self->shape[d];
  Counter at(nd - 2, self->shape, self->strides);
  T *to = data<T>(out);
  for (int64_t m = 0; m < matrices; m++, at.next()) {
    for (int64_t i = 0; i < rows; i++, to += columns) {
      const T *row = data<T>(self) + at.offset + i * row_step;
      // compared without i + diagonal, which could overflow
      for (int64_t j = 0; j < columns; j++)
        to[j] = (Lower ? j - i <= diagonal : j - i >= diagonal) ? row[j * step] : T{};
    }
  }
}

template <bool Lower>
plait_status kernel(plait_call *c) {
  const DLTensor *self = tensor(c, 0);
  DLTensor *out = result(c);
  const int64_t diagonal = integer(c, 1);
  PLAIT_BY_SIZE(self->dtype.bits / 8, (triangle<T, Lower>(self, out, diagonal)))
  return PLAIT_OK;
}
PLAIT_KERNEL("tril", kernel<true>);
PLAIT_KERNEL("triu", kernel<false>);

}  // namespace
}  // namespace plait::core
