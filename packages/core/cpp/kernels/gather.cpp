// gather, scatter, scatter_add: one index for each element.
#include "kernels/indices.h"

namespace plait::core {
namespace {

// Strides of t with dimension dim left out of the walk: its coordinate comes from the index.
struct Walked {
  int64_t stride[PLAIT_MAX_DIMS];
  int64_t step;
  Walked(const DLTensor *t, int dim) : step(t->ndim ? t->strides[dim] : 0) {
    for (int d = 0; d < t->ndim; d++) stride[d] = d == dim ? 0 : t->strides[d];
  }
};

plait_status gather_kernel(plait_call *c) {
  const DLTensor *self = tensor(c, 0), *index = tensor(c, 2);
  DLTensor *out = result(c);
  const int dim = int(wrapped(integer(c, 1), self->ndim));
  Indices at;
  PLAIT_TRY(at.read(c, index, self->ndim ? self->shape[dim] : 1, dim));
  const Walked from(self, dim);
  PLAIT_BY_SIZE(self->dtype.bits / 8, {
    Counter base(index->ndim, index->shape, from.stride);
    for (int64_t i = 0; i < at.count(); i++, base.next())
      data<T>(out)[i] = data<T>(self)[base.offset + at[i] * from.step];
  })
  return PLAIT_OK;
}
PLAIT_KERNEL("gather", gather_kernel);

void copy_elements(const DLTensor *from, DLTensor *out) {
  const int item = from->dtype.bits / 8;
  Counter at(from->ndim, from->shape, from->strides);
  char *to = static_cast<char *>(out->data);
  for (int64_t i = 0, n = numel(out); i < n; i++, at.next())
    memcpy(to + i * item, static_cast<char *>(from->data) + at.offset * item, size_t(item));
}

template <bool Add>
plait_status scatter_kernel(plait_call *c) {
  const DLTensor *self = tensor(c, 0), *index = tensor(c, 2), *source = tensor(c, 3);
  DLTensor *out = result(c);
  const int dim = int(wrapped(integer(c, 1), self->ndim));
  alignas(16) char number[16];
  DLTensor scalar = *self;
  int64_t zero[PLAIT_MAX_DIMS] = {};
  if (!source) {  // a number for every place
    store_number(kind(self->dtype), c->in[3], number);
    scalar.data = number;
    scalar.strides = zero;
    source = &scalar;
  }
  Indices at;
  PLAIT_TRY(at.read(c, index, self->ndim ? self->shape[dim] : 1, dim));
  copy_elements(self, out);
  const Walked to(out, dim);
  Counter base(index->ndim, index->shape, to.stride),
      from(index->ndim, index->shape, source->strides);
  if constexpr (Add) {
    PLAIT_NUMERIC(kind(self->dtype), {
      for (int64_t i = 0; i < at.count(); i++, base.next(), from.next()) {
        T &place = data<T>(out)[base.offset + at[i] * to.step];
        place = T(place + data<T>(source)[from.offset]);
      }
    })
  } else {
    PLAIT_BY_SIZE(self->dtype.bits / 8, {
      for (int64_t i = 0; i < at.count(); i++, base.next(), from.next())
        data<T>(out)[base.offset + at[i] * to.step] = data<T>(source)[from.offset];
    })
  }
  return PLAIT_OK;
}
PLAIT_KERNEL("scatter", scatter_kernel<false>);
PLAIT_KERNEL("scatter.value", scatter_kernel<false>);
PLAIT_KERNEL("scatter_add", scatter_kernel<true>);

}  // namespace
}  // namespace plait::core
