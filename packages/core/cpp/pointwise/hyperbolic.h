// Inverse hyperbolic functions, sinc, and degrees and radians.
#pragma once
#include "pointwise/math.h"

namespace plait::scalar::math {

constexpr float kLn2 = 0.693147180559945f;

PLAIT_HD float asinh(float x) {
  const float a = abs(x), b = a < 1e9f ? a : 1e9f;
  const float near = log1p(b + b * b / (1.0f + sqrt(b * b + 1.0f)));
  return copysign(a < 1e9f ? near : log(a) + kLn2, x);
}
PLAIT_HD float acosh(float x) {
  const float t = (x < 1e9f ? x : 1e9f) - 1.0f;
  const float near = log1p(t + sqrt(t * (t + 2.0f)));
  const float r = x < 1e9f ? near : log(x) + kLn2;
  return x < 1.0f ? kNan : r;
}
PLAIT_HD float atanh(float x) {
  const float a = abs(x);
  return copysign(0.5f * log1p(2.0f * a / (1.0f - a)), x);
}
PLAIT_HD double asinh(double x) { return ::asinh(x); }
PLAIT_HD double acosh(double x) { return ::acosh(x); }
PLAIT_HD double atanh(double x) { return ::atanh(x); }

}  // namespace plait::scalar::math

namespace plait::scalar {

// the inverse of sinh
template <class T>
PLAIT_HD T asinh(T x) {
  return math::asinh(x);
}

// the inverse of cosh, from 0 on
template <class T>
PLAIT_HD T acosh(T x) {
  return math::acosh(x);
}

// the inverse of tanh
template <class T>
PLAIT_HD T atanh(T x) {
  return math::atanh(x);
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
    const T s = math::sin(T(pi) * r), signed_s = half == math::floor(half) ? s : -s;
    return x == T(0) ? T(1) : signed_s / (T(pi) * x);
  }
}

// an angle in degrees in radians
template <class T>
PLAIT_HD T deg2rad(T x) {
  return x * T(0.0174532925199432958);
}

// an angle in radians in degrees
template <class T>
PLAIT_HD T rad2deg(T x) {
  return x * T(57.2957795130823209);
}

}  // namespace plait::scalar
