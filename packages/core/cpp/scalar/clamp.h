// x clamped to [low, high]; high wins where they cross
#pragma once
#include "scalar/math.h"

namespace plait::scalar {

template <class T>
PLAIT_HD T clamp(T x, T low, T high) {
  const T y = x < low || low != low ? low : x;
  return y > high || high != high ? high : y;
}

}  // namespace plait::scalar
