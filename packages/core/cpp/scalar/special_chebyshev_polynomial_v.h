// Chebyshev's polynomial V_n(x)
#pragma once
#include "scalar/special/polynomials.h"

namespace plait::scalar {

template <class T>
PLAIT_HD T special_chebyshev_polynomial_v(T x, T n) {
  return T(math::chebyshev_v(double(x), double(n)));
}

}  // namespace plait::scalar
