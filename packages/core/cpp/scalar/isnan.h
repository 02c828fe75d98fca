// x is not a number
#pragma once
#include "scalar/math.h"

namespace plait::scalar {

template <class T>
PLAIT_HD bool isnan(T x) {
  return x != x;
}

}  // namespace plait::scalar
