// max(x, 0); NaN stays NaN
#pragma once
#include "scalar/math.h"

namespace plait::scalar {

template <class T>
PLAIT_HD T relu(T x) {
  return x > T(0) || x != x ? x : T(0);
}

}  // namespace plait::scalar
