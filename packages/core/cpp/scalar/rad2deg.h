// an angle in radians in degrees
#pragma once
#include "scalar/math.h"

namespace plait::scalar {

template <class T>
PLAIT_HD T rad2deg(T x) {
  return x * T(57.2957795130823209);
}

}  // namespace plait::scalar
