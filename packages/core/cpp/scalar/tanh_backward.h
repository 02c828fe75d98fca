// the derivative of tanh, from its result: grad (1 - result^2)
#pragma once
#include "scalar/math.h"

namespace plait::scalar {

template <class T>
PLAIT_HD T tanh_backward(T grad, T result) {
  return grad * (T(1) - result * result);
}

}  // namespace plait::scalar
