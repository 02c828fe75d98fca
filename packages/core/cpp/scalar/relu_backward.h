// g where y = relu(x) is not 0
#pragma once
#include "scalar/math.h"

namespace plait::scalar {

template <class T>
PLAIT_HD T relu_backward(T g, T y) {
  return y <= T(0) ? T(0) : g;
}

}  // namespace plait::scalar
