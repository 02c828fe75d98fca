// Operations on the bits of integers and bools.
#pragma once
#include "pointwise/math.h"

namespace plait::scalar {

// the bits in both
template <class T>
PLAIT_HD T bitwise_and(T a, T b) {
  return T(a & b);
}

// the bits in either
template <class T>
PLAIT_HD T bitwise_or(T a, T b) {
  return T(a | b);
}

// the bits in exactly one
template <class T>
PLAIT_HD T bitwise_xor(T a, T b) {
  return T(a ^ b);
}

// a 2^b; 0 for amounts outside the width
template <class T>
PLAIT_HD T bitwise_left_shift(T a, T b) {
  using W = math::wide<T>;
  const bool inside = b >= T(0) && uint64_t(b) < sizeof(T) * 8;
  return inside ? T(W(a) << (W(b) & W(sizeof(W) * 8 - 1))) : T(0);
}

// a / 2^b rounded down; outside the width only the sign is left
template <class T>
PLAIT_HD T bitwise_right_shift(T a, T b) {
  const bool inside = b >= T(0) && uint64_t(b) < sizeof(T) * 8;
  const T outside = a < T(0) ? T(-1) : T(0);
  return inside ? T(a >> (int(b) & int(sizeof(T) * 8 - 1))) : outside;
}

// every bit of x inverted
template <class T>
PLAIT_HD T bitwise_not(T x) {
  if constexpr (T(2) == T(1)) {  // bool
    return !x;
  } else {
    return T(~x);
  }
}

}  // namespace plait::scalar
