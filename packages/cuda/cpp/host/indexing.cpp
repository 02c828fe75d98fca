#include "host/indexing.h"

namespace plait::cuda {
namespace {

void add_dimension(IndexSpace *s, int64_t size, int64_t self, int64_t index) {
  s->shape[s->ndim] = size;
  s->self[s->ndim] = size == 1 ? 0 : self;
  s->index[s->ndim] = size == 1 ? 0 : index;
  s->other[s->ndim++] = 0;
}

void widen_range(IndexSpace *s, int64_t size, int64_t step) {
  const int64_t most = size > 0 ? (size - 1) * step : 0;
  (most < 0 ? s->lowest : s->highest) += most;
}

void set_index(IndexSpace *s, const DLTensor *self, const DLTensor *index, int64_t dim) {
  s->indices = data<int64_t>(index);
  s->size = self->ndim ? self->shape[dim] : 1;
  s->step = self->ndim ? self->strides[dim] : 0;
  s->low = -s->size;
  widen_range(s, s->size, s->step);
}

}  // namespace

void IndexSpace::set_other(const DLTensor *t) {
  const int lead = ndim - t->ndim;
  for (int d = 0; d < ndim; d++) {
    const int own = d - lead;
    other[d] = own < 0 || t->shape[own] == 1 ? 0 : t->strides[own];
  }
}

void space_along(const DLTensor *self, const DLTensor *index, int64_t dim, IndexSpace *s) {
  set_index(s, self, index, dim);
  for (int d = 0; d < index->ndim; d++)
    add_dimension(s, index->shape[d], d == dim || d >= self->ndim ? 0 : self->strides[d],
                  index->strides[d]);
}

void space_of_slices(const DLTensor *self, const DLTensor *index, int64_t dim, IndexSpace *s) {
  set_index(s, self, index, dim);
  const int64_t step = index->ndim ? index->strides[0] : 0;
  for (int d = 0; d < self->ndim; d++)
    if (d == dim)
      add_dimension(s, numel(index), 0, step);
    else
      add_dimension(s, self->shape[d], self->strides[d], 0);
}

void space_of_rows(const DLTensor *self, const DLTensor *index, IndexSpace *s) {
  set_index(s, self, index, 0);
  s->low = 0;
  for (int d = 0; d < index->ndim; d++) add_dimension(s, index->shape[d], 0, index->strides[d]);
  add_dimension(s, self->shape[1], self->strides[1], 0);
}

plait_status TensorIndices::make_offsets(const plait_call *c, const DLTensor *self,
                                         const int64_t *shape, int ndim) {
  int64_t n = 1;
  for (int d = 0; d < ndim; d++) n *= shape[d];
  PLAIT_TRY(offsets_.take(c, (n ? n : 1) * 8));
  for (int i = 0; i < n_axes_; i++)
    PLAIT_TRY(add_index_offsets(c, axes_[i].index.tensor(), shape, ndim, self->shape[axes_[i].dim],
                                self->strides[axes_[i].dim], i == 0, offsets_.data<int64_t>()));
  return PLAIT_OK;
}

plait_status TensorIndices::take(const plait_call *c, const DLTensor *self, const plait_value &list,
                                 IndexSpace *s) {
  bool is_indexed[PLAIT_MAX_DIMS] = {};
  int64_t shape[PLAIT_MAX_DIMS];  // to which the indices broadcast
  int ndim = 0, first = -1, last = -1;
  bool has_gap = false;
  for (uint32_t i = 0; i < list.n; i++) {
    if (!list.u.ts[i]) continue;
    const int dim = int(i);
    if (dim >= self->ndim)
      return PLAIT_FAIL(c, PLAIT_INDEX_ERROR, "too many indices for a tensor of %d dimensions",
                        self->ndim);
    Axis &a = axes_[n_axes_++];
    a.dim = dim;
    const DLTensor *t = &list.u.ts[i]->dl;
    PLAIT_TRY(a.index.take_as(c, t, DLDataType{kDLInt, 64, 1}));
    is_indexed[dim] = true;
    has_gap |= last >= 0 && last != dim - 1;
    first = first < 0 ? dim : first;
    last = dim;
    for (; ndim < t->ndim; ndim++) {  // new dimensions in front
      memmove(shape + 1, shape, size_t(ndim) * sizeof(int64_t));
      shape[0] = 1;
    }
    for (int d = 0; d < t->ndim; d++)
      if (t->shape[d] != 1) shape[ndim - t->ndim + d] = t->shape[d];
  }
  const auto add_slices = [&](int from, int to) {
    for (int d = from; d < to; d++)
      if (!is_indexed[d]) add_dimension(s, self->shape[d], self->strides[d], 0);
  };
  const int outer = has_gap ? 0 : first < 0 ? self->ndim : first;
  add_slices(0, outer);
  const bool is_direct = n_axes_ == 1;  // one index tensor is read as it is
  int64_t strides[PLAIT_MAX_DIMS], step = 1;
  for (int d = ndim - 1; d >= 0; d--) {
    strides[d] = step;
    step *= shape[d];
  }
  for (int d = 0; d < ndim; d++) add_dimension(s, shape[d], 0, strides[d]);
  add_slices(outer, self->ndim);
  if (is_direct) {
    set_index(s, self, axes_[0].index.tensor(), axes_[0].dim);
    return PLAIT_OK;
  }
  PLAIT_TRY(make_offsets(c, self, shape, ndim));
  if (n_axes_ == 0) PLAIT_TRY(fill_bytes(c, offsets_.data(), 0, 8));
  for (int i = 0; i < n_axes_; i++)
    widen_range(s, self->shape[axes_[i].dim], self->strides[axes_[i].dim]);
  s->indices = offsets_.data<int64_t>();
  s->is_checked = false;
  return PLAIT_OK;
}

}  // namespace plait::cuda
