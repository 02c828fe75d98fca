// the derivative of sigmoid, from its result: grad result (1 - result)
#pragma once
#include "scalar/math.h"

namespace plait::scalar {

template <class T>
PLAIT_HD T sigmoid_backward(T grad, T result) {
  return grad * (T(1) - result) * result;
}

}  // namespace plait::scalar
