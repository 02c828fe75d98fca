// Rounding to whole numbers, signs and magnitudes.
#pragma once
#include "pointwise/math.h"

namespace plait::scalar {

// -x
template <class T>
PLAIT_HD T neg(T x) {
  using W = math::wide<T>;
  return T(-W(x));
}

// |x|; the most negative integer stays itself
template <class T>
PLAIT_HD typename math::RealOf<T>::type abs(T x) {
  if constexpr (math::is_floating<T> || math::is_complex<T>) {
    return math::abs(x);
  } else {
    using W = math::wide<T>;
    return x < T(0) ? T(-W(x)) : x;
  }
}

// -1, 0 or 1; NaN stays NaN
template <class T>
PLAIT_HD T sign(T x) {
  return x > T(0) ? T(1) : x < T(0) ? T(-1) : x == x ? T(0) : x;
}

// the largest whole number <= x
template <class T>
PLAIT_HD T floor(T x) {
  if constexpr (math::is_floating<T>) {
    return math::floor(x);
  } else {
    return x;
  }
}

// the smallest whole number >= x
template <class T>
PLAIT_HD T ceil(T x) {
  if constexpr (math::is_floating<T>) {
    return -math::floor(-x);
  } else {
    return x;
  }
}

// the nearest whole number, ties to even
template <class T>
PLAIT_HD T round(T x) {
  if constexpr (sizeof(T) == 4 && math::is_floating<T>) {
    return __builtin_rintf(x);
  } else if constexpr (math::is_floating<T>) {
    return __builtin_rint(x);
  } else {
    return x;
  }
}

// the whole part of x
template <class T>
PLAIT_HD T trunc(T x) {
  if constexpr (math::is_floating<T>) {
    return math::trunc(x);
  } else {
    return x;
  }
}

// x without its whole part, with the sign of x
template <class T>
PLAIT_HD T frac(T x) {
  if constexpr (math::is_floating<T>) {
    return x - math::trunc(x);
  } else {
    return T(0);
  }
}

}  // namespace plait::scalar
