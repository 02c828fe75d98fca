// m with x = m 2^e and 1/2 <= |m| < 1
#pragma once
#include "scalar/math.h"

namespace plait::scalar {

template <class T>
PLAIT_HD T frexp_mantissa(T x) {
  int e = 0;
  if constexpr (sizeof(T) == 4) {
    return __builtin_frexpf(x, &e);
  } else {
    return __builtin_frexp(x, &e);
  }
}

}  // namespace plait::scalar
