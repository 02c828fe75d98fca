// -x log(x), 0 at 0, -infinity below
#pragma once
#include "scalar/math.h"

namespace plait::scalar {

template <class T>
PLAIT_HD T special_entr(T x) {
  return x > T(0) ? -x * math::log(x) : x == T(0) ? T(0) : x != x ? x : -T(math::kInf);
}

}  // namespace plait::scalar
