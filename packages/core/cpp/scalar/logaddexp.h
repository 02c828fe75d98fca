// log(exp(a) + exp(b)) without overflow
#pragma once
#include "scalar/math.h"

namespace plait::scalar {

template <class T>
PLAIT_HD T logaddexp(T a, T b) {
  if constexpr (math::is_complex<T>) {
    const bool up = a.re >= b.re;
    const T high = up ? a : b, low = up ? b : a;
    return high.re == typename math::RealOf<T>::type(-math::kInf)
               ? high
               : high + math::log1p(math::exp(low - high));
  } else {
    const T high = a > b ? a : b, d = math::abs(a - b);
    const T r = high + math::log1p(math::exp(-d));
    return a == b ? a + T(0.69314718055994531) : d != d ? a + b : r;
  }
}

}  // namespace plait::scalar
