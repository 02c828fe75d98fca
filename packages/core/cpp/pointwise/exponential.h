// Exponentials.
#pragma once
#include "pointwise/math.h"

namespace plait::scalar {

// e^x
template <class T>
PLAIT_HD T exp(T x) {
  return math::exp(x);
}

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
template <class T>
PLAIT_HD T expm1(T x) {
  return math::expm1(x);
}

}  // namespace plait::scalar
