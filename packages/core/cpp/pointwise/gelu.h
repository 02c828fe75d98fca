// GELU by its definition and by the tanh formula, and both derivatives.
#pragma once
#include "pointwise/math.h"

namespace plait::scalar {

// x times the normal distribution function of x
template <class T>
PLAIT_HD T gelu(T x) {
  return T(0.5) * x * (T(1) + math::erf(x * T(0.70710678118654752)));
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
  const T below = T(0.5) * (T(1) + math::erf(x * T(0.70710678118654752)));
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
