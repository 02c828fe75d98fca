// Hermite's polynomial He_n(x)
#pragma once
#include "scalar/special/polynomials.h"

namespace plait::scalar {

template <class T>
PLAIT_HD T special_hermite_polynomial_he(T x, T n) {
  return T(math::hermite_he(double(x), double(n)));
}

}  // namespace plait::scalar
