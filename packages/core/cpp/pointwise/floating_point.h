// The parts of floating-point numbers, and their neighbours.
#pragma once
#include "pointwise/math.h"

namespace plait::scalar {

// m with x = m 2^e and 1/2 <= |m| < 1
template <class T>
PLAIT_HD T frexp_mantissa(T x) {
  int e = 0;
  if constexpr (sizeof(T) == 4) {
    return __builtin_frexpf(x, &e);
  } else {
    return __builtin_frexp(x, &e);
  }
}

// e with x = m 2^e and 1/2 <= |m| < 1; 0 for 0, infinity and NaN
template <class T>
PLAIT_HD T frexp_exponent(T x) {
  int e = 0;
  if (!(math::abs(x) < T(math::kInf))) return T(0);
  if constexpr (sizeof(T) == 4) {
    (void)__builtin_frexpf(x, &e);
  } else {
    (void)__builtin_frexp(x, &e);
  }
  return T(e);
}

// the number after a on the way to b
template <class T>
PLAIT_HD T nextafter_elements(T a, T b) {
  if constexpr (sizeof(T) == 4) {
    return __builtin_nextafterf(a, b);
  } else {
    return __builtin_nextafter(a, b);
  }
}

}  // namespace plait::scalar
