// the hyperbolic tangent
#pragma once
#include "scalar/math.h"

namespace plait::scalar {

template <class T>
PLAIT_HD T tanh(T x) {
  return math::tanh(x);
}

}  // namespace plait::scalar
