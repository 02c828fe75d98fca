// the conjugate; a real number is its own
#pragma once
#include "scalar/math.h"

namespace plait::scalar {

template <class T>
PLAIT_HD T conj(T x) {
  if constexpr (math::is_complex<T>) {
    return math::conj(x);
  } else {
    return x;
  }
}

}  // namespace plait::scalar
