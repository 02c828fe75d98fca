// log2(2^a + 2^b) without overflow
#pragma once
#include "scalar/special/hyperbolic.h"

namespace plait::scalar {

template <class T>
PLAIT_HD T logaddexp2(T a, T b) {
  const T high = a > b ? a : b, d = math::abs(a - b);
  const T r = high + math::log1p(math::exp2(-d)) * T(1.44269504088896341);
  return a == b ? a + T(1) : d != d ? a + b : r;
}

}  // namespace plait::scalar
