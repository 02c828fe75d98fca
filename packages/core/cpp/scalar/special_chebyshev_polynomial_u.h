// Chebyshev's polynomial U_n(x)
#pragma once
#include "scalar/special/polynomials.h"

namespace plait::scalar {

template <class T>
PLAIT_HD T special_chebyshev_polynomial_u(T x, T n) {
  return T(math::chebyshev_u(double(x), double(n)));
}

}  // namespace plait::scalar
