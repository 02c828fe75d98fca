// index_select, index_add, embedding: whole slices by an index into one dimension.
#include "kernels/indices.h"

namespace plait::core {
namespace {

struct Slices {  // self seen as (outer, size, inner) around one dimension, with general strides
  int64_t outer = 1, inner = 1, size = 1;
  int outer_ndim, inner_ndim;
  const DLTensor *t;
  int dim;
  Slices(const DLTensor *self, int d)
      : outer_ndim(d), inner_ndim(self->ndim ? self->ndim - d - 1 : 0), t(self), dim(d) {
    for (int i = 0; i < self->ndim; i++) (i < d ? outer : i == d ? size : inner) *= self->shape[i];
  }
  bool dense_rows() const {
    int64_t want = 1;
    for (int i = t->ndim - 1; i > dim; i--) {
      if (t->shape[i] != 1 && t->strides[i] != want) return false;
      want *= t->shape[i];
    }
    return true;
  }
};

template <class T>
void select_rows(const plait_call *c, const Slices &s, const Indices &at, T *out) {
  const bool dense = s.dense_rows();
  const int64_t step = s.t->ndim ? s.t->strides[s.dim] : 0, n = at.count();
  const int64_t grain = s.inner > 0 ? ceil_div(kChunk, s.inner) : 1;
  Counter outer(s.outer_ndim, s.t->shape, s.t->strides);
  for (int64_t o = 0; o < s.outer; o++, outer.next()) {
    const T *base = data<T>(s.t) + outer.offset;
    T *to = out + o * n * s.inner;
    parallel_ranges(c, n, grain, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; i++) {
        const T *row = base + at[i] * step;
        if (dense) {
          memcpy(to + i * s.inner, row, size_t(s.inner) * sizeof(T));
          continue;
        }
        Counter inner(s.inner_ndim, s.t->shape + s.dim + 1, s.t->strides + s.dim + 1);
        for (int64_t k = 0; k < s.inner; k++, inner.next()) to[i * s.inner + k] = row[inner.offset];
      }
    });
  }
}

plait_status select_along(plait_call *c, const DLTensor *self, int dim, const DLTensor *index) {
  Indices at;
  PLAIT_TRY(at.read(c, index, self->ndim ? self->shape[dim] : 1, dim));
  const Slices s(self, dim);
  PLAIT_BY_SIZE(self->dtype.bits / 8, select_rows<T>(c, s, at, data<T>(result(c))))
  return PLAIT_OK;
}

plait_status index_select(plait_call *c) {
  const DLTensor *self = tensor(c, 0);
  return select_along(c, self, int(wrapped(integer(c, 1), self->ndim)), tensor(c, 2));
}
PLAIT_KERNEL("index_select", index_select);

plait_status embedding(plait_call *c) { return select_along(c, tensor(c, 0), 0, tensor(c, 1)); }
PLAIT_KERNEL("embedding", embedding);

template <class T>
void add_rows(const plait_call *c, DLTensor *out, const T *source, const Indices &at, int64_t width,
              int64_t skip) {
  // rows may repeat, so threads share columns out, not rows: the order of additions never depends
  // on their number
  const int64_t grain = at.count() > 0 ? ceil_div(kChunk, at.count()) : width;
  parallel_ranges(c, width, grain < 16 ? 16 : grain, [&](int64_t begin, int64_t end) {
    for (int64_t i = 0; i < at.count(); i++) {
      if (at[i] == skip) continue;
      T *to = data<T>(out) + at[i] * width;
      const T *from = source + i * width;
      for (int64_t k = begin; k < end; k++) to[k] = T(to[k] + from[k]);
    }
  });
}

// embedding_backward(gy, indices, rows, padding_idx): gy has the shape of indices, then the row
plait_status embedding_backward(plait_call *c) {
  const DLTensor *gy = tensor(c, 0);
  DLTensor *out = result(c);
  if (!is_contiguous(gy) || !is_contiguous(out)) return PLAIT_DECLINE;
  Indices at;
  PLAIT_TRY(at.read(c, tensor(c, 1), out->shape[0], 0));
  const int64_t skip = c->n_in > 3 ? integer(c, 3, -1) : -1;
  memset(out->data, 0, size_t(numel(out)) * (out->dtype.bits / 8));
  if (numel(gy) == 0) return PLAIT_OK;
  PLAIT_FLOATING(kind(gy->dtype), add_rows<T>(c, out, data<T>(gy), at, out->shape[1], skip))
  return PLAIT_OK;
}
PLAIT_KERNEL("embedding_backward", embedding_backward);

template <class T>
void add_slices(DLTensor *out, int dim, const DLTensor *source, const Indices &at, T alpha) {
  const Slices s(out, dim);
  int64_t step[PLAIT_MAX_DIMS], stride = 1;
  for (int d = out->ndim - 1; d >= 0; d--) {  // out is dense
    step[d] = d == dim ? 0 : stride;
    stride *= out->shape[d];
  }
  Counter to(source->ndim, source->shape, step), from(source->ndim, source->shape, source->strides);
  for (int64_t i = 0, n = numel(source); i < n; i++, to.next(), from.next()) {
    T &place = data<T>(out)[to.offset + at[source->ndim ? from.at[dim] : 0] * s.inner];
    place = T(place + alpha * data<T>(source)[from.offset]);
  }
}

plait_status index_add(plait_call *c) {  // index_add(self, dim, index, source, *, alpha=1)
  const DLTensor *self = tensor(c, 0), *source = tensor(c, 3);
  DLTensor *out = result(c);
  const int dim = int(wrapped(integer(c, 1), self->ndim));
  Indices at;
  PLAIT_TRY(at.read(c, tensor(c, 2), self->ndim ? self->shape[dim] : 1, dim));
  PLAIT_NUMERIC(kind(self->dtype), {
    Counter from(self->ndim, self->shape, self->strides);
    for (int64_t i = 0, n = numel(out); i < n; i++, from.next())
      data<T>(out)[i] = data<T>(self)[from.offset];
    alignas(16) char number[16];
    store_number(kind(self->dtype), c->in[4], number);
    add_slices<T>(out, dim, source, at, *reinterpret_cast<T *>(number));
  })
  return PLAIT_OK;
}
PLAIT_KERNEL("index_add", index_add);

}  // namespace
}  // namespace plait::core
