// Hermite's polynomial H_n(x)
#pragma once
#include "scalar/special/polynomials.h"

namespace plait::scalar {

template <class T>
PLAIT_HD T special_hermite_polynomial_h(T x, T n) {
  return T(math::hermite_h(double(x), double(n)));
}

}  // namespace plait::scalar
