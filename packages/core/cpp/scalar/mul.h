// a b
#pragma once
#include "scalar/math.h"

namespace plait::scalar {

template <class T>
PLAIT_HD T mul(T a, T b) {
  using W = math::wide<T>;
  return T(W(a) * W(b));
}

}  // namespace plait::scalar
