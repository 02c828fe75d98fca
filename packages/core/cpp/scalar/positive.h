// x
#pragma once
#include "scalar/math.h"

namespace plait::scalar {

template <class T>
PLAIT_HD T positive(T x) {
  return x;
}

}  // namespace plait::scalar
