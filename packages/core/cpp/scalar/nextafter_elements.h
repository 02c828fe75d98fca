// the number after a on the way to b
#pragma once
#include "scalar/math.h"

namespace plait::scalar {

template <class T>
PLAIT_HD T nextafter_elements(T a, T b) {
  if constexpr (sizeof(T) == 4) {
    return __builtin_nextafterf(a, b);
  } else {
    return __builtin_nextafter(a, b);
  }
}

}  // namespace plait::scalar
