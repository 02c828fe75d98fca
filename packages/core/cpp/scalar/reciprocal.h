// 1 / x
#pragma once
#include "scalar/math.h"

namespace plait::scalar {

template <class T>
PLAIT_HD T reciprocal(T x) {
  return T(1) / x;
}

}  // namespace plait::scalar
