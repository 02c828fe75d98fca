// Legendre's polynomial P_n(x)
#pragma once
#include "scalar/special/polynomials.h"

namespace plait::scalar {

template <class T>
PLAIT_HD T special_legendre_polynomial_p(T x, T n) {
  return T(math::legendre_p(double(x), double(n)));
}

}  // namespace plait::scalar
