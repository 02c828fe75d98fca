// x times the normal distribution function of x
#pragma once
#include "scalar/math.h"

namespace plait::scalar {

template <class T>
PLAIT_HD T gelu(T x) {
  return T(0.5) * x * (T(1) + math::erf(x * T(0.70710678118654752)));
}

}  // namespace plait::scalar
