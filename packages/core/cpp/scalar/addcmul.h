// a + value b c
#pragma once
#include "scalar/math.h"

namespace plait::scalar {

template <class T>
PLAIT_HD T addcmul(T a, T b, T c, T value) {
  using W = math::wide<T>;
  return T(W(a) + W(value) * W(b) * W(c));
}

}  // namespace plait::scalar
