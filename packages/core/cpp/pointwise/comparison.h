// Comparisons and logical operations.
#pragma once
#include "pointwise/math.h"

namespace plait::scalar {

// a equals b
template <class T>
PLAIT_HD bool eq(T a, T b) {
  return a == b;
}
PLAIT_FEW_STEPS(eq)

// a differs from b
template <class T>
PLAIT_HD bool ne(T a, T b) {
  return a != b;
}
PLAIT_FEW_STEPS(ne)

// a is less than b
template <class T>
PLAIT_HD bool lt(T a, T b) {
  return a < b;
}
PLAIT_FEW_STEPS(lt)

// a is at most b
template <class T>
PLAIT_HD bool le(T a, T b) {
  return a <= b;
}
PLAIT_FEW_STEPS(le)

// a is greater than b
template <class T>
PLAIT_HD bool gt(T a, T b) {
  return a > b;
}
PLAIT_FEW_STEPS(gt)

// a is at least b
template <class T>
PLAIT_HD bool ge(T a, T b) {
  return a >= b;
}
PLAIT_FEW_STEPS(ge)

// both are nonzero
template <class T>
PLAIT_HD bool logical_and(T a, T b) {
  return (a != T(0)) & (b != T(0));
}
PLAIT_FEW_STEPS(logical_and)

// one at least is nonzero
template <class T>
PLAIT_HD bool logical_or(T a, T b) {
  return (a != T(0)) | (b != T(0));
}
PLAIT_FEW_STEPS(logical_or)

// exactly one is nonzero
template <class T>
PLAIT_HD bool logical_xor(T a, T b) {
  return (a != T(0)) != (b != T(0));
}
PLAIT_FEW_STEPS(logical_xor)

// x is zero
template <class T>
PLAIT_HD bool logical_not(T x) {
  return x == T(0);
}
PLAIT_FEW_STEPS(logical_not)

}  // namespace plait::scalar
