// the smaller; NaN if either is
#pragma once
#include "scalar/math.h"

namespace plait::scalar {

template <class T>
PLAIT_HD T minimum(T a, T b) {
  return a < b || a != a ? a : b;
}

}  // namespace plait::scalar
