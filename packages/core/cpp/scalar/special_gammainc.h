// the regularised lower incomplete gamma function
#pragma once
#include "scalar/special/incomplete_gamma.h"

namespace plait::scalar {

template <class T>
PLAIT_HD T special_gammainc(T a, T x) {
  return T(math::incomplete_gamma<false>(double(a), double(x)));
}

}  // namespace plait::scalar
