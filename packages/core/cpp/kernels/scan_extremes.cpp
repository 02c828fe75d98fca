// Running extremes with their places (cummax, cummin) and logcumsumexp along a dimension.
#include "kernels/dense.h"
#include "scalar/math.h"

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
      // nan stays until the next one; of equal elements the later counts
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

template <class T>
PLAIT_INLINE T log_add(T a, T b) {
  const T high = a < b ? b : a, low = a < b ? a : b;
  if (a != a || b != b) return a + b;
  if (high - high != 0) return high;  // infinite
  return high + scalar::math::log1p(scalar::math::exp(low - high));
}

plait_status logcumsumexp(plait_call *c) {
  const DLTensor *self = tensor(c, 0);
  if (numel(self) == 0) return PLAIT_OK;
  const Layout l(self, integer(c, 1));
  PLAIT_FLOATING(kind(self->dtype), {
    Dense<T> from;
    PLAIT_TRY(from.take(c, self));
    const T *p = from;
    T *to = data<T>(result(c));
    parallel_ranges(c, l.outer, l.grain() / 8 + 1, [&](int64_t begin, int64_t end) {
      for (int64_t o = begin; o < end; o++) {
        const int64_t first = o * l.n * l.inner;
        for (int64_t j = 0; j < l.inner; j++) to[first + j] = p[first + j];
        for (int64_t i = first + l.inner; i < first + l.n * l.inner; i++)
          to[i] = log_add(to[i - l.inner], p[i]);
      }
    });
  })
  return PLAIT_OK;
}
PLAIT_KERNEL("logcumsumexp", logcumsumexp);

}  // namespace
}  // namespace plait::core
