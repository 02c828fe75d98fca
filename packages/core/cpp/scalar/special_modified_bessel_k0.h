// the modified Bessel function K0
#pragma once
#include "scalar/special/bessel.h"

namespace plait::scalar {

template <class T>
PLAIT_HD T special_modified_bessel_k0(T x) {
  return T(math::k0(double(x)));
}

}  // namespace plait::scalar
