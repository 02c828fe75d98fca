// the tangent of x radians; `quick` is for |x| < 2^28
#pragma once
#include "scalar/math.h"

namespace plait::scalar {

template <class T, bool quick = false>
PLAIT_HD T tan(T x) {
  return math::tan<quick>(x);
}

}  // namespace plait::scalar
