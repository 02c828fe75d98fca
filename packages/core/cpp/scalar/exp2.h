// 2^x
#pragma once
#include "scalar/special/hyperbolic.h"

namespace plait::scalar {

template <class T>
PLAIT_HD T exp2(T x) {
  if constexpr (math::is_complex<T>) {
    return math::exp(x * T(0.69314718055994531));
  } else {
    return math::exp2(x);
  }
}

}  // namespace plait::scalar
