// Functions of complex numbers; a real number is one without an imaginary part.
#pragma once
#include "pointwise/math.h"

namespace plait::scalar {

// the conjugate, which of a real number is the number
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

// x has no imaginary part
template <class T>
PLAIT_HD bool isreal(T x) {
  if constexpr (math::is_complex<T>) {
    return x.im == typename math::RealOf<T>::type(0);
  } else {
    return (void)x, true;
  }
}

}  // namespace plait::scalar
