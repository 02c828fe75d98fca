// x where positive, alpha (e^(x / alpha) - 1) elsewhere
#pragma once
#include "scalar/math.h"

namespace plait::scalar {

template <class T>
PLAIT_HD T celu(T x, T alpha) {
  return x > T(0) ? x : alpha * math::expm1(x / alpha);
}

}  // namespace plait::scalar
