// x, with other numbers in the place of NaN, infinity and -infinity
#pragma once
#include "scalar/math.h"

namespace plait::scalar {

template <class T>
PLAIT_HD T replace_nonfinite(T x, T nan, T posinf, T neginf) {
  if constexpr (math::is_floating<T>) {
    const T y = x == T(math::kInf) ? posinf : x == -T(math::kInf) ? neginf : x;
    return x != x ? nan : y;
  } else {
    return (void)nan, (void)posinf, (void)neginf, x;
  }
}

}  // namespace plait::scalar
