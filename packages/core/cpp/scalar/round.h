// the nearest whole number, ties to even
#pragma once
#include "scalar/math.h"

namespace plait::scalar {

template <class T>
PLAIT_HD T round(T x) {
  if constexpr (sizeof(T) == 4 && math::is_floating<T>) {
    return __builtin_rintf(x);
  } else if constexpr (math::is_floating<T>) {
    return __builtin_rint(x);
  } else {
    return x;
  }
}

}  // namespace plait::scalar
