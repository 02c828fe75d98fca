// the square root
#pragma once
#include "scalar/math.h"

namespace plait::scalar {

template <class T>
PLAIT_HD T sqrt(T x) {
  return math::sqrt(x);
}

}  // namespace plait::scalar
