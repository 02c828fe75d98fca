// |a| with the sign of b
#pragma once
#include "scalar/math.h"

namespace plait::scalar {

template <class T>
PLAIT_HD T copysign(T a, T b) {
  return math::copysign(a, b);
}

}  // namespace plait::scalar
