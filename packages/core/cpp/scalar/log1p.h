// log(1 + x), exact near 0
#pragma once
#include "scalar/math.h"

namespace plait::scalar {

template <class T>
PLAIT_HD T log1p(T x) {
  return math::log1p(x);
}

}  // namespace plait::scalar
