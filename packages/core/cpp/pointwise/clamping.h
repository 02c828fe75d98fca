// Numbers held between bounds.
#pragma once
#include "pointwise/math.h"

namespace plait::scalar {

// max(x, low). A processor's instruction for it keeps an x that is not a number; a bound that is
// none is looked for apart, as it is the same for all elements in most calls.
template <class T>
PLAIT_HD T clamp_min(T x, T low) {
  const T y = x < low ? low : x;
  return low != low ? low : y;
}
PLAIT_FEW_STEPS(clamp_min)

// min(x, high)
template <class T>
PLAIT_HD T clamp_max(T x, T high) {
  const T y = x > high ? high : x;
  return high != high ? high : y;
}
PLAIT_FEW_STEPS(clamp_max)

// x clamped to [low, high]; high wins where they cross
template <class T>
PLAIT_HD T clamp(T x, T low, T high) {
  return clamp_max(clamp_min(x, low), high);
}
PLAIT_FEW_STEPS(clamp)

}  // namespace plait::scalar
