// x moved towards 0 by lambd, 0 within
#pragma once
#include "scalar/math.h"

namespace plait::scalar {

template <class T>
PLAIT_HD T softshrink(T x, T lambd) {
  return x > lambd ? x - lambd : x < -lambd ? x + lambd : x != x ? x : T(0);
}

}  // namespace plait::scalar
