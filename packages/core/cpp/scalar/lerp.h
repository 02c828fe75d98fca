// a + t (b - a), exact at both ends
#pragma once
#include "scalar/math.h"

namespace plait::scalar {

template <class T>
PLAIT_HD T lerp(T a, T b, T t) {
  return math::abs(t) < typename math::RealOf<T>::type(0.5) ? a + t * (b - a)
                                                            : b - (b - a) * (T(1) - t);
}

}  // namespace plait::scalar
