// the whole part of x
#pragma once
#include "scalar/math.h"

namespace plait::scalar {

template <class T>
PLAIT_HD T trunc(T x) {
  if constexpr (math::is_floating<T>) {
    return math::trunc(x);
  } else {
    return x;
  }
}

}  // namespace plait::scalar
