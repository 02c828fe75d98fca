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
PLAIT_MATH_UNARY(sinh)

// the hyperbolic cosine
PLAIT_MATH_UNARY(cosh)

// the hyperbolic tangent
PLAIT_MATH_UNARY(tanh)

// the derivative of tanh, from its result: grad (1 - result^2)
template <class T>
PLAIT_HD T tanh_backward(T grad, T result) {
  return grad * (T(1) - result * result);
}
PLAIT_FEW_STEPS(tanh_backward)

// the inverse of sinh
PLAIT_MATH_UNARY(asinh)

// the inverse of cosh, from 0 on
PLAIT_MATH_UNARY(acosh)

// the inverse of tanh
PLAIT_MATH_UNARY(atanh)

}  // namespace plait::scalar
