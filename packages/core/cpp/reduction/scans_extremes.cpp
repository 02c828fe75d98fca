// Running extremes with their indices (cummax, cummin) and logcumsumexp along a dimension.
#include "kernel/dense.h"
#include "pointwise/logarithms.h"
#include "pointwise/math.h"
#include "reduction/numbers.h"

namespace plait::core {
namespace {

struct Layout {  // [outer][n along dim][inner], C order
  int64_t outer = 1, n = 1, inner = 1;
  Layout(const DLTensor *t, int64_t argument) {
    const int64_t dim = t->ndim ? wrapped(argument, t->ndim) : 0;
    for (int d = 0; d < t->ndim; d++) (d < dim ? outer : d == dim ? n : inner) *= t->shape[d];
  }
  int64_t grain() const { return kSerial / 4 / (n * inner) + 1; }
};

constexpr int64_t kRun = 256;  // columns, or elements of a line, that are handled at a time

// Whether x comes after `best`: nan is kept, with the index of the latest; of equal elements the
// later one is taken.
template <bool largest, class T>
PLAIT_INLINE bool comes_after(T best, T x) {
  return (x != x) | ((best == best) & (largest ? x >= best : x <= best));
}

template <class T, bool largest>
void running_line(const Numbers<T> &from, const Numbers<T> &to, int64_t *at, int64_t begin,
                  int64_t n) {
  T best{};
  int64_t index = 0, i = 0;
  each_block<T>(from, to, begin, n, [&](const T *p, T *q, int64_t m) {
    for (int64_t j = 0; j < m; j++, i++) {
      if (i == 0 || comes_after<largest>(best, p[j])) {
        best = p[j];
        index = i;
      }
      q[j] = best;
      at[begin + i] = index;
    }
  });
}

// `width` columns of rows of l.inner elements.
template <class T, bool largest>
void running_columns(const Numbers<T> &from, const Numbers<T> &to, int64_t *at, int64_t begin,
                     int64_t width, const Layout &l) {
  T best[kRun], some[kRun];
  for (int64_t i = 0; i < l.n; i++) {
    const int64_t row = begin + i * l.inner;
    const T *p = from.read(row, width, some);
    int64_t *now = at + row;
    if (i == 0) {
      for (int64_t j = 0; j < width; j++) {
        best[j] = p[j];
        now[j] = 0;
      }
    } else {
      const int64_t *before = now - l.inner;
#pragma GCC ivdep
      for (int64_t j = 0; j < width; j++) {
        const bool later = comes_after<largest>(best[j], p[j]);
        best[j] = later ? p[j] : best[j];
        now[j] = later ? i : before[j];
      }
    }
    to.put(row, 1, width, best);
  }
}

template <class T, bool largest>
plait_status running(const plait_call *c, const DLTensor *self) {
  const Layout l(self, integer(c, 1));
  const Numbers<T> from(self), to(result(c));
  int64_t *at = data<int64_t>(result(c, 1));
  const int64_t width = least(l.inner, kRun), parts = ceil_div(l.inner, width);
  parallel_ranges(
      c, l.outer * parts, kSerial / 4 / (l.n * width) + 1, [&](int64_t begin, int64_t end) {
        for (int64_t k = begin; k < end; k++) {
          const int64_t o = k / parts * l.n * l.inner, j = k % parts * width;
          if (l.inner == 1)
            running_line<T, largest>(from, to, at, o, l.n);
          else
            running_columns<T, largest>(from, to, at, o + j, least(width, l.inner - j), l);
        }
      });
  return PLAIT_OK;
}

template <bool largest>
plait_status extremes(const plait_call *c) {
  const DLTensor *self = tensor(c, 0);
  if (numel(self) == 0) return PLAIT_OK;
  const Kind k = kind(self->dtype);
  if (!is_contiguous(self)) {  // the result has room for a copy in C order
    PLAIT_TRY(copy(c, result(c), self));
    self = result(c);
  }
  if (k == Bool) return running<uint8_t, largest>(c, self);
  if (is_half(k)) return running<float, largest>(c, self);
  PLAIT_NUMERIC(k, return (running<T, largest>(c, self)))
  return PLAIT_OK;
}

plait_status cummax(plait_call *c) { return extremes<true>(c); }
plait_status cummin(plait_call *c) { return extremes<false>(c); }
PLAIT_KERNEL("cummax", cummax);
PLAIT_KERNEL("cummin", cummin);

// log(exp(a) + exp(b)), without branches so that a row of them is vectorised
template <class T>
PLAIT_INLINE T log_add(T a, T b) {
  const T high = a < b ? b : a, low = a < b ? a : b;
  const T sum = high + scalar::math::log1p(scalar::math::exp(low - high));
  const bool infinite = high - high != 0;  // or nan
  return a != a || b != b ? a + b : infinite ? high : sum;
}

constexpr int64_t kBlock = 64;

// A line in blocks around their largest element m: m + log(sum of exp(x - m)), in float64, as an
// error of one result would be in all that follow. If a block's elements rise so far that its first
// sums would underflow, they are added one by one.
template <class T>
void log_line(const T *from, T *to, int64_t n, double &acc) {
  for (int64_t i = 0; i < n; i += kBlock) {
    const int64_t m = n - i < kBlock ? n - i : kBlock;
    double x[kBlock], part[kBlock], top = acc;
    for (int64_t j = 0; j < m; j++) x[j] = double(from[i + j]);
    bool finite = true;
    for (int64_t j = 0; j < m; j++) {
      top = x[j] > top ? x[j] : top;
      finite &= x[j] - x[j] == 0;
    }
    const double first = x[0] > acc ? x[0] : acc;
    if (finite && top - first < 40) {
      for (int64_t j = 0; j < m; j++) part[j] = scalar::math::exp(x[j] - top);
      double sum = scalar::math::exp(acc - top);
      for (int64_t j = 0; j < m; j++) part[j] = sum += part[j];
      for (int64_t j = 0; j < m; j++) part[j] = top + scalar::math::log(part[j]);
      acc = part[m - 1];
    } else {
      for (int64_t j = 0; j < m; j++) part[j] = acc = log_add(acc, x[j]);
    }
    for (int64_t j = 0; j < m; j++) to[i + j] = T(part[j]);
  }
}

// `width` columns of rows of l.inner elements.
template <class T>
void log_columns(const Numbers<T> &from, const Numbers<T> &to, int64_t begin, int64_t width,
                 const Layout &l) {
  double acc[kBlock];
  T some[kBlock];
  for (int64_t i = 0; i < l.n; i++) {
    const int64_t row = begin + i * l.inner;
    const T *own = from.read(row, width, some);
    T *now = to.place(row, some);
    if (i == 0)
      for (int64_t j = 0; j < width; j++) now[j] = T(acc[j] = double(own[j]));
    else
#pragma GCC ivdep
      for (int64_t j = 0; j < width; j++) now[j] = T(acc[j] = log_add(acc[j], double(own[j])));
    to.round(row, width, now);
  }
}

template <class T>
plait_status complex_lines(const plait_call *c, const DLTensor *self, const Layout &l) {
  using C = scalar::math::Complex<T>;
  using Wide = scalar::math::Complex<double>;
  Dense<C> from;
  PLAIT_TRY(from.take(c, self));
  const C *p = from;
  C *to = data<C>(result(c));
  parallel_ranges(c, l.outer * l.inner, l.grain() / 8 + 1, [&](int64_t begin, int64_t end) {
    for (int64_t line = begin; line < end; line++) {
      const int64_t at = line / l.inner * l.n * l.inner + line % l.inner;
      Wide acc(p[at]);
      to[at] = p[at];
      for (int64_t i = 1; i < l.n; i++) {
        acc = scalar::logaddexp(acc, Wide(p[at + i * l.inner]));
        to[at + i * l.inner] = C(acc);
      }
    }
  });
  return PLAIT_OK;
}

plait_status logcumsumexp(plait_call *c) {
  const DLTensor *self = tensor(c, 0);
  if (numel(self) == 0) return PLAIT_OK;
  const Layout l(self, integer(c, 1));
  if (kind(self->dtype) == C64) return complex_lines<float>(c, self, l);
  if (kind(self->dtype) == C128) return complex_lines<double>(c, self, l);
  DLTensor *out = result(c);
  if (!is_contiguous(self)) {
    PLAIT_TRY(copy(c, out, self));
    self = out;
  }
  const int64_t width = least(l.inner, kBlock), parts = ceil_div(l.inner, width);
  PLAIT_COMPUTED(kind(self->dtype), {
    const Numbers<T> from(self), to(out);
    parallel_ranges(
        c, l.outer * parts, kSerial / 32 / (l.n * width) + 1, [&](int64_t begin, int64_t end) {
          for (int64_t k = begin; k < end; k++) {
            const int64_t o = k / parts * l.n * l.inner, j = k % parts * width;
            double acc = -scalar::math::kInf;
            if (l.inner == 1)
              each_block<T>(from, to, o, l.n,
                            [&](const T *p, T *q, int64_t n) { log_line(p, q, n, acc); });
            else
              log_columns<T>(from, to, o + j, least(width, l.inner - j), l);
          }
        });
  })
  return PLAIT_OK;
}
PLAIT_KERNEL("logcumsumexp", logcumsumexp);

}  // namespace
}  // namespace plait::core
