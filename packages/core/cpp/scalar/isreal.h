// x has no imaginary part
#pragma once
#include "scalar/math.h"

namespace plait::scalar {

template <class T>
PLAIT_HD bool isreal(T x) {
  if constexpr (math::is_complex<T>) {
    return x.im == typename math::RealOf<T>::type(0);
  } else {
    return (void)x, true;
  }
}

}  // namespace plait::scalar
