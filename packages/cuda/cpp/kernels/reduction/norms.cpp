// Norms of order 0, 1, 2 and infinity, in float64, and the logarithm of a sum of exponentials.
//
// Squares of float64 are added in three sums, of large, of ordinary and of small numbers, the first
// and the last scaled by powers of 2, so that none overflows or vanishes (Blue 1978, "A portable
// Fortran program to find the Euclidean norm of a vector").
#include "block/reduce.h"
#include "block/softmax.h"
#if PLAIT_HOST
#include "host/reduce.h"
#endif

namespace plait::cuda {

namespace norm_mode {
enum { COUNT, SUM, SQUARES, LARGEST, SMALLEST };
}

#if PLAIT_KERNELS
struct ScaledSquares {
  double large, ordinary, small;
};
constexpr double kLargeNumber = 0x1p486, kSmallNumber = 0x1p-511;
constexpr double kLargeScale = 0x1p-538, kSmallScale = 0x1p537;

PLAIT_DEVICE void add_square(ScaledSquares &s, double x) {
  const double m = scalar::math::abs(x);
  if (m > kLargeNumber) {
    s.large += (m * kLargeScale) * (m * kLargeScale);
  } else if (m < kSmallNumber) {
    s.small += (m * kSmallScale) * (m * kSmallScale);
  } else {
    s.ordinary += m * m;  // nan too
  }
}
PLAIT_DEVICE double root(const ScaledSquares &s) {
  if (s.large > 0) {
    const double rest =
        s.ordinary > 0 || s.ordinary != s.ordinary ? s.ordinary * kLargeScale * kLargeScale : 0;
    return ::sqrt(s.large + rest) / kLargeScale;
  }
  if (s.small == 0 || s.ordinary != s.ordinary) return ::sqrt(s.ordinary);
  const double a = ::sqrt(s.ordinary), b = ::sqrt(s.small) / kSmallScale;
  const double big = a > b ? a : b, little = a > b ? b : a;
  return big * ::sqrt(1 + (little / big) * (little / big));
}

template <class E>
PLAIT_DEVICE double magnitude(E x) {
  if constexpr (scalar::math::is_complex<E>) {
    const double a = scalar::math::abs(double(x.re)), b = scalar::math::abs(double(x.im));
    const double big = a > b ? a : b, little = a > b ? b : a;
    if (big == double(scalar::math::kInf)) return big;
    if (a != a || b != b) return a + b;
    const double share = big > 0 ? little / big : 0;
    return big * ::sqrt(1 + share * share);
  } else {
    return scalar::math::abs(double(widen(x)));
  }
}

// Sums of magnitudes or squares, or the largest or smallest magnitude. Squares of numbers up to
// float32 need no scales in float64.
template <class E>
struct Norm : Elements<E> {
  using Value = double;
  int mode;
  PLAIT_DEVICE Norm(Thread &t, const ReduceArgs &a) : Elements<E>(t, a), mode(a.mode) {}
  PLAIT_DEVICE Value start() const {
    return mode == norm_mode::SMALLEST ? double(scalar::math::kInf) : 0;
  }
  PLAIT_DEVICE Value step(Value a, Value b) const {
    if (mode < norm_mode::LARGEST) return a + b;
    return (mode == norm_mode::LARGEST ? b > a : b < a) || b != b ? b : a;
  }
  PLAIT_DEVICE Value value_of(E x) const {
    if (mode == norm_mode::COUNT) return magnitude(x) != 0 ? 1 : 0;
    if (mode != norm_mode::SQUARES) return magnitude(x);
    if constexpr (scalar::math::is_complex<E>) {
      return double(x.re) * double(x.re) + double(x.im) * double(x.im);
    } else {
      const double y = double(widen(x));
      return y * y;
    }
  }
  template <int N, int width>
  PLAIT_DEVICE void fold(Value &value, const E *x, int64_t, int64_t) const {
    double some[N];
#pragma unroll
    for (int k = 0; k < N; k++) some[k] = value_of(x[k]);
#pragma unroll
    for (int half = N / 2; half > 0; half /= 2) {
#pragma unroll
      for (int k = 0; k < half; k++) some[k] = step(some[k], some[k + half]);
    }
    value = step(value, some[0]);
  }
  PLAIT_DEVICE void finish(Thread &t, const ReduceArgs &a, int64_t i, Value value) const {
    store_real(t, a.out, a.out_kind, i, mode == norm_mode::SQUARES ? ::sqrt(value) : value);
  }
};

// The square root of the sum of squares of numbers of float64.
template <class E>
struct ScaledNorm : Elements<E> {
  using Value = ScaledSquares;
  using Elements<E>::Elements;
  PLAIT_DEVICE Value start() const { return {0, 0, 0}; }
  PLAIT_DEVICE Value step(const Value &a, const Value &b) const {
    return {a.large + b.large, a.ordinary + b.ordinary, a.small + b.small};
  }
  template <int N, int width>
  PLAIT_DEVICE void fold(Value &value, const E *x, int64_t, int64_t) const {
    ScaledSquares some{0, 0, 0};
#pragma unroll
    for (int k = 0; k < N; k++) {
      if constexpr (scalar::math::is_complex<E>) {
        add_square(some, x[k].re);
        add_square(some, x[k].im);
      } else {
        add_square(some, x[k]);
      }
    }
    value = step(value, some);
  }
  PLAIT_DEVICE void finish(Thread &t, const ReduceArgs &a, int64_t i, const Value &value) const {
    store_real(t, a.out, a.out_kind, i, root(value));
  }
};

template <class T>
PLAIT_DEVICE void reduce_norm(Block &t, const ReduceArgs &a) {
  reduce<Norm<T>>(t, a);
}
template <class T>
PLAIT_DEVICE void reduce_scaled_norm(Block &t, const ReduceArgs &a) {
  reduce<ScaledNorm<T>>(t, a);
}

template <class E>
struct LogSumExp : ElementLogSums<E> {
  using typename ElementLogSums<E>::Value;
  using ElementLogSums<E>::ElementLogSums;
  PLAIT_DEVICE void finish(Thread &t, const ReduceArgs &a, int64_t i, const Value &value) const {
    t.global<E>(a.out).store(i, narrow<E>(value_of(value)));
  }
};
template <class T>
PLAIT_DEVICE void reduce_logsumexp(Block &t, const ReduceArgs &a) {
  reduce<LogSumExp<T>>(t, a);
}
#endif
PLAIT_DEVICE_KERNEL(reduce_norm, ReduceArgs, 256, INEXACT);
#define PLAIT_EACH_DOUBLES(X, ...) \
  X(f64, double, __VA_ARGS__)      \
  X(c128, ::plait::cuda::Complex128, __VA_ARGS__)
PLAIT_DEVICE_KERNEL(reduce_scaled_norm, ReduceArgs, 256, DOUBLES);
PLAIT_DEVICE_KERNEL(reduce_logsumexp, ReduceArgs, 256, FLOATING);

#if PLAIT_HOST
namespace {

// (self, p, dim, keepdim, *, dtype)
plait_status norm(plait_call *c) {
  if (c->in[1].tag == PLAIT_COMPLEX) return PLAIT_DECLINE;
  const DLTensor *in = tensor(c, 0);
  const double p = real(c, 1, 2), infinity = __builtin_inf();
  const Kind own = kind(in->dtype);
  ReduceArgs a{};
  a.out = result(c)->data, a.out_kind = kind(result(c)->dtype);
  if (p == 0)
    a.mode = norm_mode::COUNT;
  else if (p == 1)
    a.mode = norm_mode::SUM;
  else if (p == 2)
    a.mode = norm_mode::SQUARES;
  else if (p == infinity)
    a.mode = norm_mode::LARGEST;
  else if (p == -infinity)
    a.mode = norm_mode::SMALLEST;
  else
    return PLAIT_DECLINE;
  const bool is_scaled = p == 2 && (own == F64 || own == C128);
  return launch_reduction(c, is_scaled ? reduce_scaled_norm_kernel : reduce_norm_kernel, in,
                          dims_mask(c, 2, in->ndim), a);
}
PLAIT_KERNEL("norm", norm);

// logsumexp(self, dim, keepdim)
plait_status logsumexp(plait_call *c) {
  const DLTensor *in = tensor(c, 0);
  if (kind(in->dtype) != kind(result(c)->dtype)) return PLAIT_DECLINE;
  ReduceArgs a{};
  a.out = result(c)->data;
  return launch_reduction(c, reduce_logsumexp_kernel, in, dims_mask(c, 1, in->ndim), a);
}
PLAIT_KERNEL("logsumexp", logsumexp);

}  // namespace
#endif
}  // namespace plait::cuda
