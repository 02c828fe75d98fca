// Rounding to whole numbers.
#pragma once
#include "pointwise/math.h"

namespace plait::scalar {

// the largest whole number <= x
template <class T>
PLAIT_HD T floor(T x) {
  if constexpr (math::is_floating<T>) {
    return math::floor(x);
  } else {
    return x;
  }
}
PLAIT_FEW_STEPS(floor)

// the smallest whole number >= x
template <class T>
PLAIT_HD T ceil(T x) {
  if constexpr (math::is_floating<T>) {
    return -math::floor(-x);
  } else {
    return x;
  }
}
PLAIT_FEW_STEPS(ceil)

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
PLAIT_FEW_STEPS(round)

// the whole part of x
template <class T>
PLAIT_HD T trunc(T x) {
  if constexpr (math::is_floating<T>) {
    return math::trunc(x);
  } else {
    return x;
  }
}
PLAIT_FEW_STEPS(trunc)

// x without its whole part, with the sign of x
template <class T>
PLAIT_HD T frac(T x) {
  if constexpr (math::is_floating<T>) {
    return x - math::trunc(x);
  } else {
    return T(0);
  }
}
PLAIT_FEW_STEPS(frac)

}  // namespace plait::scalar
