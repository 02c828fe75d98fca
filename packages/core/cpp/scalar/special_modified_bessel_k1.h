// the modified Bessel function K1
#pragma once
#include "scalar/special/bessel.h"

namespace plait::scalar {

template <class T>
PLAIT_HD T special_modified_bessel_k1(T x) {
  return T(math::k1(double(x)));
}

}  // namespace plait::scalar
