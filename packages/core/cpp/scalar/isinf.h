// x is infinite
#pragma once
#include "scalar/math.h"

namespace plait::scalar {

template <class T>
PLAIT_HD bool isinf(T x) {
  if constexpr (math::is_floating<T>) {
    return math::abs(x) == T(math::kInf);
  } else if constexpr (math::is_complex<T>) {
    return (math::abs(x.re) == math::kInf) | (math::abs(x.im) == math::kInf);
  } else {
    return false;
  }
}

}  // namespace plait::scalar
