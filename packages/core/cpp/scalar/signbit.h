// whether the sign is set, as it is of -0 and of some NaN
#pragma once
#include "scalar/math.h"

namespace plait::scalar {

template <class T>
PLAIT_HD bool signbit(T x) {
  if constexpr (math::is_floating<T>) {
    return math::bits(x) >> (sizeof(T) * 8 - 1);
  } else {
    return x < T(0);
  }
}

}  // namespace plait::scalar
