// x^2
#pragma once
#include "scalar/math.h"

namespace plait::scalar {

template <class T>
PLAIT_HD T square(T x) {
  using W = math::wide<T>;
  return T(W(x) * W(x));
}

}  // namespace plait::scalar
