// Clamping, interpolation, and sums of products.
#pragma once
#include "pointwise/math.h"

namespace plait::scalar {

// max(x, low)
template <class T>
PLAIT_HD T clamp_min(T x, T low) {
  return x < low || low != low ? low : x;
}

// min(x, high)
template <class T>
PLAIT_HD T clamp_max(T x, T high) {
  return x > high || high != high ? high : x;
}

// x clamped to [low, high]; high wins where they cross
template <class T>
PLAIT_HD T clamp(T x, T low, T high) {
  const T y = x < low || low != low ? low : x;
  return y > high || high != high ? high : y;
}

// a + t (b - a), exact at both ends
template <class T>
PLAIT_HD T lerp(T a, T b, T t) {
  return math::abs(t) < typename math::RealOf<T>::type(0.5) ? a + t * (b - a)
                                                            : b - (b - a) * (T(1) - t);
}

// a + value b c
template <class T>
PLAIT_HD T addcmul(T a, T b, T c, T value) {
  using W = math::wide<T>;
  return T(W(a) + W(value) * W(b) * W(c));
}

// a + value b / c
template <class T>
PLAIT_HD T addcdiv(T a, T b, T c, T value) {
  return a + value * (b / c);
}

}  // namespace plait::scalar
