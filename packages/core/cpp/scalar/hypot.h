// sqrt(a^2 + b^2) without overflow
#pragma once
#include "scalar/math.h"

namespace plait::scalar {

template <class T>
PLAIT_HD T hypot(T a, T b) {
  return math::hypot(a, b);
}

}  // namespace plait::scalar
