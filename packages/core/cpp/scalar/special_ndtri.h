// the inverse of ndtr
#pragma once
#include "scalar/special/erf.h"

namespace plait::scalar {

template <class T>
PLAIT_HD T special_ndtri(T x) {
  return T(math::ndtri(double(x)));
}

}  // namespace plait::scalar
