// Signs and magnitudes.
#pragma once
#include "pointwise/math.h"

namespace plait::scalar {

// |x|; the most negative integer stays itself
template <class T>
PLAIT_HD typename math::RealOf<T>::type abs(T x) {
  if constexpr (math::is_floating<T> || math::is_complex<T>) {
    return math::abs(x);
  } else {
    using W = math::wide<T>;
    return x < T(0) ? T(-W(x)) : x;
  }
}

// -1, 0 or 1; NaN stays NaN
template <class T>
PLAIT_HD T sign(T x) {
  return x > T(0) ? T(1) : x < T(0) ? T(-1) : x == x ? T(0) : x;
}
PLAIT_FEW_STEPS(sign)

// x / |x|, and 0 at 0
template <class T>
PLAIT_HD T sgn(T x) {
  if constexpr (math::is_complex<T>) {
    const auto size = math::abs(x);
    return size == 0 ? T(0) : T(x.re / size, x.im / size);
  } else {
    return x > T(0) ? T(1) : x < T(0) ? T(-1) : x == x ? T(0) : x;
  }
}

// whether the sign is set, as it is of -0 and of some NaN
template <class T>
PLAIT_HD bool signbit(T x) {
  if constexpr (math::is_floating<T>) {
    return math::bits(x) >> (sizeof(T) * 8 - 1);
  } else {
    return x < T(0);
  }
}
PLAIT_FEW_STEPS(signbit)

// |a| with the sign of b
template <class T>
PLAIT_HD T copysign(T a, T b) {
  return math::copysign(a, b);
}
PLAIT_FEW_STEPS(copysign)

// 0 below 0, 1 above, else `value`
template <class T>
PLAIT_HD T heaviside(T x, T value) {
  return x == T(0) ? value : T(x > T(0));
}
PLAIT_FEW_STEPS(heaviside)

}  // namespace plait::scalar
