// 1 - erf(x), exact in the tail
#pragma once
#include "scalar/math.h"

namespace plait::scalar {

template <class T>
PLAIT_HD T erfc(T x) {
  return math::erfc(x);
}

}  // namespace plait::scalar
