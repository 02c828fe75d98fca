// 0 below 0, 1 above, else `value`
#pragma once
#include "scalar/math.h"

namespace plait::scalar {

template <class T>
PLAIT_HD T heaviside(T x, T value) {
  return x == T(0) ? value : T(x > T(0));
}

}  // namespace plait::scalar
