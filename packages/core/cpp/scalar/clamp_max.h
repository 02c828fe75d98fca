// min(x, high)
#pragma once
#include "scalar/math.h"

namespace plait::scalar {

template <class T>
PLAIT_HD T clamp_max(T x, T high) {
  return x > high || high != high ? high : x;
}

}  // namespace plait::scalar
