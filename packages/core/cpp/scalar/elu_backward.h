// g where x is positive, alpha e^x g elsewhere
#pragma once
#include "scalar/math.h"

namespace plait::scalar {

template <class T>
PLAIT_HD T elu_backward(T g, T x, T alpha) {
  return x > T(0) ? g : g * (alpha * math::exp(x));
}

}  // namespace plait::scalar
