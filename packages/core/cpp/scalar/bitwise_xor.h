// the bits in exactly one
#pragma once
#include "scalar/math.h"

namespace plait::scalar {

template <class T>
PLAIT_HD T bitwise_xor(T a, T b) {
  return T(a ^ b);
}

}  // namespace plait::scalar
