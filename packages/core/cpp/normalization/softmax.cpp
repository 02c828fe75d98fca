// softmax, log_softmax, their derivatives, and logsumexp: one pass over each row while it is in the
// first-level cache.
#include "kernel/copy.h"
#include "kernel/half.h"
#include "normalization/softmax_rows.h"
#include "reduction/reduce.h"

namespace plait::core {
namespace {

template <class T>
void softmax_row(const T *x, int64_t n, T *out) {
  if (n <= kShort) {
    ShortRow<T> row(x, n);
    return row.write(splat(T(1)) / row.exp(), out);
  }
  const T scale = T(1) / exp_row_total(x, largest(x, n), n, out);
  for (int64_t i = 0; i < n; i++) out[i] *= scale;
}

template <class T>
PLAIT_INLINE T dot_row(const T *a, const T *b, int64_t n) {
  Vec<T> s = {}, t = {};
  constexpr int64_t w = kLanes<T>;
  int64_t i = 0;
  for (; i + 2 * w <= n; i += 2 * w) {
    s = fused(load(a + i), load(b + i), s);
    t = fused(load(a + i + w), load(b + i + w), t);
  }
  T sum = sum_of<T>(s + t);
  for (; i < n; i++) sum = fused(a[i], b[i], sum);
  return sum;
}

template <class T>
void softmax_backward_row(const T *g, const T *y, int64_t n, T *out) {
  const T d = dot_row(g, y, n);
  for (int64_t i = 0; i < n; i++) out[i] = (g[i] - d) * y[i];
}

template <class T>
void log_softmax_backward_row(const T *g, const T *y, int64_t n, T *out) {
  const T s = total(g, n);
#pragma GCC ivdep
  for (int64_t i = 0; i < n; i++) out[i] = g[i] - math::exp(y[i]) * s;
}

// Rows of any layout.

// A tensor whose dimension `dim` is last and contiguous: the tensor itself, or a copy.
template <class T>
class Rows {
 public:
  plait_status take(const plait_call *c, const DLTensor *t, int64_t dim, bool fill = true) {
    describe(t, dim);
    if (n_ <= 1 || t->strides[dim] == 1) return PLAIT_OK;
    if (elements_.widens()) return PLAIT_DECLINE;  // a copy in float32 is turned faster
    PLAIT_TRY(space_.take(c, uint64_t(numel(t)) * sizeof(T)));
    moved_ = *t;
    int n = 0;
    for (int d = 0; d < t->ndim; d++)
      if (d != dim) order_[n++] = d;
    order_[n] = int(dim);
    int64_t step = 1;
    for (int i = t->ndim - 1; i >= 0; i--) {
      strides_[order_[i]] = step;
      step *= t->shape[order_[i]];
    }
    moved_.strides = strides_;
    moved_.data = space_.as<char>();
    source_ = t;
    if (fill) PLAIT_TRY(copy(c, &moved_, t));
    describe(&moved_, dim);
    return PLAIT_OK;
  }
  plait_status give_back(const plait_call *c) const {
    return source_ ? copy(c, source_, &moved_) : PLAIT_OK;
  }
  bool widens() const { return elements_.widens(); }
  const T *read(int64_t i, T *memory) const { return elements_.read(rest_.offset(i), n_, memory); }
  T *place(int64_t i, T *memory) const { return elements_.place(rest_.offset(i), memory); }
  void round(int64_t i, const T *memory) const { elements_.round(rest_.offset(i), n_, memory); }
  int64_t length() const { return n_; }
  int64_t count() const { return rest_.count; }

 private:
  void describe(const DLTensor *t, int64_t dim) {
    rest_ = Axes();
    elements_ = Elements<T>(t);
    n_ = t->ndim ? t->shape[dim] : 1;
    for (int d = 0; d < t->ndim; d++)
      if (d != dim) rest_.push(t->shape[d], t->strides[d]);
  }
  Elements<T> elements_;
  int64_t n_ = 1;
  Axes rest_;
  Workspace space_;
  DLTensor moved_;
  const DLTensor *source_ = nullptr;
  int64_t strides_[PLAIT_MAX_DIMS];
  int order_[PLAIT_MAX_DIMS];
};

int64_t grain(int64_t n) { return kSerial / 4 / (n + 1) + 1; }

template <class T, class F>
plait_status map_rows(const plait_call *c, F &&f) {
  DLTensor *out = result(c);
  if (numel(out) == 0) return PLAIT_OK;
  const int64_t dim = out->ndim ? wrapped(integer(c, 1), out->ndim) : 0;
  Rows<T> from, to;
  PLAIT_TRY(from.take(c, tensor(c, 0), dim));
  PLAIT_TRY(to.take(c, out, dim, false));
  const int64_t n = from.length();
  auto rows = [&](int64_t begin, int64_t end, T *memory) {
    for (int64_t i = begin; i < end; i++) {
      T *made = to.place(i, memory);
      f(from.read(i, memory), n, made);
      to.round(i, made);
    }
  };
  PLAIT_TRY(parallel_with_memory<T>(c, from.count(), grain(n), from.widens() || to.widens() ? n : 0,
                                    rows));
  return to.give_back(c);
}

template <class T, class F>
plait_status map_rows_2(const plait_call *c, F &&f) {
  DLTensor *out = result(c);
  if (numel(out) == 0) return PLAIT_OK;
  const int64_t dim = out->ndim ? wrapped(integer(c, 2), out->ndim) : 0;
  Rows<T> a, b, to;
  PLAIT_TRY(a.take(c, tensor(c, 0), dim));
  PLAIT_TRY(b.take(c, tensor(c, 1), dim));
  PLAIT_TRY(to.take(c, out, dim, false));
  const int64_t n = a.length();
  const bool widens = a.widens() || b.widens() || to.widens();
  auto rows = [&](int64_t begin, int64_t end, T *memory) {
    for (int64_t i = begin; i < end; i++) {
      T *made = to.place(i, memory + 2 * n);
      f(a.read(i, memory), b.read(i, memory + n), n, made);
      to.round(i, made);
    }
  };
  PLAIT_TRY(parallel_with_memory<T>(c, a.count(), grain(n), widens ? 3 * n : 0, rows));
  return to.give_back(c);
}

constexpr int64_t kGroup = 8;  // rows whose logarithms are computed together

template <class T>
plait_status log_softmax_rows(const plait_call *c) {
  DLTensor *out = result(c);
  if (numel(out) == 0) return PLAIT_OK;
  const int64_t dim = out->ndim ? wrapped(integer(c, 1), out->ndim) : 0;
  Rows<T> from, to;
  PLAIT_TRY(from.take(c, tensor(c, 0), dim));
  PLAIT_TRY(to.take(c, out, dim, false));
  const int64_t n = from.length();
  auto groups = [&](int64_t begin, int64_t end, T *memory) {
    for (; begin < end; begin += kGroup) {
      const int64_t rows = end - begin < kGroup ? end - begin : kGroup;
      T top[kGroup], rest[kGroup];
      for (int64_t r = 0; r < kGroup; r++) {
        const LogSum<T> sum =
            r < rows ? exp_sum(from.read(begin + r, memory), n) : LogSum<T>{T(0), T(1)};
        top[r] = sum.top;
        rest[r] = sum.rest;
      }
#pragma GCC ivdep
      for (int64_t r = 0; r < kGroup; r++) rest[r] = math::log(rest[r]);
      for (int64_t r = 0; r < rows; r++) {
        const T *x = from.read(begin + r, memory), shift = top[r], log = rest[r];
        T *y = to.place(begin + r, memory + n);
        for (int64_t j = 0; j < n; j++) y[j] = (x[j] - shift) - log;
        to.round(begin + r, y);
      }
    }
  };
  PLAIT_TRY(parallel_with_memory<T>(c, from.count(), grain(n),
                                    from.widens() || to.widens() ? 2 * n : 0, groups));
  return to.give_back(c);
}

plait_status softmax(plait_call *c) {
  PLAIT_COMPUTED(kind(result(c)->dtype), return map_rows<T>(c, softmax_row<T>))
  return PLAIT_OK;
}
plait_status log_softmax(plait_call *c) {
  PLAIT_COMPUTED(kind(result(c)->dtype), return log_softmax_rows<T>(c))
  return PLAIT_OK;
}
plait_status softmax_backward(plait_call *c) {
  PLAIT_COMPUTED(kind(result(c)->dtype), return map_rows_2<T>(c, softmax_backward_row<T>))
  return PLAIT_OK;
}
plait_status log_softmax_backward(plait_call *c) {
  PLAIT_COMPUTED(kind(result(c)->dtype), return map_rows_2<T>(c, log_softmax_backward_row<T>))
  return PLAIT_OK;
}

// logsumexp(self, dim, keepdim)
plait_status logsumexp(plait_call *c) {
  const DLTensor *in = tensor(c, 0);
  DLTensor *out = result(c);
  const Kind k = kind(out->dtype);
  Workspace space;
  Reduction r;
  PLAIT_TRY(prepare(c, in, dims_mask(c, 1, in->ndim), k, Layout::kRow, &space, &r));
  const int64_t n = r.reduced.count;
  PLAIT_FLOATING(k, {
    T *to = data<T>(out);
    const T *from = reinterpret_cast<const T *>(r.data);
    parallel_ranges(c, r.kept.count, grain(n), [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; i++)
        to[i] = n ? log_sum(from + r.kept.offset(i), n).value() : -T(math::kInf);
    });
  })
  return PLAIT_OK;
}

PLAIT_KERNEL("softmax", softmax);
PLAIT_KERNEL("log_softmax", log_softmax);
PLAIT_KERNEL("softmax_backward", softmax_backward);
PLAIT_KERNEL("log_softmax_backward", log_softmax_backward);
PLAIT_KERNEL("logsumexp", logsumexp);

}  // namespace
}  // namespace plait::core
