// the Bessel function J1
#pragma once
#include "scalar/special/bessel.h"

namespace plait::scalar {

template <class T>
PLAIT_HD T special_bessel_j1(T x) {
  return T(math::bessel_j1(double(x)));
}

}  // namespace plait::scalar
