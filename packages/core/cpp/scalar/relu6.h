// x clamped to [0, 6]
#pragma once
#include "scalar/math.h"

namespace plait::scalar {

template <class T>
PLAIT_HD T relu6(T x) {
  return x < T(0) ? T(0) : x > T(6) ? T(6) : x;
}

}  // namespace plait::scalar
