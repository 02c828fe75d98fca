// the larger; the other one if one is NaN
#pragma once
#include "scalar/math.h"

namespace plait::scalar {

template <class T>
PLAIT_HD T fmax(T a, T b) {
  return a > b || b != b ? a : b;
}

}  // namespace plait::scalar
