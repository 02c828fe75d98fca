// Comparisons and logical operations.
#pragma once
#include "pointwise/math.h"

namespace plait::scalar {

// a equals b
template <class T>
PLAIT_HD bool eq(T a, T b) {
  return a == b;
}

// a differs from b
template <class T>
PLAIT_HD bool ne(T a, T b) {
  return a != b;
}

// a is less than b
template <class T>
PLAIT_HD bool lt(T a, T b) {
  return a < b;
}

// a is at most b
template <class T>
PLAIT_HD bool le(T a, T b) {
  return a <= b;
}

// a is greater than b
template <class T>
PLAIT_HD bool gt(T a, T b) {
  return a > b;
}

// a is at least b
template <class T>
PLAIT_HD bool ge(T a, T b) {
  return a >= b;
}

// both are nonzero
template <class T>
PLAIT_HD bool logical_and(T a, T b) {
  return (a != T(0)) & (b != T(0));
}

// one at least is nonzero
template <class T>
PLAIT_HD bool logical_or(T a, T b) {
  return (a != T(0)) | (b != T(0));
}

// exactly one is nonzero
template <class T>
PLAIT_HD bool logical_xor(T a, T b) {
  return (a != T(0)) != (b != T(0));
}

// x is zero
template <class T>
PLAIT_HD bool logical_not(T x) {
  return x == T(0);
}

}  // namespace plait::scalar
