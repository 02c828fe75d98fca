// What kernels of products share: the type of a sum, its steps, and the end of a sum.
#pragma once
#include "block/block.h"

namespace plait::cuda {

// Sums of halves are float32; sums of short integers wrap as those of uint32 do.
template <class E>
struct SumOf {
  using type = Compute<E>;
};
template <>
struct SumOf<uint8_t> {
  using type = uint32_t;
};
template <>
struct SumOf<uint16_t> {
  using type = uint32_t;
};
template <class E>
using Sum = typename SumOf<E>::type;

// A factor of any dtype.
struct ProductFactor {
  double real, imaginary;
  int64_t integer;
};

}  // namespace plait::cuda

#if PLAIT_KERNELS
namespace plait::cuda {

template <class S>
PLAIT_DEVICE S multiply_add(S a, S b, S sum) {
  if constexpr (scalar::math::is_complex<S>) {
    return {scalar::math::fused(a.re, b.re, scalar::math::fused(-a.im, b.im, sum.re)),
            scalar::math::fused(a.re, b.im, scalar::math::fused(a.im, b.re, sum.im))};
  } else if constexpr (scalar::math::is_floating<S>) {
    return scalar::math::fused(a, b, sum);
  } else {
    return S(a * b + sum);
  }
}

template <class S>
PLAIT_DEVICE S factor_as(const ProductFactor &f) {
  if constexpr (scalar::math::is_complex<S>) {
    using R = typename scalar::math::RealOf<S>::type;
    return S(R(f.real), R(f.imaginary));
  } else if constexpr (scalar::math::is_floating<S>) {
    return S(f.real);
  } else {
    return S(f.integer);
  }
}

template <class E>
PLAIT_DEVICE Sum<E> to_sum(E x) {
  return Sum<E>(widen(x));
}
template <class E>
PLAIT_DEVICE E from_sum(Sum<E> x) {
  return narrow<E>(Compute<E>(x));
}

}  // namespace plait::cuda
#endif
