// sin(x) / x
#pragma once
#include "scalar/special/bessel.h"

namespace plait::scalar {

template <class T>
PLAIT_HD T special_spherical_bessel_j0(T x) {
  return T(math::spherical_j0(double(x)));
}

}  // namespace plait::scalar
