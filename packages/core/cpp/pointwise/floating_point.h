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
  // neighbours are neighbours as integers
  const auto u = math::bits(a), sign = decltype(u)(1) << (sizeof(T) * 8 - 1);
  const auto up = decltype(u)((a < b) == (a > T(0)) ? 1 : -1);
  const T next = math::from_bits(a == T(0) ? (math::bits(b) & sign) | 1 : u + up);
  return a != a || b != b ? a + b : a == b ? b : next;
}

}  // namespace plait::scalar
