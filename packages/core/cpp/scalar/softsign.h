// x / (1 + |x|)
#pragma once
#include "scalar/math.h"

namespace plait::scalar {

template <class T>
PLAIT_HD T softsign(T x) {
  return x / T(typename math::RealOf<T>::type(1) + math::abs(x));
}

}  // namespace plait::scalar
