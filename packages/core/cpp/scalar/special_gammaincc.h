// the regularised upper incomplete gamma function
#pragma once
#include "scalar/special/incomplete_gamma.h"

namespace plait::scalar {

template <class T>
PLAIT_HD T special_gammaincc(T a, T x) {
  return T(math::incomplete_gamma<true>(double(a), double(x)));
}

}  // namespace plait::scalar
