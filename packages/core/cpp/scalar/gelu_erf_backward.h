// g times the normal distribution function of x plus x times the density
#pragma once
#include "scalar/math.h"

namespace plait::scalar {

template <class T>
PLAIT_HD T gelu_erf_backward(T g, T x) {
  const T below = T(0.5) * (T(1) + math::erf(x * T(0.70710678118654752)));
  return g * (below + x * T(0.39894228040143268) * math::exp(T(-0.5) * x * x));
}

}  // namespace plait::scalar
