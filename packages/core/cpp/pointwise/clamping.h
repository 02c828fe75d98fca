// Numbers held between bounds.
#pragma once
#include "pointwise/math.h"

namespace plait::scalar {

// max(x, low)
template <class T>
PLAIT_HD T clamp_min(T x, T low) {
  return x < low || low != low ? low : x;
}

// min(x, high)
template <class T>
PLAIT_HD T clamp_max(T x, T high) {
  return x > high || high != high ? high : x;
}

// x clamped to [low, high]; high wins where they cross
template <class T>
PLAIT_HD T clamp(T x, T low, T high) {
  const T y = x < low || low != low ? low : x;
  return y > high || high != high ? high : y;
}

}  // namespace plait::scalar
