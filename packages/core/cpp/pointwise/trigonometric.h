// Trigonometric functions and their inverses, sinh and cosh.
#pragma once
#include "pointwise/math.h"

namespace plait::scalar {

// the sine of x radians; `quick` is for |x| < 2^28
template <class T, bool quick = false>
PLAIT_HD T sin(T x) {
  return math::sin<quick>(x);
}

// the cosine of x radians; `quick` is for |x| < 2^28
template <class T, bool quick = false>
PLAIT_HD T cos(T x) {
  return math::cos<quick>(x);
}

// the tangent of x radians; `quick` is for |x| < 2^28
template <class T, bool quick = false>
PLAIT_HD T tan(T x) {
  return math::tan<quick>(x);
}

// the inverse sine
template <class T>
PLAIT_HD T asin(T x) {
  return math::asin(x);
}

// the inverse cosine
template <class T>
PLAIT_HD T acos(T x) {
  return math::acos(x);
}

// the inverse tangent
template <class T>
PLAIT_HD T atan(T x) {
  return math::atan(x);
}

// the hyperbolic sine
template <class T>
PLAIT_HD T sinh(T x) {
  return math::sinh(x);
}

// the hyperbolic cosine
template <class T>
PLAIT_HD T cosh(T x) {
  return math::cosh(x);
}

}  // namespace plait::scalar
