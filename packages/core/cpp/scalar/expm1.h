// e^x - 1, exact near 0
#pragma once
#include "scalar/math.h"

namespace plait::scalar {

template <class T>
PLAIT_HD T expm1(T x) {
  return math::expm1(x);
}

}  // namespace plait::scalar
