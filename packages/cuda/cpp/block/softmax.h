// Sums of exponentials, which do not overflow: relative to the largest exponent.
#pragma once
#include "block/reduce.h"

#if PLAIT_KERNELS
namespace plait::cuda {

// log(sum(exp(x))) as the largest number and the sum of exp(x - that).
template <class T>
struct LogSum {
  T top, sum;
};
template <class T>
PLAIT_DEVICE T finite_or_zero(T x) {
  return x - x == T(0) ? x : T(0);
}
template <class T>
PLAIT_DEVICE LogSum<T> no_log_sum() {
  return {-T(scalar::math::kInf), T(0)};
}
// The sum of exponentials of differences from another base.
template <class T>
PLAIT_DEVICE T sum_from(const LogSum<T> &v, T base) {
  return v.sum == T(0) ? T(0) : v.sum * scalar::math::exp(finite_or_zero(v.top) - base);
}
template <class T>
PLAIT_DEVICE LogSum<T> join_log_sums(const LogSum<T> &a, const LogSum<T> &b) {
  const T top = a.top > b.top ? a.top : b.top, base = finite_or_zero(top);
  return {top, sum_from(a, base) + sum_from(b, base)};
}
// Of N numbers, a power of 2, which are overwritten.
template <int N, class T>
PLAIT_DEVICE LogSum<T> log_sum_of(T *x) {
  T top = -T(scalar::math::kInf);
#pragma unroll
  for (int k = 0; k < N; k++) top = x[k] > top ? x[k] : top;
  const T base = finite_or_zero(top);
#pragma unroll
  for (int k = 0; k < N; k++) x[k] = scalar::math::exp(x[k] - base);
#pragma unroll
  for (int half = N / 2; half > 0; half /= 2) {
#pragma unroll
    for (int k = 0; k < half; k++) x[k] += x[k + half];
  }
  return {top, x[0]};
}
// log(sum(exp(x)))
template <class T>
PLAIT_DEVICE T value_of(const LogSum<T> &v) {
  const bool infinite = v.top - v.top != T(0) && v.sum == v.sum;
  return infinite ? v.top : finite_or_zero(v.top) + scalar::math::log(v.sum);
}

// A reduction of elements to sums of exponentials, without its end.
template <class E>
struct ElementLogSums : Elements<E> {
  using T = Compute<E>;
  using Value = LogSum<T>;
  using Elements<E>::Elements;
  PLAIT_DEVICE Value start() const { return no_log_sum<T>(); }
  PLAIT_DEVICE Value step(const Value &a, const Value &b) const { return join_log_sums(a, b); }
  template <int N, int width>
  PLAIT_DEVICE void fold(Value &value, const E *x, int64_t, int64_t) const {
    T some[N];
#pragma unroll
    for (int k = 0; k < N; k++) some[k] = widen(x[k]);
    value = join_log_sums(value, log_sum_of<N>(some));
  }
};

// What a row with an infinite largest element has no softmax of.
template <class T>
PLAIT_DEVICE T sum_or_nan(const LogSum<T> &v) {
  return v.top - v.top == T(0) ? v.sum : T(scalar::math::kNan);
}

}  // namespace plait::cuda
#endif
