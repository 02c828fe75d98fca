// x, or 0 within [-lambd, lambd]
#pragma once
#include "scalar/math.h"

namespace plait::scalar {

template <class T>
PLAIT_HD T hardshrink(T x, T lambd) {
  return (x >= -lambd) & (x <= lambd) ? T(0) : x;
}

}  // namespace plait::scalar
