// Exponentials.
#pragma once
#include "pointwise/math.h"

namespace plait::scalar {

// e^x
PLAIT_MATH_UNARY(exp)

// 2^x
template <class T>
PLAIT_HD T exp2(T x) {
  if constexpr (math::is_complex<T>) {
    return math::exp(x * T(0.69314718055994531));
  } else {
    return math::exp2(x);
  }
}

// e^x - 1, exact near 0
PLAIT_MATH_UNARY(expm1)

}  // namespace plait::scalar
