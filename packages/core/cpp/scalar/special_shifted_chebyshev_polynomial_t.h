// Chebyshev's polynomial T_n(2 x - 1)
#pragma once
#include "scalar/special/polynomials.h"

namespace plait::scalar {

template <class T>
PLAIT_HD T special_shifted_chebyshev_polynomial_t(T x, T n) {
  return T(math::chebyshev_t(2 * double(x) - 1, double(n)));
}

}  // namespace plait::scalar
