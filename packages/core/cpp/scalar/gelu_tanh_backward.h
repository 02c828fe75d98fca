// g times the derivative of the tanh formula of gelu
#pragma once
#include "scalar/math.h"

namespace plait::scalar {

template <class T>
PLAIT_HD T gelu_tanh_backward(T g, T x) {
  const T t = math::tanh(T(0.79788456080286536) * (x + T(0.044715) * x * x * x));
  const T slope = T(0.79788456080286536) * (T(1) + T(0.134145) * x * x);
  return g * (T(0.5) * (T(1) + t) + T(0.5) * x * (T(1) - t * t) * slope);
}

}  // namespace plait::scalar
