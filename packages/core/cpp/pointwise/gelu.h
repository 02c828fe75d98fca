// GELU by its definition and by the tanh formula, and both derivatives.
#pragma once
#include "pointwise/math.h"

namespace plait::scalar::math {

// The normal distribution function less 1/2: a rational function in x^2, own coefficients; its
// absolute error is below 2e-7.
PLAIT_HD float normal_center(float x) {
  float a = x < -5.66f ? -5.66f : x;  // NaN passes both
  a = a > 5.66f ? 5.66f : a;
  const float u = a * a;
  float p = 2.22979004e-8f;
  p = fused(p, u, 6.28972975e-6f);
  p = fused(p, u, 0.000168922372f);
  p = fused(p, u, 0.00467730733f);
  p = fused(p, u, 0.0339283533f);
  p = fused(p, u, 0.398942262f);
  float q = 1.17966795e-6f;
  q = fused(q, u, 7.33420093e-5f);
  q = fused(q, u, 0.00188545219f);
  q = fused(q, u, 0.0286771655f);
  q = fused(q, u, 0.251712084f);
  q = fused(q, u, 1.0f);
  const float c = a * p / q;
  const float d = c < -0.5f ? -0.5f : c;  // at the ends exactly 1/2: gelu(-100) is 0
  return d > 0.5f ? 0.5f : d;
}
PLAIT_HD double normal_center(double x) { return 0.5 * ::erf(x * 0.70710678118654752); }

}  // namespace plait::scalar::math

namespace plait::scalar {

// x times the normal distribution function of x
template <class T>
PLAIT_HD T gelu(T x) {
  return x * (T(0.5) + math::normal_center(x));
}

// gelu by the tanh formula
template <class T>
PLAIT_HD T gelu_tanh(T x) {
  const T inner = T(0.79788456080286536) * (x + T(0.044715) * x * x * x);
  return T(0.5) * x * (T(1) + math::tanh(inner));
}

// g times the normal distribution function of x plus x times the density
template <class T>
PLAIT_HD T gelu_erf_backward(T g, T x) {
  const T below = T(0.5) + math::normal_center(x);
  return g * (below + x * T(0.39894228040143268) * math::exp(T(-0.5) * x * x));
}

// g times the derivative of the tanh formula of gelu
template <class T>
PLAIT_HD T gelu_tanh_backward(T g, T x) {
  const T t = math::tanh(T(0.79788456080286536) * (x + T(0.044715) * x * x * x));
  const T slope = T(0.79788456080286536) * (T(1) + T(0.134145) * x * x);
  return g * (T(0.5) * (T(1) + t) + T(0.5) * x * (T(1) - t * t) * slope);
}

}  // namespace plait::scalar
