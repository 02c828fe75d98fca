// x / |x|, and 0 at 0
#pragma once
#include "scalar/math.h"

namespace plait::scalar {

template <class T>
PLAIT_HD T sgn(T x) {
  if constexpr (math::is_complex<T>) {
    const auto size = math::abs(x);
    return size == 0 ? T(0) : T(x.re / size, x.im / size);
  } else {
    return x > T(0) ? T(1) : x < T(0) ? T(-1) : x == x ? T(0) : x;
  }
}

}  // namespace plait::scalar
