// sin(pi x) / (pi x), 1 at 0
#pragma once
#include "scalar/math.h"

namespace plait::scalar {

template <class T>
PLAIT_HD T sinc(T x) {
  const T y = T(3.14159265358979324) * x;
  return x == T(0) ? T(1) : math::sin(y) / y;
}

}  // namespace plait::scalar
