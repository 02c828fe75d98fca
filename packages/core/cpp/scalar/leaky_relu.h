// x where positive, slope * x elsewhere
#pragma once
#include "scalar/math.h"

namespace plait::scalar {

template <class T>
PLAIT_HD T leaky_relu(T x, T slope) {
  return x > T(0) ? x : x * slope;
}

}  // namespace plait::scalar
