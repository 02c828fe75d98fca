// Advanced indexing: index(self, indices) and index_put_(self, indices, values, accumulate).
// Integer arrays are broadcast together, a bool mask stands for the integer arrays of its true
// positions, None for a whole dimension. The broadcast dimensions stand where the indexed ones
// stood if those are adjacent, else in front (NumPy's rule).
#include <new>

#include "kernel/indices.h"
#include "pointwise/math.h"

namespace plait::core {
namespace {

constexpr int kMost = PLAIT_MAX_DIMS;

struct Axis {  // one index array for one dimension of self
  int dim;
  Indices values;
  int ndim = 0;
  int64_t shape[kMost], stride[kMost];
};

class Walk {
 public:
  plait_status plan(const plait_call *c, const DLTensor *self, const plait_value &list);
  Walk() = default;
  Walk(const Walk &) = delete;
  Walk &operator=(const Walk &) = delete;
  ~Walk() {
    for (int i = 0; i < n_axes_; i++) axes_[i].~Axis();
  }

  int ndim() const { return outer_ + b_ndim_ + inner_; }
  const int64_t *shape() const { return shape_; }
  int64_t outer_numel() const { return count(0, outer_); }
  int64_t b_numel() const { return count(outer_, outer_ + b_ndim_); }
  int64_t inner_numel() const { return count(outer_ + b_ndim_, ndim()); }
  // Elements from self's start to broadcast position b.
  const int64_t *offsets() const { return offsets_.as<int64_t>(); }

  int outer_ = 0, b_ndim_ = 0,
      inner_ = 0;  // the result's dimensions: outer slices, broadcast, inner slices
  int64_t shape_[2 * kMost];
  int64_t slice_stride_[2 * kMost];  // self's strides of the slices; those of the broadcast
                                     // dimensions are unused

 private:
  int64_t count(int from, int to) const {
    int64_t n = 1;
    for (int d = from; d < to; d++) n *= shape_[d];
    return n;
  }
  plait_status broadcast(const plait_call *c);
  plait_status make_offsets(const plait_call *c, const DLTensor *self);

  Workspace memory_;  // of the axes
  Axis *axes_ = nullptr;
  int n_axes_ = 0;
  int64_t b_shape_[kMost];
  Workspace offsets_;
};

plait_status Walk::broadcast(const plait_call *c) {
  for (int i = 0; i < n_axes_; i++)
    if (axes_[i].ndim > b_ndim_) b_ndim_ = axes_[i].ndim;
  for (int d = 0; d < b_ndim_; d++) b_shape_[d] = 1;
  for (int i = 0; i < n_axes_; i++) {
    const int shift = b_ndim_ - axes_[i].ndim;
    for (int d = 0; d < axes_[i].ndim; d++) {
      int64_t &size = b_shape_[d + shift];
      if (axes_[i].shape[d] == 1 || axes_[i].shape[d] == size) continue;
      if (size != 1)
        return PLAIT_FAIL(c, PLAIT_INDEX_ERROR,
                          "index arrays of sizes %lld and %lld do not broadcast together",
                          (long long)size, (long long)axes_[i].shape[d]);
      size = axes_[i].shape[d];
    }
  }
  return PLAIT_OK;
}

plait_status Walk::make_offsets(const plait_call *c, const DLTensor *self) {
  int64_t n = 1;
  for (int d = 0; d < b_ndim_; d++) n *= b_shape_[d];
  PLAIT_TRY(offsets_.take(c, uint64_t(n ? n : 1) * sizeof(int64_t)));
  auto *to = offsets_.as<int64_t>();
  for (int64_t i = 0; i < n; i++) to[i] = 0;
  for (int a = 0; a < n_axes_; a++) {
    const Axis &axis = axes_[a];
    int64_t stride[kMost];
    for (int d = 0; d < b_ndim_; d++) {
      const int own = d - (b_ndim_ - axis.ndim);
      stride[d] = own < 0 || axis.shape[own] == 1 ? 0 : axis.stride[own];
    }
    Counter at(b_ndim_, b_shape_, stride);
    const int64_t step = self->strides[axis.dim];
    for (int64_t i = 0; i < n; i++, at.next()) to[i] += axis.values[at.offset] * step;
  }
  return PLAIT_OK;
}

plait_status Walk::plan(const plait_call *c, const DLTensor *self, const plait_value &list) {
  PLAIT_TRY(memory_.take(c, kMost * sizeof(Axis)));
  axes_ = memory_.as<Axis>();
  bool indexed[kMost] = {};
  int dim = 0;
  for (uint32_t i = 0; i < list.n; i++) {
    const plait_tensor *t = list.u.ts[i];
    if (!t) {
      dim++;
      continue;
    }
    if (dim >= self->ndim)
      return PLAIT_FAIL(c, PLAIT_INDEX_ERROR, "too many indices for a tensor of %d dimensions",
                        self->ndim);
    Axis &a = *new (axes_ + n_axes_) Axis;
    n_axes_++;
    PLAIT_TRY(a.values.read(c, &t->dl, self->shape[dim], dim));
    a.dim = dim;
    a.ndim = t->dl.ndim;
    int64_t step = 1;
    for (int d = a.ndim - 1; d >= 0; d--) {
      a.shape[d] = t->dl.shape[d];
      a.stride[d] = step;
      step *= t->dl.shape[d];
    }
    indexed[dim++] = true;
  }
  PLAIT_TRY(broadcast(c));
  int first = -1, last = -1, gaps = 0;
  for (int d = 0; d < self->ndim; d++) {
    if (!indexed[d]) continue;
    if (first < 0) first = d;
    if (last >= 0 && last != d - 1) gaps++;
    last = d;
  }
  int slices = 0;
  for (int d = 0; d < self->ndim; d++) slices += !indexed[d];
  if (slices + b_ndim_ > PLAIT_MAX_DIMS)
    return PLAIT_FAIL(c, PLAIT_SHAPE_ERROR,
                      "the result would have %d dimensions; at most %d are supported",
                      slices + b_ndim_, PLAIT_MAX_DIMS);
  int at = 0;
  const auto put_slices = [&](int from, int to) {
    for (int d = from; d < to; d++) {
      if (indexed[d]) continue;
      slice_stride_[at] = self->strides[d];
      shape_[at++] = self->shape[d];
    }
    return at;
  };
  outer_ = gaps ? 0 : put_slices(0, first < 0 ? self->ndim : first);
  for (int d = 0; d < b_ndim_; d++) shape_[at++] = b_shape_[d];
  inner_ = put_slices(gaps || first < 0 ? (first < 0 ? self->ndim : 0) : first, self->ndim) -
           outer_ - b_ndim_;
  return make_offsets(c, self);
}

// Calls f(self offset, run) for the runs of inner elements numbered [begin, end).
template <class F>
void each_run(const Walk &w, int64_t begin, int64_t end, F &&f) {
  const int64_t b = w.b_numel(), *offsets = w.offsets();
  for (int64_t run = begin; run < end;) {
    int64_t outer = 0, rest = run / b;
    for (int d = w.outer_ - 1; d >= 0; d--) {
      outer += rest % w.shape_[d] * w.slice_stride_[d];
      rest /= w.shape_[d];
    }
    const int64_t first = run / b * b, last = first + b < end ? first + b : end;
    for (; run < last; run++) f(outer + offsets[run - first], run);
  }
}

// Whether elements with these strides lie one after the other.
bool is_dense(int ndim, const int64_t *shape, const int64_t *stride) {
  int64_t want = 1;
  for (int d = ndim - 1; d >= 0; d--) {
    if (shape[d] != 1 && stride[d] != want) return false;
    want *= shape[d];
  }
  return true;
}

template <class T>
void read_runs(const plait_call *c, const Walk &w, const T *self, T *out) {
  const int before = w.outer_ + w.b_ndim_;
  const int64_t *shape = w.shape_ + before, *stride = w.slice_stride_ + before;
  const int64_t n = w.inner_numel(), runs = w.outer_numel() * w.b_numel();
  const bool dense = is_dense(w.inner_, shape, stride);
  parallel_ranges(c, n ? runs : 0, kSerial / (n + 1) + 1, [&](int64_t begin, int64_t end) {
    each_run(w, begin, end, [&](int64_t offset, int64_t run) {
      T *to = out + run * n;
      if (n == 1) {
        *to = self[offset];
      } else if (dense) {
        memcpy(to, self + offset, size_t(n) * sizeof(T));
      } else {
        Counter at(w.inner_, shape, stride);
        for (int64_t i = 0; i < n; i++, at.next()) to[i] = self[offset + at.offset];
      }
    });
  });
}

plait_status index(plait_call *c) {
  const DLTensor *self = tensor(c, 0);
  Walk w;
  PLAIT_TRY(w.plan(c, self, c->in[1]));
  DLTensor *out = result(c);
  PLAIT_BY_SIZE(size_of(kind(self->dtype)), read_runs(c, w, data<T>(self), data<T>(out)))
  return PLAIT_OK;
}
PLAIT_KERNEL("index_tensors", index);

struct Values {  // the values to be written: a tensor that broadcasts to the walk's shape
  const DLTensor *t;
  int64_t stride[2 * kMost];
};

plait_status fit(const plait_call *c, const Walk &w, const DLTensor *t, Values *v) {
  v->t = t;
  const int shift = w.ndim() - t->ndim;
  bool fits = true;
  // leading dimensions of size 1 are ignored
  for (int d = 0; d < -shift; d++) fits &= t->shape[d] == 1;
  for (int d = 0; d < w.ndim(); d++) {
    const int own = d - shift;
    v->stride[d] = own < 0 || t->shape[own] == 1 ? 0 : t->strides[own];
    if (own >= 0 && t->shape[own] != 1 && t->shape[own] != w.shape()[d]) fits = false;
  }
  if (fits) return PLAIT_OK;
  char want[256] = "", have[256] = "";
  const auto print = [](char *to, const int64_t *shape, int n) {
    int used = 0;
    for (int d = 0; d < n && used < 230; d++)
      used += __builtin_snprintf(to + used, size_t(256 - used), d ? ", %lld" : "%lld",
                                 (long long)shape[d]);
  };
  print(want, w.shape(), w.ndim());
  print(have, t->shape, t->ndim);
  return PLAIT_FAIL(c, PLAIT_SHAPE_ERROR,
                    "`values` of shape (%s) does not broadcast to the indexed shape (%s)", have,
                    want);
}

template <class T, bool Add>
PLAIT_INLINE void put(T *to, const T &value) {
  if constexpr (Add) {
    using W = scalar::math::wide<T>;
    *to = T(W(*to) + W(value));
  } else {
    *to = value;
  }
}

// Runs of different outer positions do not overlap, so several threads may write them.
template <class T, bool Add>
void write_runs(const plait_call *c, const Walk &w, T *self, const T *values,
                const int64_t *stride) {
  const int before = w.outer_ + w.b_ndim_;
  const int64_t n = w.inner_numel(), b = w.b_numel();
  const int64_t *shape = w.shape_ + before, *own = w.slice_stride_ + before;
  const bool dense = is_dense(w.inner_, shape, own);
  const bool row = n == 1 || (dense && is_dense(w.inner_, shape, stride + before));
  bool one_value = dense;  // for all of a row
  for (int d = 0; d < w.inner_; d++) one_value &= stride[before + d] == 0 || shape[d] == 1;
  parallel_ranges(c, w.outer_numel(), kSerial / (b * n) + 1, [&](int64_t begin, int64_t end) {
    Counter from(before, w.shape_, stride);
    from.seek(begin * b);
    each_run(w, begin * b, end * b, [&](int64_t offset, int64_t) {
      const T *value = values + from.offset;
      T *to = self + offset;
      if (row && !Add && n > 1) {
        memmove(to, value, size_t(n) * sizeof(T));
      } else if (row) {
        for (int64_t i = 0; i < n; i++) put<T, Add>(to + i, value[i]);
      } else if (one_value) {
        const T each = *value;
        for (int64_t i = 0; i < n; i++) put<T, Add>(to + i, each);
      } else {
        Counter at(w.inner_, shape, own), each(w.inner_, shape, stride + before);
        for (int64_t i = 0; i < n; i++, at.next(), each.next())
          put<T, Add>(to + at.offset, value[each.offset]);
      }
      from.next();
    });
  });
}

plait_status index_put(plait_call *c) {
  DLTensor *self = &c->in[0].u.t->dl;
  const Kind k = kind(self->dtype);
  const bool add = integer(c, 3) != 0;
  Walk w;
  PLAIT_TRY(w.plan(c, self, c->in[1]));
  alignas(16) char number[16];
  DLTensor scalar = *self;
  Values v;
  const DLTensor *values = tensor(c, 2);
  if (!values) {
    store_number(k, c->in[2], number);
    scalar.data = number;
    scalar.ndim = 0;
    values = &scalar;
  }
  if (kind(values->dtype) != k) return PLAIT_DECLINE;
  PLAIT_TRY(fit(c, w, values, &v));
  if (w.outer_numel() == 0 || w.b_numel() == 0 || w.inner_numel() == 0) return PLAIT_OK;
  if (add && k == Bool) {
    write_runs<bool, true>(c, w, data<bool>(self), data<bool>(values), v.stride);
  } else if (add && is_complex_kind(k)) {
    PLAIT_COMPLEX(k, (write_runs<T, true>(c, w, data<T>(self), data<T>(values), v.stride)))
  } else if (add) {
    PLAIT_NUMERIC(k, (write_runs<T, true>(c, w, data<T>(self), data<T>(values), v.stride)))
  } else {
    PLAIT_BY_SIZE(size_of(k),
                  (write_runs<T, false>(c, w, data<T>(self), data<T>(values), v.stride)))
  }
  return PLAIT_OK;
}
PLAIT_KERNEL("index_put_tensors_", index_put);

}  // namespace
}  // namespace plait::core
