// conv2d and its two derivatives. Each is a product of matrices of which one is never written out:
// its elements are gathered from the images while tiles are loaded. Filters of few channels and
// small problems have a thread for each result. Others go to cuDNN first.
#include "host/convolution.h"
#include "block/product.h"
#include "host/walk.h"
#include "pointwise/activations.h"
#if PLAIT_HOST
#include "host/dense.h"
#endif

#define PLAIT_EACH_LARGE_CONVOLUTION(X, ...) \
  X(f32, float, __VA_ARGS__)                 \
  X(f16, ::plait::cuda::Half, __VA_ARGS__)   \
  X(bf16, ::plait::cuda::BFloat, __VA_ARGS__)

namespace plait::cuda {

enum JoinedActivation : int32_t { kNone, kRelu, kHardtanh, kLeakyRelu, kSilu, kHardswish };

// The product is, for each group, m x k times k x n:
//   Forward   filters x patches, patches x results' pixels
//   ByInput   channels x (filters, window), (filters, window) x images' pixels
//   ByWeight  filters x results' pixels, results' pixels x patches
struct ConvolutionArgs {
  const void *weight, *image, *grad, *bias;  // grad: of the results, or the results
  void *out;                                 // or the sums of parts of k: [part][weight]
  int64_t m, n, k, bias_stride;
  int64_t depth, parts;  // of k that one block sums
  int32_t images, channels, h, w, filters, oh, ow, kh, kw;  // channels and filters of one group
  int32_t sh, sw, ph, pw, dh, dw, groups;
  int32_t by_vectors;  // four pixels of the result lie in one image, at a multiple of their size
  int32_t activation;
  double number[3];  // of the activation
  // of pixels of the result (ByInput: of the images), windows and strides
  Divider by_area, by_width, by_window, by_kw, by_sh, by_sw;
};

struct ConvolutionPartsArgs {
  const void *sums;
  void *out;
  int64_t n, parts;
};

}  // namespace plait::cuda

#if PLAIT_KERNELS
namespace plait::cuda {

struct Pixel {
  int32_t image, at, y, x;  // `at`: its number within the image
};
PLAIT_DEVICE Pixel pixel_of(const ConvolutionArgs &a, int32_t i) {
  const uint32_t image = quotient(a.by_area, uint32_t(i));
  const uint32_t at = uint32_t(i) - image * a.by_area.divisor, y = quotient(a.by_width, at);
  return {int32_t(image), int32_t(at), int32_t(y), int32_t(at - y * a.by_width.divisor)};
}

struct Place {
  int32_t channel, in_window, i, j;  // of a patch
};
PLAIT_DEVICE Place place_of(const ConvolutionArgs &a, int32_t l) {
  const uint32_t channel = quotient(a.by_window, uint32_t(l));
  const uint32_t rest = uint32_t(l) - channel * a.by_window.divisor, i = quotient(a.by_kw, rest);
  return {int32_t(channel), int32_t(rest), int32_t(i), int32_t(rest - i * a.by_kw.divisor)};
}

// Where the element of the gathered operand lies in its plane, -1: it is outside and counts as 0.
// y and x are those of pixel_of, i and j those of place_of.
template <Pass pass>
PLAIT_DEVICE int32_t gathered(const ConvolutionArgs &a, int32_t y, int32_t x, int32_t i,
                              int32_t j) {
  if constexpr (pass == Pass::ByInput) {
    const int32_t u = y + a.ph - i * a.dh, v = x + a.pw - j * a.dw;
    if (u < 0 || v < 0) return -1;
    const int32_t row = int32_t(quotient(a.by_sh, uint32_t(u)));
    const int32_t column = int32_t(quotient(a.by_sw, uint32_t(v)));
    const bool hit = row * a.sh == u && column * a.sw == v && row < a.oh && column < a.ow;
    return hit ? row * a.ow + column : -1;
  } else {
    const int32_t u = y * a.sh - a.ph + i * a.dh, v = x * a.sw - a.pw + j * a.dw;
    return uint32_t(u) < uint32_t(a.h) && uint32_t(v) < uint32_t(a.w) ? u * a.w + v : -1;
  }
}

// The rarer activations, as a thread has up to 64 results.
template <class S>
PLAIT_DEVICE_CALLED S activated(int32_t activation, S low, S high, S slope, S x) {
  switch (activation) {
    case kHardtanh: return scalar::hardtanh(x, low, high);
    case kLeakyRelu: return scalar::leaky_relu(x, slope);
    case kSilu: return scalar::silu(x);
    case kHardswish: return scalar::hardswish(x);
    default: return x;
  }
}

// Adds the bias of a filter to sums of its results, if there is one, and takes the activation.
template <class E, int n>
PLAIT_DEVICE void finish_forward(Thread &t, const ConvolutionArgs &a, int64_t filter,
                                 Sum<E> (&sum)[n]) {
  using S = Sum<E>;
  if (a.bias) {
    const S bias = to_sum(t.global<const E>(a.bias).load(filter * a.bias_stride));
#pragma unroll
    for (int i = 0; i < n; i++) sum[i] = sum[i] + bias;
  }
  if (a.activation == kNone) return;
  if (a.activation == kRelu) {
#pragma unroll
    for (int i = 0; i < n; i++) sum[i] = scalar::relu(sum[i]);
    return;
  }
#pragma unroll
  for (int i = 0; i < n; i++)
    sum[i] = activated(a.activation, S(a.number[0]), S(a.number[1]), S(a.number[2]), sum[i]);
}

// The part of the first operand's tile that a thread loads: one column, every 16th or 32nd row.
template <class E, int tile, Pass pass>
struct DensePart {
  using S = Sum<E>;
  static constexpr int kCount = tile * kDepth<S> / 256, kStep = 256 / kDepth<S>;
  E at[kCount];

  PLAIT_DEVICE void load(Block &t, const ConvolutionArgs &a, int64_t group, int32_t row,
                         int32_t l_from, int32_t l_end) {
    const int32_t l = l_from + t.thread() % kDepth<S>;
    const int first = t.thread() / kDepth<S>, left = int(a.m - row < tile ? a.m - row : tile);
    int64_t start = 0, step;
    if constexpr (pass == Pass::Forward) {
      start = group * a.filters * a.k + l, step = a.k;
    } else if constexpr (pass == Pass::ByInput) {
      const Place p = place_of(a, l < l_end ? l : l_from);
      const int64_t window = a.by_window.divisor;
      start = (group * a.filters + p.channel) * a.channels * window + p.in_window, step = window;
    } else {
      const Pixel p = pixel_of(a, l < l_end ? l : l_from);
      step = int64_t(a.oh) * a.ow;
      start = (int64_t(p.image) * a.groups + group) * a.filters * step + p.at;
    }
    const auto from = t.global<const E>(pass == Pass::ByWeight ? a.grad : a.weight);
#pragma unroll
    for (int g = 0; g < kCount; g++) {
      const int o = first + g * kStep;
      at[g] = o < left && l < l_end ? from.load(start + (row + o) * step) : E{};
    }
  }
  PLAIT_DEVICE void store(Block &t, const Shared<S> &to, int first) const {
#pragma unroll
    for (int g = 0; g < kCount; g++)
      to.store(
          first + t.thread() % kDepth<S> * kPitch<S, tile> + t.thread() / kDepth<S> + g * kStep,
          to_sum(at[g]));
  }
};

// The part of the gathered operand's tile that a thread loads: one pixel and several places of
// patches, or by weights one pixel of each step and the same places.
template <class E, int tile, Pass pass>
struct GatheredPart {
  using S = Sum<E>;
  static constexpr int kCount = tile * kDepth<S> / 256;
  static constexpr bool kByWeight = pass == Pass::ByWeight;
  static constexpr int kStep = kByWeight ? 256 / kDepth<S> : 256 / tile;
  E at[kCount];
  int64_t base;                            // of the pixel's image, or of the group
  int32_t y, x;                            // of the pixel, beyond the result: y < 0
  int32_t plane[kByWeight ? kCount : 1];   // of a place: its channel's, -1: beyond the result
  int16_t i[kByWeight ? kCount : 1], j[kByWeight ? kCount : 1];

  PLAIT_DEVICE int row_of(Block &t, int g) const {  // along k
    return kByWeight ? t.thread() % kDepth<S> : t.thread() / tile + g * kStep;
  }
  PLAIT_DEVICE int column_of(Block &t, int g) const {
    return kByWeight ? t.thread() / kDepth<S> + g * kStep : t.thread() % tile;
  }
  static PLAIT_DEVICE int64_t area(const ConvolutionArgs &a) {
    return pass == Pass::ByInput ? int64_t(a.oh) * a.ow : int64_t(a.h) * a.w;
  }

  PLAIT_DEVICE void start(Block &t, const ConvolutionArgs &a, int64_t group, int32_t column) {
    const int64_t many = pass == Pass::ByInput ? a.filters : a.channels;
    if constexpr (kByWeight) {
      base = group * many * area(a);
#pragma unroll
      for (int g = 0; g < kCount; g++) {
        const int32_t at_column = column + column_of(t, g);
        const bool is_inside = at_column < a.n;
        const Place p = place_of(a, is_inside ? at_column : 0);
        plane[g] = is_inside ? p.channel : -1;
        i[g] = int16_t(p.i), j[g] = int16_t(p.j);
      }
    } else {
      const int32_t at_column = column + column_of(t, 0);
      const bool is_inside = at_column < a.n;
      const Pixel p = pixel_of(a, is_inside ? at_column : 0);
      base = (int64_t(p.image) * a.groups + group) * many * area(a);
      y = is_inside ? p.y : -1, x = p.x;
    }
  }
  PLAIT_DEVICE void load(Block &t, const ConvolutionArgs &a, int32_t l_from, int32_t l_end) {
    const auto from = t.global<const E>(pass == Pass::ByInput ? a.grad : a.image);
    if constexpr (kByWeight) {
      const int32_t l = l_from + row_of(t, 0);
      const Pixel p = pixel_of(a, l < l_end ? l : l_from);
      const int64_t image = base + int64_t(p.image) * a.groups * a.channels * area(a);
#pragma unroll
      for (int g = 0; g < kCount; g++) {
        const int32_t in_plane =
            l < l_end && plane[g] >= 0 ? gathered<pass>(a, p.y, p.x, i[g], j[g]) : -1;
        at[g] = in_plane >= 0 ? from.load(image + plane[g] * area(a) + in_plane) : E{};
      }
    } else {
#pragma unroll
      for (int g = 0; g < kCount; g++) {
        const int32_t l = l_from + row_of(t, g);
        const Place p = place_of(a, l < l_end ? l : l_from);
        const int32_t in_plane = l < l_end && y >= 0 ? gathered<pass>(a, y, x, p.i, p.j) : -1;
        at[g] = in_plane >= 0 ? from.load(base + p.channel * area(a) + in_plane) : E{};
      }
    }
  }
  PLAIT_DEVICE void store(Block &t, const Shared<S> &to, int first) const {
#pragma unroll
    for (int g = 0; g < kCount; g++)
      to.store(first + row_of(t, g) * kPitch<S, tile> + column_of(t, g), to_sum(at[g]));
  }
};

// Where column `column` of the result begins; its rows are row_step apart.
template <Pass pass>
PLAIT_DEVICE int64_t column_start(const ConvolutionArgs &a, int64_t group, int32_t column) {
  if constexpr (pass == Pass::ByWeight) {
    return group * a.m * a.n + column;
  } else {
    const Pixel p = pixel_of(a, column);
    return (int64_t(p.image) * a.groups + group) * a.m * a.by_area.divisor + p.at;
  }
}

// The row in the tile of a thread's sums [i].
template <int tile, int per>
PLAIT_DEVICE int row_of_sum(Block &t, int i) {
  return i / 4 * (tile / (per / 4)) + t.thread() / 16 * 4 + i % 4;
}

template <class E, int tile, int per, Pass pass>
PLAIT_DEVICE void store_convolution(Block &t, const ConvolutionArgs &a,
                                    const Sum<E> (&sum)[per][per], int64_t group, int64_t part,
                                    int32_t row, int32_t column) {
  constexpr int kV = kVector<E>, kGap = tile / (per / 4);
  const int across = t.thread() % 16;
  const int64_t row_step = pass == Pass::ByWeight ? a.n : int64_t(a.by_area.divisor);
  const auto to = t.template global<E>(a.out);
#pragma unroll
  for (int g = 0; g < per; g += kV) {
    const int32_t y = column + g / 4 * kGap + across * 4 + g % 4;
    if (y >= a.n) continue;
    int64_t start[kV];
#pragma unroll
    for (int e = 0; e < kV; e++)
      start[e] = e == 0 || a.by_vectors || y + e >= a.n ? 0 : column_start<pass>(a, group, y + e);
    start[0] = column_start<pass>(a, group, y);
#pragma unroll
    for (int i = 0; i < per; i++) {
      const int32_t x = row + row_of_sum<tile, per>(t, i);
      if (x >= a.m) continue;
      if (a.parts > 1) {
        const auto sums = t.template global<Sum<E>>(a.out);
#pragma unroll
        for (int e = 0; e < kV; e++)
          if (y + e < a.n)
            sums.store((part * a.groups + group) * a.m * a.n + x * a.n + y + e, sum[i][g + e]);
      } else if (a.by_vectors) {
        Vector<E, kV> v;
#pragma unroll
        for (int e = 0; e < kV; e++) v.at[e] = from_sum<E>(sum[i][g + e]);
        to.template store_vector<kV>(start[0] + x * row_step, v);
      } else {
#pragma unroll
        for (int e = 0; e < kV; e++)
          if (y + e < a.n) to.store(start[e] + x * row_step, from_sum<E>(sum[i][g + e]));
      }
    }
  }
}

template <class E, int tile, int per, Pass pass>
PLAIT_DEVICE void convolution_tile(Block &t, const ConvolutionArgs &a) {
  using S = Sum<E>;
  constexpr int kSize = kTileSize<S, tile>;
  const auto a_tile = t.template shared<S>(2 * kSize), b_tile = t.template shared<S>(2 * kSize);
  const int64_t down = (a.m + tile - 1) / tile, across = (a.n + tile - 1) / tile;
  const int32_t row = int32_t(t.block() % down) * tile;
  const int32_t column = int32_t(t.block() / down % across) * tile;
  const int64_t rest = t.block() / down / across, part = rest % a.parts, group = rest / a.parts;
  int32_t l = int32_t(part * a.depth);
  const int32_t end = int32_t(l + a.depth < a.k ? l + a.depth : a.k);
  DensePart<E, tile, pass> dense;
  GatheredPart<E, tile, pass> image;
  S sum[per][per];
#pragma unroll
  for (int i = 0; i < per; i++)
#pragma unroll
    for (int j = 0; j < per; j++) sum[i][j] = S(0);
  image.start(t, a, group, column);
  dense.load(t, a, group, row, l, end);
  image.load(t, a, l, end);
  int which = 0;
  for (bool more = true; more; which ^= 1) {
    dense.store(t, a_tile, which * kSize);
    image.store(t, b_tile, which * kSize);
    t.barrier();
    l += kDepth<S>;
    more = l < end;
    if (more) {
      dense.load(t, a, group, row, l, end);
      image.load(t, a, l, end);
    }
    add_tile<S, tile, per>(t, a_tile, b_tile, which * kSize, sum);
  }
  if constexpr (pass == Pass::Forward) {
#pragma unroll
    for (int i = 0; i < per; i++) {
      const int32_t x = row + row_of_sum<tile, per>(t, i);
      if (x < a.m) finish_forward<E>(t, a, group * a.m + x, sum[i]);
    }
  }
  store_convolution<E, tile, per, pass>(t, a, sum, group, part, row, column);
}

template <class E>
PLAIT_DEVICE void convolution_large(Block &t, const ConvolutionArgs &a) {
  convolution_tile<E, kLargeTile, 8, Pass::Forward>(t, a);
}
template <class E>
PLAIT_DEVICE void convolution_small(Block &t, const ConvolutionArgs &a) {
  convolution_tile<E, kSmallTile, 4, Pass::Forward>(t, a);
}
template <class E>
PLAIT_DEVICE void convolution_input_large(Block &t, const ConvolutionArgs &a) {
  convolution_tile<E, kLargeTile, 8, Pass::ByInput>(t, a);
}
template <class E>
PLAIT_DEVICE void convolution_input_small(Block &t, const ConvolutionArgs &a) {
  convolution_tile<E, kSmallTile, 4, Pass::ByInput>(t, a);
}
template <class E>
PLAIT_DEVICE void convolution_weight_large(Block &t, const ConvolutionArgs &a) {
  convolution_tile<E, kLargeTile, 8, Pass::ByWeight>(t, a);
}
template <class E>
PLAIT_DEVICE void convolution_weight_small(Block &t, const ConvolutionArgs &a) {
  convolution_tile<E, kSmallTile, 4, Pass::ByWeight>(t, a);
}

// A thread for each result.
template <class E, Pass pass>
PLAIT_DEVICE void convolution_single(Thread &t, const ConvolutionArgs &a) {
  using S = Sum<E>;
  const auto weight = t.global<const E>(a.weight);
  const auto from = t.global<const E>(pass == Pass::ByInput ? a.grad : a.image);
  const auto to = t.global<E>(a.out);
  const int64_t area = a.by_area.divisor;
  const int64_t plane = pass == Pass::ByInput ? int64_t(a.oh) * a.ow : int64_t(a.h) * a.w;
  const int32_t many = pass == Pass::ByInput ? a.filters : a.channels;
  const int64_t total = int64_t(a.images) * a.groups * a.m * area;
  const int64_t window = int64_t(a.kh) * a.kw;
  for (int64_t at = t.index(); at < total; at += t.stride()) {
    const int64_t in_rows = at / area;  // image, group and row
    const uint32_t p = uint32_t(at - in_rows * area), y = quotient(a.by_width, p);
    const int32_t x = int32_t(p - y * a.by_width.divisor);
    const int64_t o = in_rows % (a.groups * a.m), group = o / a.m;
    const int64_t start = (in_rows / (a.groups * a.m) * a.groups + group) * many * plane;
    S sum = S(0);
    for (int32_t ch = 0; ch < many; ch++) {
      const int64_t w_start = pass == Pass::ByInput ? ((group * many + ch) * a.m + o % a.m) * window
                                                    : (o * many + ch) * window;
      for (int32_t i = 0; i < a.kh; i++)
        for (int32_t j = 0; j < a.kw; j++) {
          const int32_t in_plane = gathered<pass>(a, int32_t(y), x, i, j);
          if (in_plane >= 0)
            sum = multiply_add(to_sum(weight.load(w_start + i * a.kw + j)),
                               to_sum(from.load(start + ch * plane + in_plane)), sum);
        }
    }
    S result[1] = {sum};
    if constexpr (pass == Pass::Forward) finish_forward<E>(t, a, o, result);
    to.store(at, from_sum<E>(result[0]));
  }
}
template <class E>
PLAIT_DEVICE void convolution_each(Thread &t, const ConvolutionArgs &a) {
  convolution_single<E, Pass::Forward>(t, a);
}
template <class E>
PLAIT_DEVICE void convolution_input_each(Thread &t, const ConvolutionArgs &a) {
  convolution_single<E, Pass::ByInput>(t, a);
}

// A block of 128 threads for each weight: its pixels, 128 at a time.
template <class E>
PLAIT_DEVICE void convolution_weight_each(Block &t, const ConvolutionArgs &a) {
  using S = Sum<E>;
  const auto grad = t.template global<const E>(a.grad), image = t.template global<const E>(a.image);
  const auto sums = t.template shared<S>(4);
  const int64_t at = t.block(), o = at / a.n, group = o / a.m;
  const Place place = place_of(a, int32_t(at % a.n));
  const int64_t area = a.by_area.divisor, plane = int64_t(a.h) * a.w;
  S sum = S(0);
  for (int32_t l = t.thread(); l < a.k; l += t.threads()) {
    const Pixel p = pixel_of(a, l);
    const int32_t in_plane = gathered<Pass::ByWeight>(a, p.y, p.x, place.i, place.j);
    if (in_plane < 0) continue;
    const int64_t channel = (int64_t(p.image) * a.groups + group) * a.channels + place.channel;
    sum = multiply_add(to_sum(grad.load((int64_t(p.image) * a.groups * a.m + o) * area + p.at)),
                       to_sum(image.load(channel * plane + in_plane)), sum);
  }
  for (int by = kWarp / 2; by > 0; by /= 2) sum = sum + t.shuffle_xor(sum, by);
  if (t.lane() == 0) sums.store(t.warp(), sum);
  t.barrier();
  if (t.thread() != 0) return;
  for (int i = 1; i < 4; i++) sum = sum + sums.load(i);
  t.template global<E>(a.out).store(at, from_sum<E>(sum));
}

// Adds the bias and applies the activation to results without both; blocks in the y direction share
// the images.
template <class E>
PLAIT_DEVICE void convolution_finish(Thread &t, const ConvolutionArgs &a) {
  constexpr int kV = kVector<E>;
  const auto to = t.global<E>(a.out);
  const int64_t size = a.m * a.by_area.divisor;  // of an image
  const int width = a.by_vectors ? kV : 1;
  for (int64_t i = t.index() * width; i < size; i += t.stride() * width) {
    const int64_t o = quotient(a.by_area, uint32_t(i));
    for (int64_t image = t.block_y(); image < a.images; image += a.parts) {
      const int64_t at = image * size + i;
      if (a.by_vectors) {
        Vector<E, kV> v = to.template load_vector<kV>(at);
        Sum<E> result[kV];
#pragma unroll
        for (int e = 0; e < kV; e++) result[e] = to_sum(v.at[e]);
        finish_forward<E>(t, a, o, result);
#pragma unroll
        for (int e = 0; e < kV; e++) v.at[e] = from_sum<E>(result[e]);
        to.template store_vector<kV>(at, v);
      } else {
        Sum<E> result[1] = {to_sum(to.load(at))};
        finish_forward<E>(t, a, o, result);
        to.store(at, from_sum<E>(result[0]));
      }
    }
  }
}

// Adds the sums of all parts, in order.
template <class E>
PLAIT_DEVICE void convolution_parts(Thread &t, const ConvolutionPartsArgs &a) {
  const auto from = t.global<const Sum<E>>(a.sums);
  const auto to = t.global<E>(a.out);
  for (int64_t i = t.index(); i < a.n; i += t.stride()) {
    Sum<E> sum = from.load(i);
#pragma unroll 8
    for (int64_t part = 1; part < a.parts; part++) sum = sum + from.load(part * a.n + i);
    to.store(i, from_sum<E>(sum));
  }
}

}  // namespace plait::cuda
#endif

namespace plait::cuda {

PLAIT_DEVICE_TILE_KERNEL(convolution_large, ConvolutionArgs, 256, LARGE_CONVOLUTION);
PLAIT_DEVICE_TILE_KERNEL(convolution_small, ConvolutionArgs, 256, FLOATING);
PLAIT_DEVICE_TILE_KERNEL(convolution_input_large, ConvolutionArgs, 256, LARGE_CONVOLUTION);
PLAIT_DEVICE_TILE_KERNEL(convolution_input_small, ConvolutionArgs, 256, FLOATING);
PLAIT_DEVICE_TILE_KERNEL(convolution_weight_large, ConvolutionArgs, 256, LARGE_CONVOLUTION);
PLAIT_DEVICE_TILE_KERNEL(convolution_weight_small, ConvolutionArgs, 256, FLOATING);
PLAIT_DEVICE_KERNEL(convolution_each, ConvolutionArgs, 256, FLOATING);
PLAIT_DEVICE_KERNEL(convolution_input_each, ConvolutionArgs, 256, FLOATING);
PLAIT_DEVICE_KERNEL(convolution_weight_each, ConvolutionArgs, 128, FLOATING);
PLAIT_DEVICE_KERNEL(convolution_finish, ConvolutionArgs, 256, FLOATING);
PLAIT_DEVICE_KERNEL(convolution_parts, ConvolutionPartsArgs, 256, FLOATING);

#if PLAIT_HOST
namespace {

// Element k of the stride (i = 0), the padding or the dilation: arguments 3 to 5.
int32_t pair(const plait_call *c, int i, int k) {
  const plait_value &v = c->in[3 + i];
  return int32_t(v.tag == PLAIT_INTS ? v.u.is[v.n > 1 ? k : 0] : v.u.i);
}

// Tells small problems, which single threads of our kernels do sooner than a library.
constexpr int64_t kSmallWork = 1 << 15;

// Lets cuDNN compute the tensor of the pass. PLAIT_DECLINE: our kernels do.
plait_status try_library(const plait_call *c, Pass pass, const DLTensor *image,
                         const DLTensor *weight, const DLTensor *result) {
  const int64_t work = numel(result) * weight->shape[1] * weight->shape[2] * weight->shape[3];
  if (work <= kSmallWork || has_setting(PLAIT_SETTING_BATCH_INVARIANT)) return PLAIT_DECLINE;
  Convolution v{pass, image, weight, result, {}, {}, {}};
  for (int k = 0; k < 2; k++)
    v.stride[k] = pair(c, 0, k), v.padding[k] = pair(c, 1, k), v.dilation[k] = pair(c, 2, k);
  return convolution_by_library(c, v);
}

// Dense operands and the geometry from arguments 3 to 6: stride, padding, dilation, groups.
plait_status arguments_of(const plait_call *c, const int64_t *in, const int64_t *weight,
                          const int64_t *out, ConvolutionArgs *a) {
  constexpr int64_t kMost = int64_t(1) << 31;
  if (in[0] * in[2] * in[3] >= kMost || out[0] * out[2] * out[3] >= kMost ||
      weight[0] * weight[2] * weight[3] >= kMost || in[1] * weight[2] * weight[3] >= kMost)
    return PLAIT_FAIL(
        c, PLAIT_NOT_IMPLEMENTED,
        "images of 2^31 or more pixels in all, (%lld, ..., %lld, %lld), have no kernel",
        (long long)in[0], (long long)in[2], (long long)in[3]);
  a->groups = int32_t(integer(c, 6, 1));
  a->images = int32_t(in[0]), a->channels = int32_t(in[1] / a->groups);
  a->h = int32_t(in[2]), a->w = int32_t(in[3]);
  a->filters = int32_t(weight[0] / a->groups), a->oh = int32_t(out[2]), a->ow = int32_t(out[3]);
  a->kh = int32_t(weight[2]), a->kw = int32_t(weight[3]);
  a->sh = pair(c, 0, 0), a->sw = pair(c, 0, 1), a->ph = pair(c, 1, 0), a->pw = pair(c, 1, 1);
  a->dh = pair(c, 2, 0), a->dw = pair(c, 2, 1);
  a->by_window = divider(a->kh * a->kw), a->by_kw = divider(a->kw);
  a->by_sh = divider(a->sh), a->by_sw = divider(a->sw);
  return PLAIT_OK;
}

void set_area(ConvolutionArgs *a, int32_t h, int32_t w) {
  a->by_area = divider(int64_t(h) * w), a->by_width = divider(w);
}

// Whether rows of the result, `step` elements apart, are made of vectors.
bool has_vectors(const ConvolutionArgs &a, Kind k, int64_t step) {
  const int element = size_of(k), v = element <= 4 ? 4 : 16 / element;
  return step % v == 0 && reinterpret_cast<uintptr_t>(a.out) % uintptr_t(v * element) == 0;
}

struct ConvolutionKernels {
  const DeviceKernel &large, &small;
};

plait_status launch_tiles(const plait_call *c, const ConvolutionKernels &kernels, Kind k,
                          ConvolutionArgs *a) {
  const int size = is_half(k) ? 4 : size_of(k);
  auto tiles_of = [&](int tile) {
    return ceil_div(a->m, tile) * ceil_div(a->n, tile) * a->groups * a->parts;
  };
  const bool by_large =
      k != F64 && a->m > kSmallTile && a->n > kSmallTile && tiles_of(kLargeTile) >= 128;
  const int tile = by_large ? kLargeTile : kSmallTile;
  const int64_t step =
      a->weight ? int64_t(a->by_area.divisor) : a->n;  // between rows of the result
  a->by_vectors = has_vectors(*a, k, step) && has_vectors(*a, k, a->n);
  return launch(c, by_large ? kernels.large : kernels.small, k, *a, tiles_of(tile), 256,
                shared_bytes(tile, size));
}

// Few rows fill no tiles, and small problems are done sooner by single threads.
bool is_single(const ConvolutionArgs &a) {
  return a.m <= 4 || a.m * a.n * a.k * a.groups <= kSmallWork;
}

bool has_end(const ConvolutionArgs &a) { return a.bias || a.activation != kNone; }

// Adds the bias to the library's results, and applies the activation.
plait_status finish(const plait_call *c, Kind k, ConvolutionArgs a) {
  if (!has_end(a)) return PLAIT_OK;
  const int64_t *shape = result(c)->shape;
  set_area(&a, int32_t(shape[2]), int32_t(shape[3]));
  a.images = int32_t(shape[0]), a.m = shape[1];
  a.by_vectors = has_vectors(a, k, a.by_area.divisor);
  const int64_t blocks =
      blocks_for(c, ceil_div(a.m * a.by_area.divisor, a.by_vectors ? 4 : 1), 256);
  a.parts = ceil_div(1024, blocks);
  if (a.parts > a.images) a.parts = a.images;
  return launch(c, convolution_finish_kernel, k, a, {blocks, int(a.parts)}, 256);
}

plait_status run_forward(const plait_call *c, ConvolutionArgs a) {
  const DLTensor *x = tensor(c, 0), *w = tensor(c, 1), *bias = tensor(c, 2), *out = result(c);
  if (numel(out) == 0) return PLAIT_OK;
  const Kind k = kind(out->dtype);
  a.out = out->data;
  if (bias) a.bias = bias->data, a.bias_stride = bias->strides[0];
  // convolution_finish numbers the results of an image by 32 bits
  const bool fits = !has_end(a) || numel(out) / out->shape[0] < int64_t(1) << 31;
  const plait_status status =
      fits ? try_library(c, Pass::Forward, x, w, out) : plait_status(PLAIT_DECLINE);
  if (status == PLAIT_OK) return finish(c, k, a);
  if (status != PLAIT_DECLINE) return status;
  PLAIT_TRY(arguments_of(c, x->shape, w->shape, out->shape, &a));
  DeviceWorkspace x_space, w_space;
  PLAIT_TRY(make_dense(c, x, &x_space, &a.image));
  PLAIT_TRY(make_dense(c, w, &w_space, &a.weight));
  set_area(&a, a.oh, a.ow);
  a.m = a.filters, a.n = int64_t(a.images) * a.oh * a.ow;
  a.k = int64_t(a.channels) * a.kh * a.kw;
  a.depth = a.k, a.parts = 1;
  if (is_single(a) || a.k == 0)
    return launch(c, convolution_each_kernel, k, a, blocks_for(c, numel(out), 256), 256);
  return launch_tiles(c, {convolution_large_kernel, convolution_small_kernel}, k, &a);
}

// conv2d(input, weight, bias, stride, padding, dilation, groups)
plait_status conv2d(plait_call *c) { return run_forward(c, {}); }

// conv2d_activation(input, weight, bias, stride, padding, dilation, groups, activation, its
// numbers)
plait_status conv2d_activation(plait_call *c) {
  static const struct {
    const char *name;
    JoinedActivation number;
  } names[] = {{"relu", kRelu},
               {"hardtanh", kHardtanh},
               {"leaky_relu", kLeakyRelu},
               {"silu", kSilu},
               {"hardswish", kHardswish}};
  ConvolutionArgs a{};
  for (const auto &each : names)
    if (text_is(c, 7, each.name)) a.activation = each.number;
  if (a.activation == kNone) return PLAIT_DECLINE;
  for (int i = 0; i < 3; i++) a.number[i] = real(c, 8 + i);
  return run_forward(c, a);
}

// conv2d_backward_input(grad, weight, size, stride, padding, dilation, groups)
plait_status conv2d_backward_input(plait_call *c) {
  const DLTensor *grad = tensor(c, 0), *w = tensor(c, 1), *out = result(c);
  if (numel(out) == 0) return PLAIT_OK;
  const Kind k = kind(out->dtype);
  if (numel(grad) == 0 || numel(w) == 0)
    return fill_bytes(c, out->data, 0, numel(out) * size_of(k));
  const plait_status status = try_library(c, Pass::ByInput, out, w, grad);
  if (status != PLAIT_DECLINE) return status;
  ConvolutionArgs a{};
  PLAIT_TRY(arguments_of(c, out->shape, w->shape, grad->shape, &a));
  DeviceWorkspace grad_space, w_space;
  PLAIT_TRY(make_dense(c, grad, &grad_space, &a.grad));
  PLAIT_TRY(make_dense(c, w, &w_space, &a.weight));
  a.out = out->data;
  set_area(&a, a.h, a.w);
  a.m = a.channels, a.n = int64_t(a.images) * a.h * a.w;
  a.k = int64_t(a.filters) * a.kh * a.kw;
  a.depth = a.k, a.parts = 1;
  if (is_single(a))
    return launch(c, convolution_input_each_kernel, k, a, blocks_for(c, numel(out), 256), 256);
  return launch_tiles(c, {convolution_input_large_kernel, convolution_input_small_kernel}, k, &a);
}

// conv2d_backward_weight(grad, input, size, stride, padding, dilation, groups)
plait_status conv2d_backward_weight(plait_call *c) {
  const DLTensor *grad = tensor(c, 0), *x = tensor(c, 1), *out = result(c);
  const int64_t n = numel(out);
  if (n == 0) return PLAIT_OK;
  const Kind k = kind(out->dtype);
  if (numel(grad) == 0 || numel(x) == 0) return fill_bytes(c, out->data, 0, n * size_of(k));
  const plait_status status = try_library(c, Pass::ByWeight, x, out, grad);
  if (status != PLAIT_DECLINE) return status;
  ConvolutionArgs a{};
  PLAIT_TRY(arguments_of(c, x->shape, out->shape, grad->shape, &a));
  DeviceWorkspace grad_space, x_space, sums;
  PLAIT_TRY(make_dense(c, grad, &grad_space, &a.grad));
  PLAIT_TRY(make_dense(c, x, &x_space, &a.image));
  a.out = out->data;
  set_area(&a, a.oh, a.ow);
  a.m = a.filters, a.n = int64_t(a.channels) * a.kh * a.kw;
  a.k = int64_t(a.images) * a.oh * a.ow;
  a.depth = a.k, a.parts = 1;
  if (is_single(a)) return launch(c, convolution_weight_each_kernel, k, a, n, 128, 4 * 8);
  // pixels are cut into parts of even length, by sizes alone
  const int64_t tiles = ceil_div(a.m, kSmallTile) * ceil_div(a.n, kSmallTile) * a.groups;
  int64_t parts = ceil_div(1024, tiles);
  if (parts > a.k / 256) parts = a.k / 256;
  if (parts > 256) parts = 256;
  if (parts > 1) {
    a.depth = ceil_div(ceil_div(a.k, parts), 16) * 16;
    a.parts = ceil_div(a.k, a.depth);
  }
  if (a.parts > 1) {
    PLAIT_TRY(sums.take(c, a.parts * n * (k == F64 ? 8 : 4)));
    a.out = sums.data();
  }
  PLAIT_TRY(
      launch_tiles(c, {convolution_weight_large_kernel, convolution_weight_small_kernel}, k, &a));
  if (a.parts == 1) return PLAIT_OK;
  const ConvolutionPartsArgs last{sums.data(), out->data, n, a.parts};
  return launch(c, convolution_parts_kernel, k, last, blocks_for(c, n, 256), 256);
}

PLAIT_KERNEL("conv2d", conv2d);
PLAIT_KERNEL("conv2d_activation", conv2d_activation);
PLAIT_KERNEL("conv2d_backward_input", conv2d_backward_input);
PLAIT_KERNEL("conv2d_backward_weight", conv2d_backward_weight);

}  // namespace
#endif

}  // namespace plait::cuda
