// Quotients and remainders, by the way they are rounded. `quick` is for quotients below 2^28.
#pragma once
#include "pointwise/math.h"

namespace plait::scalar {

// a / b, of floating dtypes
template <class T>
PLAIT_HD T div(T a, T b) {
  return a / b;
}
PLAIT_FEW_STEPS(div)

// a / b towards zero; an integer divided by 0 gives 0
template <class T>
PLAIT_HD T trunc_divide(T a, T b) {
  if constexpr (math::is_floating<T>) {
    return math::trunc(a / b);
  } else if constexpr (math::is_signed<T>) {
    if (b == T(0)) return T(0);
    return b == T(-1) ? T(-math::wide<T>(a)) : T(a / b);
  } else {
    return b == T(0) ? T(0) : T(a / b);
  }
}
PLAIT_FEW_STEPS(trunc_divide)

// the largest whole number <= a / b; an integer divided by 0 gives 0, as in NumPy
template <class T, bool quick = false>
PLAIT_HD T floor_divide(T a, T b) {
  if constexpr (math::is_floating<T>) {
    const T rest = math::fmod<quick>(a, b);
    const T whole = (a - rest) / b - (rest != T(0) && (rest < T(0)) != (b < T(0)) ? T(1) : T(0));
    const T down = math::floor(whole), near = whole - down > T(0.5) ? down + T(1) : down;
    const T signed_zero = whole == T(0) ? math::copysign(T(0), a / b) : near;
    return b == T(0) ? a / b : signed_zero;
  } else if constexpr (math::is_signed<T>) {
    if (b == T(0)) return T(0);
    if (b == T(-1)) return T(-math::wide<T>(a));
    const T q = T(a / b);
    return T(q - (T(q * b) != a && (a < T(0)) != (b < T(0))));
  } else {
    return b == T(0) ? T(0) : T(a / b);
  }
}

// a - b floor(a / b): the sign of b, as in Python; of integers by 0: 0, as in NumPy
template <class T, bool quick = false>
PLAIT_HD T remainder(T a, T b) {
  if constexpr (math::is_floating<T>) {
    const T rest = math::fmod<quick>(a, b);
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

// a - b trunc(a / b): the sign of a, as in C; of integers by 0: 0, as in NumPy
template <class T, bool quick = false>
PLAIT_HD T fmod(T a, T b) {
  if constexpr (math::is_floating<T>) {
    return math::fmod<quick>(a, b);
  } else if constexpr (math::is_signed<T>) {
    return b == T(0) || b == T(-1) ? T(0) : T(a % b);
  } else {
    return b == T(0) ? T(0) : T(a % b);
  }
}

}  // namespace plait::scalar
