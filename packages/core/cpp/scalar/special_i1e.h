// exp(-|x|) I1(x)
#pragma once
#include "scalar/special/bessel.h"

namespace plait::scalar {

template <class T>
PLAIT_HD T special_i1e(T x) {
  return T(math::i1e(double(x)));
}

}  // namespace plait::scalar
