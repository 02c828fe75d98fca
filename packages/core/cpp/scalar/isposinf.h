// x is +infinity
#pragma once
#include "scalar/math.h"

namespace plait::scalar {

template <class T>
PLAIT_HD bool isposinf(T x) {
  if constexpr (math::is_floating<T>) {
    return x == T(math::kInf);
  } else {
    return (void)x, false;
  }
}

}  // namespace plait::scalar
