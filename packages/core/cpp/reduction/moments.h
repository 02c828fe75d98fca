// Mean and sum of squared differences in two passes; pieces are put together by Chan, Golub and
// LeVeque's formula, so that no difference of large sums is ever taken.
#ifndef PLAIT_CORE_MOMENTS_H
#define PLAIT_CORE_MOMENTS_H
#include "kernel/vec.h"

namespace plait::core {

constexpr int64_t kMomentsPiece = 16384;  // elements of one call of moments_of

struct Moments {
  double count, mean, squares;  // squares: sum of (x - mean)^2
  void join(const Moments &m) {
    if (m.count == 0) return;
    if (count == 0) {
      *this = m;
      return;
    }
    const double n = count + m.count, d = m.mean - mean;
    mean += d * (m.count / n);
    squares += m.squares + d * d * (count * m.count / n);
    count = n;
  }
};

// For squares out of range: sums in double, and of elements divided by n if that would overflow
// too.
template <class T, class From>
Moments moments_of_large(From p, int64_t n) {
  double mean = 0, squares = 0;
  const double share = sizeof(T) == 8 ? double(n) : 1;
  for (int64_t i = 0; i < n; i++) mean += double(p[i]) / share;
  mean /= double(n) / share;
  for (int64_t i = 0; i < n; i++) squares += (double(p[i]) - mean) * (double(p[i]) - mean);
  return {double(n), mean, squares};
}

template <class T, class From>
Moments moments_of(From p, int64_t n) {
  constexpr int64_t w = kLanes<T>;
  Vec<T> s[4] = {};
  int64_t i = 0;
  double total = 0, squares = 0;
  for (; i + 4 * w <= n; i += 4 * w)
    for (int k = 0; k < 4; k++) s[k] += load(p + i + k * w);
  for (; i + w <= n; i += w) s[0] += load(p + i);
  total = double(sum_of<T>((s[0] + s[1]) + (s[2] + s[3])));
  for (; i < n; i++) total += double(p[i]);
  const double mean = total / double(n);
  const T m = T(mean);
  Vec<T> q[4] = {}, e[4] = {};  // e: the rounding error of the mean
  for (i = 0; i + 4 * w <= n; i += 4 * w)
    for (int k = 0; k < 4; k++) {
      const Vec<T> d = load(p + i + k * w) - m;
      q[k] = fused(d, d, q[k]);
      e[k] += d;
    }
  for (; i + w <= n; i += w) {
    const Vec<T> d = load(p + i) - m;
    q[0] = fused(d, d, q[0]);
    e[0] += d;
  }
  squares = double(sum_of<T>((q[0] + q[1]) + (q[2] + q[3])));
  double rest = double(sum_of<T>((e[0] + e[1]) + (e[2] + e[3])));
  for (; i < n; i++) {
    const double d = double(p[i]) - double(m);
    squares += d * d;
    rest += d;
  }
  const double left = squares - rest * rest / double(n);
  constexpr double kTiny = sizeof(T) == 8 ? 1e-290 : 1e-25;  // squares may have underflowed
  if (!(left - left == 0) || left < kTiny) return moments_of_large<T>(p, n);
  return {double(n), double(m) + rest / double(n), left};
}

// Of any number of adjacent elements, a const T * or a WidenedRun.
template <class T, class From>
Moments moments_of_run(From p, int64_t n) {
  Moments all{0, 0, 0};
  for (int64_t i = 0; i < n; i += kMomentsPiece)
    all.join(moments_of<T>(p + i, n - i < kMomentsPiece ? n - i : kMomentsPiece));
  return all;
}

}  // namespace plait::core
#endif  // PLAIT_CORE_MOMENTS_H
