// g where x is positive, slope * g elsewhere
#pragma once
#include "scalar/math.h"

namespace plait::scalar {

template <class T>
PLAIT_HD T leaky_relu_backward(T g, T x, T slope) {
  return x > T(0) ? g : g * slope;
}

}  // namespace plait::scalar
