// Running extremes with their indices (cummax, cummin) and logcumsumexp along a dimension.
#include "kernel/dense.h"
#include "pointwise/logarithms.h"
#include "pointwise/math.h"

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

template <class T, bool largest>
void running(const T *from, T *to, int64_t *at, const Layout &l) {
  for (int64_t j = 0; j < l.inner; j++) {
    to[j] = from[j];
    at[j] = 0;
  }
  for (int64_t i = 1; i < l.n; i++) {
    const int64_t row = i * l.inner;
#pragma GCC ivdep
    for (int64_t j = row; j < row + l.inner; j++) {
      const T x = from[j], best = to[j - l.inner];
      // nan is kept, with the index of the latest; of equal elements the later one is taken
      const bool better = (x != x) | ((best == best) & (largest ? x >= best : x <= best));
      to[j] = better ? x : best;
      at[j] = better ? i : at[j - l.inner];
    }
  }
}

template <bool largest>
plait_status extremes(const plait_call *c) {
  const DLTensor *self = tensor(c, 0);
  if (numel(self) == 0) return PLAIT_OK;
  const Layout l(self, integer(c, 1));
  const Kind k = kind(self->dtype);
  const auto run = [&](auto zero) -> plait_status {
    using T = decltype(zero);
    Dense<T> from;
    PLAIT_TRY(from.take(c, self));
    const T *p = from;
    T *to = data<T>(result(c));
    int64_t *at = data<int64_t>(result(c, 1));
    parallel_ranges(c, l.outer, l.grain(), [&](int64_t begin, int64_t end) {
      for (int64_t o = begin; o < end; o++) {
        const int64_t first = o * l.n * l.inner;
        running<T, largest>(p + first, to + first, at + first, l);
      }
    });
    return PLAIT_OK;
  };
  if (k == Bool) return run(uint8_t());
  PLAIT_NUMERIC(k, return run(T()))
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
void log_line(const T *from, T *to, int64_t n) {
  double acc = -scalar::math::kInf;
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

// Columns [begin, end) of rows of `inner` elements.
template <class T>
void log_rows(const T *from, T *to, const Layout &l, int64_t begin, int64_t end) {
  for (; begin < end; begin += kBlock) {
    const int64_t width = end - begin < kBlock ? end - begin : kBlock;
    double acc[kBlock];
    for (int64_t j = 0; j < width; j++) {
      acc[j] = double(from[begin + j]);
      to[begin + j] = from[begin + j];
    }
    for (int64_t i = 1; i < l.n; i++) {
      const T *own = from + i * l.inner + begin;
      T *now = to + i * l.inner + begin;
#pragma GCC ivdep
      for (int64_t j = 0; j < width; j++) now[j] = T(acc[j] = log_add(acc[j], double(own[j])));
    }
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
  PLAIT_FLOATING(kind(self->dtype), {
    Dense<T> from;
    PLAIT_TRY(from.take(c, self));
    const T *p = from;
    T *to = data<T>(result(c));
    parallel_ranges(c, l.outer, l.grain() / 8 + 1, [&](int64_t begin, int64_t end) {
      for (int64_t o = begin; o < end; o++) {
        const int64_t first = o * l.n * l.inner;
        if (l.inner == 1) {
          log_line(p + first, to + first, l.n);
          continue;
        }
        log_rows(p + first, to + first, l, 0, l.inner);
      }
    });
  })
  return PLAIT_OK;
}
PLAIT_KERNEL("logcumsumexp", logcumsumexp);

}  // namespace
}  // namespace plait::core
