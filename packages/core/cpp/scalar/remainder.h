// a - b floor(a / b): the sign of b, as in Python; of integers by 0: 0, as in NumPy
#pragma once
#include "scalar/math.h"

namespace plait::scalar {

template <class T>
PLAIT_HD T remainder(T a, T b) {
  if constexpr (math::is_floating<T>) {
    const T rest = math::fmod(a, b);
    const T moved = rest != T(0) && (rest < T(0)) != (b < T(0)) ? rest + b : rest;
    return rest == T(0) ? math::copysign(T(0), b) : moved;
  } else if constexpr (math::is_signed<T>) {
    if (b == T(0) || b == T(-1)) return T(0);
    const T rest = T(a % b);
    return T(rest + (rest != T(0) && (rest < T(0)) != (b < T(0)) ? b : T(0)));
  } else {
    return b == T(0) ? T(0) : T(a % b);
  }
}

}  // namespace plait::scalar
