// the inverse tangent
#pragma once
#include "scalar/math.h"

namespace plait::scalar {

template <class T>
PLAIT_HD T atan(T x) {
  return math::atan(x);
}

}  // namespace plait::scalar
