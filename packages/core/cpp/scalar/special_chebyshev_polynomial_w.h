// Chebyshev's polynomial W_n(x)
#pragma once
#include "scalar/special/polynomials.h"

namespace plait::scalar {

template <class T>
PLAIT_HD T special_chebyshev_polynomial_w(T x, T n) {
  return T(math::chebyshev_w(double(x), double(n)));
}

}  // namespace plait::scalar
