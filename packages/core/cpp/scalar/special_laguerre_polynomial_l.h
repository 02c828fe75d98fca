// Laguerre's polynomial L_n(x)
#pragma once
#include "scalar/special/polynomials.h"

namespace plait::scalar {

template <class T>
PLAIT_HD T special_laguerre_polynomial_l(T x, T n) {
  return T(math::laguerre_l(double(x), double(n)));
}

}  // namespace plait::scalar
