// The larger and the smaller of two numbers.
#pragma once
#include "pointwise/math.h"

namespace plait::scalar {

// the larger; NaN if either is
template <class T>
PLAIT_HD T maximum(T a, T b) {
  return a > b || a != a ? a : b;
}
PLAIT_FEW_STEPS(maximum)

// the smaller; NaN if either is
template <class T>
PLAIT_HD T minimum(T a, T b) {
  return a < b || a != a ? a : b;
}
PLAIT_FEW_STEPS(minimum)

// the larger; the other one if one is NaN
template <class T>
PLAIT_HD T fmax(T a, T b) {
  return a > b || b != b ? a : b;
}
PLAIT_FEW_STEPS(fmax)

// the smaller; the other one if one is NaN
template <class T>
PLAIT_HD T fmin(T a, T b) {
  return a < b || b != b ? a : b;
}
PLAIT_FEW_STEPS(fmin)

}  // namespace plait::scalar
