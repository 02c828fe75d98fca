// x clamped to [low, high]
#pragma once
#include "scalar/math.h"

namespace plait::scalar {

template <class T>
PLAIT_HD T hardtanh(T x, T low, T high) {
  return x < low ? low : x > high ? high : x;
}

}  // namespace plait::scalar
