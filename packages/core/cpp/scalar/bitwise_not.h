// every bit of x inverted
#pragma once
#include "scalar/math.h"

namespace plait::scalar {

template <class T>
PLAIT_HD T bitwise_not(T x) {
  if constexpr (T(2) == T(1)) {  // bool
    return !x;
  } else {
    return T(~x);
  }
}

}  // namespace plait::scalar
