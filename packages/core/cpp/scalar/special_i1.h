// the modified Bessel function I1
#pragma once
#include "scalar/special/bessel.h"

namespace plait::scalar {

template <class T>
PLAIT_HD T special_i1(T x) {
  return T(math::i1(double(x)));
}

}  // namespace plait::scalar
