// the angle of the point (b, a)
#pragma once
#include "scalar/math.h"

namespace plait::scalar {

template <class T>
PLAIT_HD T atan2(T a, T b) {
  return math::atan2(a, b);
}

}  // namespace plait::scalar
