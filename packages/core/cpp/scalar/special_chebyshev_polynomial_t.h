// Chebyshev's polynomial T_n(x)
#pragma once
#include "scalar/special/polynomials.h"

namespace plait::scalar {

template <class T>
PLAIT_HD T special_chebyshev_polynomial_t(T x, T n) {
  return T(math::chebyshev_t(double(x), double(n)));
}

}  // namespace plait::scalar
