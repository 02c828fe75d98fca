// -x
#pragma once
#include "scalar/math.h"

namespace plait::scalar {

template <class T>
PLAIT_HD T neg(T x) {
  using W = math::wide<T>;
  return T(-W(x));
}

}  // namespace plait::scalar
