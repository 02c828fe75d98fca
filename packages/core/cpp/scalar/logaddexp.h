// log(exp(a) + exp(b)) without overflow
#pragma once
#include "scalar/math.h"

namespace plait::scalar {

template <class T>
PLAIT_HD T logaddexp(T a, T b) {
  const T high = a > b ? a : b, d = math::abs(a - b);
  const T r = high + math::log1p(math::exp(-d));
  return a == b ? a + T(0.69314718055994531) : d != d ? a + b : r;
}

}  // namespace plait::scalar
