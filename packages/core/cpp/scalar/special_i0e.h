// exp(-|x|) I0(x)
#pragma once
#include "scalar/special/bessel.h"

namespace plait::scalar {

template <class T>
PLAIT_HD T special_i0e(T x) {
  return T(math::i0e(double(x)));
}

}  // namespace plait::scalar
