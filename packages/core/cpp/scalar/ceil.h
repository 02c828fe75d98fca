// the smallest whole number >= x
#pragma once
#include "scalar/math.h"

namespace plait::scalar {

template <class T>
PLAIT_HD T ceil(T x) {
  if constexpr (math::is_floating<T>) {
    return -math::floor(-x);
  } else {
    return x;
  }
}

}  // namespace plait::scalar
