// the inverse of tanh
#pragma once
#include "scalar/special/hyperbolic.h"

namespace plait::scalar {

template <class T>
PLAIT_HD T atanh(T x) {
  return math::atanh(x);
}

}  // namespace plait::scalar
