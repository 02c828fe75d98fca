// Hurwitz's zeta function: the sum of (q + k)^-s
#pragma once
#include "scalar/special/gamma.h"

namespace plait::scalar {

template <class T>
PLAIT_HD T special_zeta(T s, T q) {
  return T(math::zeta(double(s), double(q)));
}

}  // namespace plait::scalar
