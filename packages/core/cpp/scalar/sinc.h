// sin(pi x) / (pi x), 1 at 0
#pragma once
#include "scalar/math.h"

namespace plait::scalar {

template <class T>
PLAIT_HD T sinc(T x) {
  constexpr double pi = 3.14159265358979324;
  if constexpr (math::is_complex<T>) {
    const T y = T(pi) * x;
    return x == T(0) ? T(1) : math::sin(y) / y;
  } else {  // sin(pi x) = +-sin(pi (x - n)), whose argument is small where the sine is
    const T n = sizeof(T) == 4 ? T(__builtin_rintf(float(x))) : T(__builtin_rint(double(x)));
    const T half = n * T(0.5), r = math::abs(x) < T(0x1p52) ? x - n : x - x;
    const T s = math::sin(T(pi) * r), signed_s = half == math::floor(half) ? s : -s;
    return x == T(0) ? T(1) : signed_s / (T(pi) * x);
  }
}

}  // namespace plait::scalar
