// an angle in degrees in radians
#pragma once
#include "scalar/math.h"

namespace plait::scalar {

template <class T>
PLAIT_HD T deg2rad(T x) {
  return x * T(0.0174532925199432958);
}

}  // namespace plait::scalar
