// the modified Bessel function I0
#pragma once
#include "scalar/special/bessel.h"

namespace plait::scalar {

template <class T>
PLAIT_HD T i0(T x) {
  return T(math::i0(double(x)));
}

}  // namespace plait::scalar
