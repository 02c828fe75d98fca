// x is neither infinite nor NaN
#pragma once
#include "scalar/math.h"

namespace plait::scalar {

template <class T>
PLAIT_HD bool isfinite(T x) {
  if constexpr (math::is_floating<T>) {
    return math::abs(x) < T(math::kInf);
  } else if constexpr (math::is_complex<T>) {
    return (math::abs(x.re) < math::kInf) & (math::abs(x.im) < math::kInf);
  } else {
    return true;
  }
}

}  // namespace plait::scalar
