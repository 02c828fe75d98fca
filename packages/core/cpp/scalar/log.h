// the natural logarithm
#pragma once
#include "scalar/math.h"

namespace plait::scalar {

template <class T>
PLAIT_HD T log(T x) {
  return math::log(x);
}

}  // namespace plait::scalar
