// |x|; the most negative integer stays itself
#pragma once
#include "scalar/math.h"

namespace plait::scalar {

template <class T>
PLAIT_HD typename math::RealOf<T>::type abs(T x) {
  if constexpr (math::is_floating<T> || math::is_complex<T>) {
    return math::abs(x);
  } else {
    using W = math::wide<T>;
    return x < T(0) ? T(-W(x)) : x;
  }
}

}  // namespace plait::scalar
