// exactly one is nonzero
#pragma once
#include "scalar/math.h"

namespace plait::scalar {

template <class T>
PLAIT_HD bool logical_xor(T a, T b) {
  return (a != T(0)) != (b != T(0));
}

}  // namespace plait::scalar
