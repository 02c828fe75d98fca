// 1 / sqrt(x)
#pragma once
#include "scalar/math.h"

namespace plait::scalar {

template <class T>
PLAIT_HD T rsqrt(T x) {
  return T(1) / math::sqrt(x);
}

}  // namespace plait::scalar
