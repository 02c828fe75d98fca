// log(ndtr(x))
#pragma once
#include "scalar/special/erf.h"

namespace plait::scalar {

template <class T>
PLAIT_HD T special_log_ndtr(T x) {
  return T(math::log_ndtr(double(x)));
}

}  // namespace plait::scalar
