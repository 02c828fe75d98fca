// the angle of a complex number; of a real one, 0 or pi
#pragma once
#include "scalar/math.h"

namespace plait::scalar {

template <class T>
PLAIT_HD typename math::RealOf<T>::type angle(T x) {
  if constexpr (math::is_complex<T>) {
    return math::angle(x);
  } else {
    return x != x ? x : x < T(0) ? T(3.14159265358979323846) : T(0);
  }
}

}  // namespace plait::scalar
