// a - b trunc(a / b): the sign of a, as in C; of integers by 0: 0, as in NumPy
#pragma once
#include "scalar/math.h"

namespace plait::scalar {

template <class T>
PLAIT_HD T fmod(T a, T b) {
  if constexpr (math::is_floating<T>) {
    return math::fmod(a, b);
  } else if constexpr (math::is_signed<T>) {
    return b == T(0) || b == T(-1) ? T(0) : T(a % b);
  } else {
    return b == T(0) ? T(0) : T(a % b);
  }
}

}  // namespace plait::scalar
