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
template <class S, int tile>
constexpr int kTileSize = kDepth<S> * kPitch<S, tile>;

// Bytes of shared memory: two tiles of each operand, one being read while the other is written.
constexpr int64_t shared_bytes(int tile, int size) {
  return int64_t(4) * (size >= 16 ? 8 : 16) * (tile + 16 / size) * size;
}

// How a tile of an operand is read: neighbouring threads go along k or along the other dimension,
// and each reads a vector or single elements.
enum : int32_t { kAlongDepth = 1, kByVectors = 2 };

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

// An operand of which tiles are read: o is the dimension that is not k. Strides are in elements.
template <class E>
struct TileSource {
  Global<const E> from;
  int64_t first;  // the next tile's first element
  int64_t o_stride, l_stride;
  int32_t way;
  int o_left;  // elements along o from the tile on, at most its size
};

// One operand's part of a tile that a thread moves from global to shared memory. `o` is the
// dimension that is not k.
template <class E, int tile>
struct TilePart {
  using S = Sum<E>;
  static constexpr int kV = kVector<E>, kElements = tile * kDepth<S> / 256;
  E at[kElements];

  // Where group g of the thread's vectors lies in the tile.
  static PLAIT_DEVICE void locate(int thread, int g, int32_t way, int *o, int *l) {
    const int id = thread + g * 256;
    if (way & kAlongDepth) {
      *o = id / (kDepth<S> / kV), *l = id % (kDepth<S> / kV) * kV;
    } else {
      *l = id / (tile / kV), *o = id % (tile / kV) * kV;
    }
  }

  // `l_left`: what the operand has along k from the tile on.
  PLAIT_DEVICE void load(Block &t, const TileSource<E> &s, int l_left) {
#pragma unroll
    for (int g = 0; g < kElements / kV; g++) {
      int o, l;
      locate(t.thread(), g, s.way, &o, &l);
      const int o_step = s.way & kAlongDepth ? 0 : 1, l_step = 1 - o_step;
      const int64_t at_o = s.first + o * s.o_stride + l * s.l_stride;
      if ((s.way & kByVectors) && o + (kV - 1) * o_step < s.o_left &&
          l + (kV - 1) * l_step < l_left) {
        const Vector<E, kV> v = s.from.template load_vector<kV>(at_o);
#pragma unroll
        for (int i = 0; i < kV; i++) at[g * kV + i] = v.at[i];
      } else {
        const int64_t step = o_step ? s.o_stride : s.l_stride;
#pragma unroll
        for (int i = 0; i < kV; i++)
          at[g * kV + i] = o + i * o_step < s.o_left && l + i * l_step < l_left
                               ? s.from.load(at_o + i * step)
                               : E{};
      }
    }
  }

  PLAIT_DEVICE void store(Block &t, const Shared<S> &to, int first, int32_t way) const {
#pragma unroll
    for (int g = 0; g < kElements / kV; g++) {
      int o, l;
      locate(t.thread(), g, way, &o, &l);
      if (way & kAlongDepth) {
#pragma unroll
        for (int i = 0; i < kV; i++)
          to.store(first + (l + i) * kPitch<S, tile> + o, to_sum(at[g * kV + i]));
      } else {
        constexpr int kW = int(16 / sizeof(S));  // elements of a vector of sums
#pragma unroll
        for (int i = 0; i < kV; i += kW) {
          Vector<S, kW> v;
#pragma unroll
          for (int e = 0; e < kW; e++) v.at[e] = to_sum(at[g * kV + i + e]);
          to.template store_vector<kW>(first + l * kPitch<S, tile> + o + i, v);
        }
      }
    }
  }
};

// sum = the product of a strip of `a` and one of `b`, of `left` elements along k. Each thread of
// 256 has per x per sums.
template <class E, int tile, int per>
PLAIT_DEVICE void multiply_sources(Block &t, const Shared<Sum<E>> &a_tile,
                                   const Shared<Sum<E>> &b_tile, TileSource<E> a, TileSource<E> b,
                                   int left, Sum<E> (&sum)[per][per]) {
  using S = Sum<E>;
  TilePart<E, tile> a_part, b_part;
#pragma unroll
  for (int i = 0; i < per; i++)
#pragma unroll
    for (int j = 0; j < per; j++) sum[i][j] = S(0);
  auto load = [&]() {
    a_part.load(t, a, left);
    b_part.load(t, b, left);
    a.first += kDepth<S> * a.l_stride, b.first += kDepth<S> * b.l_stride, left -= kDepth<S>;
  };
  load();
  int which = 0;
  for (bool more = true; more; which ^= 1) {
    a_part.store(t, a_tile, which * kTileSize<S, tile>, a.way);
    b_part.store(t, b_tile, which * kTileSize<S, tile>, b.way);
    t.barrier();  // the other tile has been read by all: each thread stored after reading it
    more = left > 0;
    if (more) load();
    add_tile<S, tile, per>(t, a_tile, b_tile, which * kTileSize<S, tile>, sum);
  }
}

}  // namespace plait::cuda
#endif
