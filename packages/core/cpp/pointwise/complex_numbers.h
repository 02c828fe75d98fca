// Functions of complex numbers, which hold for real ones too.
#pragma once
#include "pointwise/math.h"

namespace plait::scalar {

// the conjugate; a real number is its own
template <class T>
PLAIT_HD T conj(T x) {
  if constexpr (math::is_complex<T>) {
    return math::conj(x);
  } else {
    return x;
  }
}

// the angle of a complex number; of a real one, 0 or pi
template <class T>
PLAIT_HD typename math::RealOf<T>::type angle(T x) {
  if constexpr (math::is_complex<T>) {
    return math::angle(x);
  } else {
    return x != x ? x : x < T(0) ? T(3.14159265358979323846) : T(0);
  }
}

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

}  // namespace plait::scalar
