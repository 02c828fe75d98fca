// the hyperbolic sine
#pragma once
#include "scalar/math.h"

namespace plait::scalar {

template <class T>
PLAIT_HD T sinh(T x) {
  return math::sinh(x);
}

}  // namespace plait::scalar
