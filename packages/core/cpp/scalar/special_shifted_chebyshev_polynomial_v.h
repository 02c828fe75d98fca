// Chebyshev's polynomial V_n(2 x - 1)
#pragma once
#include "scalar/special/polynomials.h"

namespace plait::scalar {

template <class T>
PLAIT_HD T special_shifted_chebyshev_polynomial_v(T x, T n) {
  return T(math::chebyshev_v(2 * double(x) - 1, double(n)));
}

}  // namespace plait::scalar
