// What kernels of products share: the type of a sum, and tiles of operands in shared memory.
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

constexpr int kLargeTile = 128, kSmallTile = 64;

// Elements of one access, and the depth of a tile.
template <class E>
constexpr int kVector = sizeof(E) <= 4 ? 4 : int(16 / sizeof(E));
template <class S>
constexpr int kDepth = sizeof(S) >= 16 ? 8 : 16;
// A row of a tile has some elements more, against conflicts of banks.
template <class S, int tile>
constexpr int kPitch = tile + int(16 / sizeof(S));

// Bytes of shared memory: two tiles of each operand, one being read while the other is written.
constexpr int64_t shared_bytes(int tile, int size) {
  return int64_t(4) * (size >= 16 ? 8 : 16) * (tile + 16 / size) * size;
}

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

// `per` elements of row l of a tile, in groups of four: those of thread `at` of 16.
template <class S, int tile, int per>
PLAIT_DEVICE void tile_row(const Shared<S> &from, int first, int l, int at, S *to) {
  constexpr int kW = int(16 / sizeof(S));
#pragma unroll
  for (int g = 0; g < per / 4; g++)
#pragma unroll
    for (int i = 0; i < 4; i += kW) {
      const Vector<S, kW> v = from.template load_vector<kW>(first + l * kPitch<S, tile> +
                                                            g * (tile / (per / 4)) + at * 4 + i);
#pragma unroll
      for (int e = 0; e < kW; e++) to[g * 4 + i + e] = v.at[e];
    }
}

// Adds the product of two tiles in shared memory to the sums of a thread, of 16 x 16.
template <class S, int tile, int per>
PLAIT_DEVICE void add_tile(Block &t, const Shared<S> &a_tile, const Shared<S> &b_tile, int first,
                           S (&sum)[per][per]) {
#pragma unroll
  for (int d = 0; d < kDepth<S>; d++) {
    S x[per], y[per];
    tile_row<S, tile, per>(a_tile, first, d, t.thread() / 16, x);
    tile_row<S, tile, per>(b_tile, first, d, t.thread() % 16, y);
#pragma unroll
    for (int i = 0; i < per; i++)
#pragma unroll
      for (int j = 0; j < per; j++) sum[i][j] = multiply_add(x[i], y[j], sum[i][j]);
  }
}

}  // namespace plait::cuda
#endif
