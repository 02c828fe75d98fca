// e with x = m 2^e and 1/2 <= |m| < 1; 0 for 0, infinity and NaN
#pragma once
#include "scalar/math.h"

namespace plait::scalar {

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

}  // namespace plait::scalar
