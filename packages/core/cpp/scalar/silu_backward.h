// g times the derivative of x sigmoid(x)
#pragma once
#include "scalar/math.h"

namespace plait::scalar {

template <class T>
PLAIT_HD T silu_backward(T g, T x) {
  const T s = math::sigmoid(x);
  return g * (s * (T(1) + x * (T(1) - s)));
}

}  // namespace plait::scalar
