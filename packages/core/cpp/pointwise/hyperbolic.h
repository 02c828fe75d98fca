// Hyperbolic functions and their inverses. float32 is computed by polynomials and logarithms that
// vectorise, float64 by the C library.
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

// the hyperbolic tangent
template <class T>
PLAIT_HD T tanh(T x) {
  return math::tanh(x);
}

// the derivative of tanh, from its result: grad (1 - result^2)
template <class T>
PLAIT_HD T tanh_backward(T grad, T result) {
  return grad * (T(1) - result * result);
}

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

}  // namespace plait::scalar
