// x is zero
#pragma once
#include "scalar/math.h"

namespace plait::scalar {

template <class T>
PLAIT_HD bool logical_not(T x) {
  return x == T(0);
}

}  // namespace plait::scalar
