// Elements as unsigned integers of the same order. The sign bit of signed numbers is inverted; of
// negative floating-point numbers all bits are. -0 is 0, and nan is the largest key.
#pragma once
#include "block/types.h"

namespace plait::cuda {

template <class T>
using SortKey = std::conditional_t<sizeof(T) == 8, uint64_t, uint32_t>;
template <class T>
constexpr int kKeyBits = 8 * int(sizeof(T));
template <class T>
constexpr SortKey<T> kLargestKey = SortKey<T>(~uint64_t(0) >> (64 - kKeyBits<T>));

template <class T>
PLAIT_HD bool is_nan(T x) {
  const auto y = widen(x);
  return y != y;
}

template <class T>
PLAIT_HD SortKey<T> sort_key(T x) {
  using K = SortKey<T>;
  constexpr K kSign = K(1) << (kKeyBits<T> - 1);
  if constexpr (std::is_integral_v<T>) {
    return std::is_signed_v<T> ? (K(x) ^ kSign) & kLargestKey<T> : K(x);
  } else {
    using Bits = std::conditional_t<sizeof(T) == 2, uint16_t, K>;
    Bits bits;
    memcpy(&bits, &x, sizeof bits);
    const K u = K(bits) == kSign ? K(0) : K(bits);
    return is_nan(x) ? kLargestKey<T> : u & kSign ? ~u & kLargestKey<T> : u | kSign;
  }
}

// The key by which an element is sorted in either direction.
template <class T>
PLAIT_HD SortKey<T> directed_key(T x, bool descending) {
  return descending ? ~sort_key(x) & kLargestKey<T> : sort_key(x);
}

}  // namespace plait::cuda
