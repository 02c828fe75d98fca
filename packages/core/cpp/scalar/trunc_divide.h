// a / b towards zero; an integer divided by 0 gives 0
#pragma once
#include "scalar/math.h"

namespace plait::scalar {

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

}  // namespace plait::scalar
