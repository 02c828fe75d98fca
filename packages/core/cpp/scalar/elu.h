// x where positive, alpha (e^x - 1) elsewhere
#pragma once
#include "scalar/math.h"

namespace plait::scalar {

template <class T>
PLAIT_HD T elu(T x, T alpha) {
  return x > T(0) ? x : alpha * math::expm1(x);
}

}  // namespace plait::scalar
