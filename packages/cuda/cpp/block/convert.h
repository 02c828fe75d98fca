// An element as an element of another type, rounded once, as the CPU's kernels do it.
#pragma once
#include "block/types.h"

namespace plait::cuda {

// float64 as a float32 from which halves are rounded as if from float64: what does not fit is cut
// off, and the last bit set (round to odd; Boldo and Melquiond 2008).
PLAIT_HD float round_to_odd(double x) {
  const float f = float(x);
  const double back = double(f);
  if (back == x || x != x || f - f != 0) return f;  // exact, nan, or infinite
  uint32_t u = scalar::math::bits(f);
  if (scalar::math::abs(back) > scalar::math::abs(x)) u--;
  return scalar::math::from_bits(u | 1);
}

// Real numbers that are not halves. Floating-point numbers outside the range of an integer have no
// defined result; small negative ones wrap around.
template <class D, class S>
PLAIT_HD D convert_number(S x) {
  using scalar::math::is_floating;
  if constexpr (std::is_same_v<D, bool>) {
    return x != S(0);
  } else if constexpr (is_floating<S> && !is_floating<D> && sizeof(D) < 4) {
    return D(int32_t(x));
  } else if constexpr (is_floating<S> && std::is_same_v<D, uint32_t>) {
    return D(int64_t(x));
  } else if constexpr (is_floating<S> && std::is_same_v<D, uint64_t>) {
    return x >= S(9223372036854775808.0) ? D(int64_t(x - S(9223372036854775808.0))) + (D(1) << 63)
                                         : D(int64_t(x));
  } else {
    return D(x);
  }
}

template <class D, class S>
PLAIT_HD D convert(S x) {
  constexpr bool is_half = std::is_same_v<D, Half> || std::is_same_v<D, BFloat>;
  if constexpr (std::is_same_v<D, S>) {
    return x;
  } else if constexpr (std::is_same_v<S, Half> || std::is_same_v<S, BFloat>) {
    return convert<D>(widen(x));
  } else if constexpr (scalar::math::is_complex<S>) {
    if constexpr (scalar::math::is_complex<D>)
      return D(x);
    else if constexpr (std::is_same_v<D, bool>)
      return x.re != 0 || x.im != 0;
    else
      return convert<D>(x.re);
  } else if constexpr (scalar::math::is_complex<D>) {
    return D(convert_number<typename scalar::math::RealOf<D>::type>(x));
  } else if constexpr (is_half && std::is_same_v<S, float>) {
    return narrow<D>(x);
  } else if constexpr (is_half) {
    return narrow<D>(round_to_odd(double(x)));
  } else {
    return convert_number<D>(x);
  }
}

}  // namespace plait::cuda
