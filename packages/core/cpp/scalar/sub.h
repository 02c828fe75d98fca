// a - alpha b
#pragma once
#include "scalar/math.h"

namespace plait::scalar {

template <class T>
PLAIT_HD T sub(T a, T b, T alpha) {
  using W = math::wide<T>;
  return T(W(a) - W(alpha) * W(b));
}

}  // namespace plait::scalar
