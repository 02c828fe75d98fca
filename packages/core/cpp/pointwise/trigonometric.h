// Trigonometric functions and their inverses, of angles in radians.
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
PLAIT_MATH_UNARY(asin)

// the inverse cosine
PLAIT_MATH_UNARY(acos)

// the inverse tangent
PLAIT_MATH_UNARY(atan)

// the angle of the point (b, a)
template <class T>
PLAIT_HD T atan2(T a, T b) {
  return math::atan2(a, b);
}

// sqrt(a^2 + b^2) without overflow
template <class T>
PLAIT_HD T hypot(T a, T b) {
  return math::hypot(a, b);
}

// sin(pi x) / (pi x), 1 at 0
template <class T>
PLAIT_HD T sinc(T x) {
  constexpr double pi = 3.14159265358979324;
  if constexpr (math::is_complex<T>) {
    const T y = T(pi) * x;
    return x == T(0) ? T(1) : math::sin(y) / y;
  } else {  // sin(pi x) = +-sin(pi (x - n)), whose argument is small where the sine is
    const T n = sizeof(T) == 4 ? T(__builtin_rintf(float(x))) : T(__builtin_rint(double(x)));
    const T half = n * T(0.5), r = math::abs(x) < T(0x1p52) ? x - n : x - x;
    const T s = math::sin<true>(T(pi) * r), signed_s = half == math::floor(half) ? s : -s;
    return x == T(0) ? T(1) : signed_s / (T(pi) * x);
  }
}

// an angle in degrees in radians
template <class T>
PLAIT_HD T deg2rad(T x) {
  return x * T(0.0174532925199432958);
}
PLAIT_FEW_STEPS(deg2rad)

// an angle in radians in degrees
template <class T>
PLAIT_HD T rad2deg(T x) {
  return x * T(57.2957795130823209);
}
PLAIT_FEW_STEPS(rad2deg)

}  // namespace plait::scalar
