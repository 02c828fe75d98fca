// tril and triu: one triangle of the last two dimensions, zeros elsewhere.
#include "kernel/indices.h"

namespace plait::core {
namespace {

// `count` elements of a row with a distance of `step` elements
template <class T>
void copy_part(T *to, const T *from, int64_t step, int64_t count) {
  if (step == 1) {
    memcpy(to, from, size_t(count) * sizeof(T));
  } else {
    for (int64_t j = 0; j < count; j++) to[j] = from[j * step];
  }
}

template <class T, bool Lower>
void triangle(const plait_call *c, const DLTensor *self, DLTensor *out, int64_t diagonal) {
  const int nd = self->ndim;
  const int64_t rows = self->shape[nd - 2], columns = self->shape[nd - 1];
  const int64_t step = self->strides[nd - 1];
  // i + diagonal must not overflow
  diagonal = diagonal < -rows ? -rows : diagonal > columns ? columns : diagonal;
  const int64_t total = columns ? numel(self) / columns : 0;
  parallel_ranges(c, total, kSerial / (columns + 1) + 1, [&](int64_t begin, int64_t end) {
    Counter at(nd - 1, self->shape, self->strides);
    at.seek(begin);
    for (int64_t r = begin; r < end; r++, at.next()) {
      const T *row = data<T>(self) + at.offset;
      T *to = data<T>(out) + r * columns;
      const int64_t border = at.at[nd - 2] + diagonal + (Lower ? 1 : 0);
      const int64_t left = border < 0 ? 0 : border > columns ? columns : border;
      if (Lower) {
        copy_part(to, row, step, left);
        memset(to + left, 0, size_t(columns - left) * sizeof(T));
      } else {
        memset(to, 0, size_t(left) * sizeof(T));
        copy_part(to + left, row + left * step, step, columns - left);
      }
    }
  });
}

template <bool Lower>
plait_status kernel(plait_call *c) {
  const DLTensor *self = tensor(c, 0);
  DLTensor *out = result(c);
  const int64_t diagonal = integer(c, 1);
  PLAIT_BY_SIZE(self->dtype.bits / 8, (triangle<T, Lower>(c, self, out, diagonal)))
  return PLAIT_OK;
}
PLAIT_KERNEL("tril", kernel<true>);
PLAIT_KERNEL("triu", kernel<false>);

}  // namespace
}  // namespace plait::core
