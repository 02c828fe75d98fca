// x without its whole part, with the sign of x
#pragma once
#include "scalar/math.h"

namespace plait::scalar {

template <class T>
PLAIT_HD T frac(T x) {
  if constexpr (math::is_floating<T>) {
    return x - math::trunc(x);
  } else {
    return T(0);
  }
}

}  // namespace plait::scalar
