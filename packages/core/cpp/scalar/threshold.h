// x above the bound, else `value`
#pragma once
#include "scalar/math.h"

namespace plait::scalar {

template <class T>
PLAIT_HD T threshold(T x, T bound, T value) {
  return x <= bound ? value : x;
}

}  // namespace plait::scalar
