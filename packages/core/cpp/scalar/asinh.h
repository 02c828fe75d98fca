// the inverse of sinh
#pragma once
#include "scalar/special/hyperbolic.h"

namespace plait::scalar {

template <class T>
PLAIT_HD T asinh(T x) {
  return math::asinh(x);
}

}  // namespace plait::scalar
