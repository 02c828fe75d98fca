// max(x, low)
#pragma once
#include "scalar/math.h"

namespace plait::scalar {

template <class T>
PLAIT_HD T clamp_min(T x, T low) {
  return x < low || low != low ? low : x;
}

}  // namespace plait::scalar
