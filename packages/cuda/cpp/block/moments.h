// The mean and the sum of squared differences of many numbers. Some numbers at a time are taken
// around their own mean; such moments are put together by Chan, Golub and LeVeque's formula, so
// that no difference of large sums is taken.
#pragma once
#include "block/reduce.h"

#if PLAIT_KERNELS
namespace plait::cuda {

struct Moments {
  double count, mean, squares;  // squares: sum of (x - mean)^2
};

PLAIT_DEVICE Moments join_moments(const Moments &a, const Moments &b) {
  if (b.count == 0) return a;
  if (a.count == 0) return b;
  const double n = a.count + b.count, share = b.count / n;
  const double d = a.mean == b.mean ? 0 : b.mean - a.mean;
  // an infinite mean stays so beside finite ones
  const double mean = d - d == 0 ? a.mean + d * share : a.mean * (1 - share) + b.mean * share;
  return {n, mean, a.squares + b.squares + d * d * (a.count * share)};
}

// The moments of N numbers, a power of 2. Their mean may overflow nowhere: each is divided first.
template <int N, class T>
PLAIT_DEVICE Moments moments_of(const T *x) {
  T some[N];
#pragma unroll
  for (int k = 0; k < N; k++) some[k] = x[k] * (T(1) / T(N));
#pragma unroll
  for (int half = N / 2; half > 0; half /= 2) {
#pragma unroll
    for (int k = 0; k < half; k++) some[k] += some[k + half];
  }
  // the mean is rounded: `rest` is what it leaves
  const T mean = some[0];
  double squares = 0, rest = 0;
#pragma unroll
  for (int k = 0; k < N; k++) {
    const double d = double(x[k] - mean);
    squares += d * d;
    rest += d;
  }
  rest /= N;
  return {double(N), double(mean) + (rest == rest ? rest : 0), squares - rest * rest * N};
}

// A reduction of elements to moments, without its end.
template <class E>
struct ElementMoments : Elements<E> {
  using T = Compute<E>;
  using Value = Moments;
  using Elements<E>::Elements;
  PLAIT_DEVICE Value start() const { return {0, 0, 0}; }
  PLAIT_DEVICE Value step(const Value &a, const Value &b) const { return join_moments(a, b); }
  template <int N, int width>
  PLAIT_DEVICE void fold(Value &value, const E *x, int64_t, int64_t) const {
    T some[N];
#pragma unroll
    for (int k = 0; k < N; k++) some[k] = widen(x[k]);
    value = join_moments(value, moments_of<N>(some));
  }
};

}  // namespace plait::cuda
#endif
