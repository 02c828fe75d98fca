// Tests for NaN and infinity, and their replacement.
#pragma once
#include "pointwise/math.h"

namespace plait::scalar {

// x is not a number
template <class T>
PLAIT_HD bool isnan(T x) {
  return x != x;
}
PLAIT_FEW_STEPS(isnan)

// x is infinite
template <class T>
PLAIT_HD bool isinf(T x) {
  if constexpr (math::is_floating<T>) {
    return math::abs(x) == T(math::kInf);
  } else if constexpr (math::is_complex<T>) {
    return (math::abs(x.re) == math::kInf) | (math::abs(x.im) == math::kInf);
  } else {
    return false;
  }
}
PLAIT_FEW_STEPS(isinf)

// x is neither infinite nor NaN
template <class T>
PLAIT_HD bool isfinite(T x) {
  if constexpr (math::is_floating<T>) {
    return math::abs(x) < T(math::kInf);
  } else if constexpr (math::is_complex<T>) {
    return (math::abs(x.re) < math::kInf) & (math::abs(x.im) < math::kInf);
  } else {
    return true;
  }
}
PLAIT_FEW_STEPS(isfinite)

// x is +infinity
template <class T>
PLAIT_HD bool isposinf(T x) {
  if constexpr (math::is_floating<T>) {
    return x == T(math::kInf);
  } else {
    return (void)x, false;
  }
}
PLAIT_FEW_STEPS(isposinf)

// x is -infinity
template <class T>
PLAIT_HD bool isneginf(T x) {
  if constexpr (math::is_floating<T>) {
    return x == -T(math::kInf);
  } else {
    return (void)x, false;
  }
}
PLAIT_FEW_STEPS(isneginf)

// x, with other numbers instead of NaN, infinity and -infinity
template <class T>
PLAIT_HD T replace_nonfinite(T x, T nan, T posinf, T neginf) {
  if constexpr (math::is_floating<T>) {
    const T y = x == T(math::kInf) ? posinf : x == -T(math::kInf) ? neginf : x;
    return x != x ? nan : y;
  } else {
    return (void)nan, (void)posinf, (void)neginf, x;
  }
}
PLAIT_FEW_STEPS(replace_nonfinite)

}  // namespace plait::scalar
