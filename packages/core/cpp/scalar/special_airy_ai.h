// Airy's function Ai
#pragma once
#include "scalar/special/airy.h"

namespace plait::scalar {

template <class T>
PLAIT_HD T special_airy_ai(T x) {
  return T(math::airy_ai(double(x)));
}

}  // namespace plait::scalar
