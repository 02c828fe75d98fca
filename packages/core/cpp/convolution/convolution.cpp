// conv2d and its two derivatives: which way they are computed, and the way for all sizes, patches
// as columns (im2col), then matrix products, image by image.
#include "convolution/convolution.h"
#include "convolution/convolution_channels.h"
#include "convolution/convolution_depthwise.h"
#include "convolution/convolution_lanes.h"
#include "convolution/convolution_pointwise.h"
#include "convolution/winograd.h"
#include "convolution/winograd_mode.h"

#include "kernel/avx512.h"
#include "kernel/dense.h"
#include "kernel/float_kernel.h"
#include "kernel/settings.h"
#include "linalg/gemm.h"
#include "linalg/tile.h"

namespace plait::core {
namespace {

constexpr int64_t kColumns =
    1 << 16;  // elements of a block of columns, which stays in the second-level cache
constexpr int64_t kParts = 16;         // partial sums of a weight gradient
constexpr int64_t kFinished = 4096;    // results that stay in the first-level cache

// The geometry from arguments `at` to `at` + 3: stride, padding, dilation, groups.
Conv geometry(const plait_call *c, const int64_t *in, const int64_t *weight, const int64_t *out,
              int at) {
  auto pair = [&](int i, int k) {
    const plait_value &v = c->in[at + i];
    return v.tag == PLAIT_INTS ? v.u.is[v.n > 1 ? k : 0] : v.u.i;
  };
  // An image of width 1 is computed as one of height 1, which is the same in memory, as rows fill
  // vectors.
  const bool turned = in[3] == 1 && weight[3] == 1 && out[3] == 1;
  const int h = turned ? 3 : 2, w = 5 - h, i = h - 2, j = w - 2;
  return {in[0],      in[1],      in[h],      in[w],
          weight[0],  out[h],     out[w],     weight[h],
          weight[w],  pair(0, i), pair(0, j), pair(1, i),
          pair(1, j), pair(2, i), pair(2, j), integer(c, at + 3, 1)};
}

// How the work is cut: by images, groups and blocks of output rows.
struct Blocks {
  int64_t rows, count, total;
  Blocks(const Conv &v) {
    rows = kColumns / (v.patch() * v.ow + 1);
    rows = rows < 1 ? 1 : rows > v.oh ? v.oh : rows;
    count = ceil_div(v.oh, rows);
    total = v.n * v.groups * count;
  }
};

template <class T>
plait_status forward(const plait_call *c, const Conv &v, const T *x, const T *w,
                     const DLTensor *bias, T *y) {
  const Blocks b(v);
  const int64_t k = v.patch(), m = v.goc(), area = v.oh * v.ow;
  const bool direct = v.is_pointwise();
  return with_scratch<T>(c, b.total, grain_for(v, b.rows * v.ow), direct ? 0 : k * b.rows * v.ow,
                         [&](int64_t t, T *col) {
                           const int64_t image = t / b.count,
                                         // image: an image and a group
                               begin = t % b.count * b.rows;
                           const int64_t end = begin + b.rows < v.oh ? begin + b.rows : v.oh,
                                         positions = (end - begin) * v.ow;
                           const T *from = x + image * v.gc() * v.h * v.w;
                           T *to = y + image * m * area + begin * v.ow;
                           Matrix<T> columns{from + begin * v.ow, v.h * v.w, 1};
                           if (!direct) {
                             image_to_columns(v, from, begin, end, col);
                             columns = {col, positions, 1};
                           }
                           const int64_t group = image % v.groups;
                           if (bias)
                             for (int64_t o = 0; o < m; o++) {
                               const T value = data<T>(bias)[(group * m + o) * bias->strides[0]];
                               for (int64_t j = 0; j < positions; j++) to[o * area + j] = value;
                             }
                           gemm_serial(Product<T>{m,
                                                  positions,
                                                  k,
                                                  T(1),
                                                  {w + group * m * k, k, 1},
                                                  columns,
                                                  bias ? T(1) : T(0),
                                                  to,
                                                  area});
                         });
}

template <class T>
plait_status backward_input(const plait_call *c, const Conv &v, const T *gy, const T *w, T *gx) {
  const int64_t k = v.patch(), m = v.goc(), area = v.oh * v.ow, image_size = v.gc() * v.h * v.w;
  const bool direct = v.is_pointwise();
  return with_scratch<T>(
      c, v.n * v.groups, grain_for(v, area), direct ? 0 : k * area, [&](int64_t t, T *col) {
        const Matrix<T> weight{w + t % v.groups * m * k, 1, k};
        T *to = gx + t * image_size;
        gemm_serial(Product<T>{
            k, area, m, T(1), weight, {gy + t * m * area, area, 1}, T(0), direct ? to : col, area});
        if (direct) return;
        memset(to, 0, size_t(image_size) * sizeof(T));
        columns_to_image(v, col, to);
      });
}

// Partial sums over fixed ranges of images, added up in order.
template <class T>
plait_status backward_weight(const plait_call *c, const Conv &v, const T *gy, const T *x, T *gw) {
  const int64_t k = v.patch(), m = v.goc(), area = v.oh * v.ow, size = v.oc * k;
  const int64_t images = ceil_div(v.n, kParts), parts = ceil_div(v.n, images);
  const Blocks b(v);
  const bool direct = v.is_pointwise();
  Workspace space;
  if (parts > 1) PLAIT_TRY(space.take(c, uint64_t((parts - 1) * size) * sizeof(T)));
  auto part = [&](int64_t p) { return p ? space.as<T>() + (p - 1) * size : gw; };
  const plait_status s =
      with_scratch<T>(c, parts, grain_for(v, area * images), direct ? 0 : k * b.rows * v.ow,
                      [&](int64_t p, T *col) {
                        const int64_t last = (p + 1) * images < v.n ? (p + 1) * images : v.n;
                        for (int64_t i = p * images * v.groups; i < last * v.groups; i++) {
                          const int64_t group = i % v.groups;
                          for (int64_t begin = 0; begin < v.oh; begin += b.rows) {
                            const int64_t end = begin + b.rows < v.oh ? begin + b.rows : v.oh,
                                          positions = (end - begin) * v.ow;
                            const T *from = x + i * v.gc() * v.h * v.w;
                            Matrix<T> columns{from + begin * v.ow, 1, v.h * v.w};
                            if (!direct) {
                              image_to_columns(v, from, begin, end, col);
                              columns = {col, 1, positions};
                            }
                            const bool first = i < p * images * v.groups + v.groups && begin == 0;
                            gemm_serial(Product<T>{m,
                                                   k,
                                                   positions,
                                                   T(1),
                                                   {gy + i * m * area + begin * v.ow, area, 1},
                                                   columns,
                                                   first ? T(0) : T(1),
                                                   part(p) + group * m * k,
                                                   k});
                          }
                        }
                      });
  PLAIT_TRY(s);
  parallel_ranges(c, size, kChunk, [&](int64_t begin, int64_t end) {
    for (int64_t p = 1; p < parts; p++) {
      const T *q = part(p);
      for (int64_t i = begin; i < end; i++) gw[i] += q[i];
    }
  });
  return PLAIT_OK;
}

template <class T>
const float *floats(const T *p) {  // tensors that are float32 already
  return reinterpret_cast<const float *>(p);
}

template <class T>
void zero(DLTensor *out) {
  memset(out->data, 0, size_t(numel(out)) * sizeof(T));
}

template <class T>
plait_status only_bias(const Conv &v, const DLTensor *bias, T *y) {  // of images without channels
  for (int64_t i = 0; i < v.n * v.oc * v.oh * v.ow; i++) {
    const int64_t o = i / (v.oh * v.ow) % v.oc;
    y[i] = bias ? data<T>(bias)[o * bias->strides[0]] : T(0);
  }
  return PLAIT_OK;
}

// A window as large as the image: each result is the product of a whole image and a filter.
bool is_dense(const Conv &v) {
  const bool whole = v.kh == v.h && v.kw == v.w && v.oh == 1 && v.ow == 1;
  return whole && v.ph == 0 && v.pw == 0 && v.groups == 1;
}

// The ways to compute a convolution where Winograd's algorithm is not used, the first that fits
// (docs/design/0025): those of one kind of window first, then pixels where channels fill panels,
// eight images at a time for few channels of small images, and columns for the rest. Without wide
// tiles lanes are the faster ones of the two, and without AVX2 BLAS is faster than our products.
enum class Way { Dense, Depthwise, Pointwise, Lanes, Pixels, Columns };
bool own_products() {
#if defined(__AVX2__)
  return true;
#else
  return reproducible();
#endif
}

// Where an image's result may not depend on how many others there are, lanes are used for sums to
// which pixels give the same bits. For sums of images the processor does not choose.
enum class Sums { ByImage, OfImages };
constexpr bool kSelectsGroups =
    any_convolution([](const ConvolutionSizes &v) { return !v.is_known || v.groups > 1; });
constexpr bool kSelectsPointwise =
    any_convolution([](const ConvolutionSizes &v) { return v.window == 1; });
constexpr bool kSelectsLanes = any_convolution(
    [](const ConvolutionSizes &v) { return !v.is_known || v.images >= kLaneImages; });
template <class T>
Way way_of(const Conv &v, bool pixels, int64_t channels, bool lanes, Sums sums, Algorithm request) {
  const bool own = own_products();
  pixels = pixels && own;
  lanes = kSelectsLanes && lanes && sizeof(T) == 4 && lanes_fit(v);
  if (request == Algorithm::Columns) return Way::Columns;
  if (request == Algorithm::Pixels && pixels) return Way::Pixels;
  if (request == Algorithm::Lanes && lanes) return Way::Lanes;
  if (is_dense(v)) return Way::Dense;
  if (kSelectsGroups && depthwise_fit(v)) return Way::Depthwise;
  if (kSelectsPointwise && own && pointwise_fit(v)) return Way::Pointwise;
  const bool wide = has_avx512() || (sums == Sums::OfImages && reproducible());
  if (pixels && wide && channels >= 4) return Way::Pixels;
  if (lanes && sums == Sums::ByImage && batch_invariant()) {
    lanes = own && channels_border_fit(v) && lanes_like_pixels(v, channels);
    pixels = pixels || lanes;
  }
  if (lanes && lanes_filled(v)) return Way::Lanes;
  return pixels ? Way::Pixels : Way::Columns;
}

template <class T>
Algorithm asked_for(const Conv &v, ConvolutionPass pass) {
  const bool plain = v.groups == 1 && v.kh == v.kw && v.sh == v.sw && v.dh == 1 && v.dw == 1;
  if (sizeof(T) != 4 || !plain) return Algorithm::ByRule;
  if (winograd_mode() != WinogradMode::Auto) return Algorithm::ByRule;
  return exception_of(pass, v.kh, v.sh, v.c, v.oh * v.ow);
}

// An operand in C order, or, for convolutions of single elements, with its channels side by side.
template <class T>
class Operand {
 public:
  plait_status take(const plait_call *c, const DLTensor *t, Way way) {
    const int64_t channels = t->shape[1], area = t->shape[2] * t->shape[3];
    if (way == Way::Pointwise && channels_last(t)) {
      images_ = {data<T>(t), channels * area, 1, channels};
      return PLAIT_OK;
    }
    PLAIT_TRY(dense_.take(c, t));
    images_ = Images<T>::dense(dense_, channels, area);
    return PLAIT_OK;
  }
  operator const T *() const { return images_.data; }
  const Images<T> &images() const { return images_; }

 private:
  static bool channels_last(const DLTensor *t) {
    const int64_t *n = t->shape, *s = t->strides;
    return s[1] == 1 && s[3] == n[1] && s[2] == n[3] * s[3] && s[0] == n[2] * s[2];
  }
  Images<T> images_;
  Dense<T> dense_;
};

template <class T>
plait_status dense_forward(const plait_call *c, const Conv &v, const T *x, const T *w,
                           const DLTensor *bias, T *y) {
  const int64_t k = v.patch();
  for (int64_t i = 0; bias && i < v.n * v.oc; i++)
    y[i] = data<T>(bias)[i % v.oc * bias->strides[0]];
  return gemm(c, Product<T>{v.n, v.oc, k, T(1), {x, k, 1}, {w, 1, k}, T(bias ? 1 : 0), y, v.oc});
}

// Residual and activation of a convolution whose kernel has none of its own.
template <class T>
plait_status activated(const plait_call *c, const Conv &v, T *y, plait_status result) {
  const T *residual = static_cast<const T *>(v.residual);
  if (result == PLAIT_OK && (v.activation || residual))
    parallel_ranges(c, v.n * v.oc * v.oh * v.ow, kChunk, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; i += kFinished) {
        const int64_t n = end - i < kFinished ? end - i : kFinished;
        for (int64_t j = i; residual && j < i + n; j++) y[j] += residual[j];
        v.activation(y + i, n);
      }
    });
  return result;
}

template <class T>
bool all_finite(const T *p, int64_t n) {
  Finite<T> finite;
  finite.add(p, n);
  return finite.all();
}

// Calls by_tiles(broken), and by_columns(v of an image, number of the image) for images that it has
// marked as broken: Winograd's algorithm spreads what is not finite.
template <class ByTiles, class ByColumns>
plait_status by_winograd(const plait_call *c, const Conv &v, ByTiles &&by_tiles,
                         ByColumns &&by_columns) {
  Workspace space;
  PLAIT_TRY(space.take(c, uint64_t(v.n)));
  auto *broken = space.as<uint8_t>();
  memset(broken, 0, size_t(v.n));
  PLAIT_TRY(by_tiles(broken));
  Conv one = v;
  one.n = 1;
  for (int64_t i = 0; i < v.n; i++)
    if (broken[i]) PLAIT_TRY(by_columns(one, i));
  return PLAIT_OK;
}

// What a forward convolution reads, and how it is computed: with Winograd tiles of `tile` a side,
// unless it is 0.
template <class T>
struct Forward {
  Way way;
  int64_t tile;
  Operand<T> x;
  Dense<T> w;
  const DLTensor *bias;
};

template <class T>
plait_status convolve_by(const plait_call *c, const Conv &v, const Forward<T> &f, T *y) {
  const int64_t image = v.c * v.h * v.w, output = v.oc * v.oh * v.ow;
  const T *x = f.x, *w = f.w;
  if (f.tile)
    return by_winograd(
        c, v,
        [&](uint8_t *broken) { return winograd_forward<T>(c, v, f.tile, x, w, f.bias, y, broken); },
        [&](const Conv &one, int64_t i) {
          return activated(c, one, y + i * output,
                           forward<T>(c, one, x + i * image, w, f.bias, y + i * output));
        });
  switch (f.way) {
    case Way::Dense: return activated(c, v, y, dense_forward<T>(c, v, x, w, f.bias, y));
    case Way::Depthwise:
      if constexpr (kSelectsGroups) return depthwise_forward<T>(c, v, x, w, f.bias, y);
      return PLAIT_DECLINE;
    case Way::Pointwise:
      if constexpr (kSelectsPointwise)
        return pointwise_forward<T>(c, v, f.x.images(), w, f.bias, y);
      return PLAIT_DECLINE;
    case Way::Lanes: {
      if constexpr (!kSelectsLanes) return PLAIT_DECLINE;
      float *to = data<float>(result(c));
      return activated(c, v, to, lanes_forward(c, v, floats<T>(x), floats<T>(w), f.bias, to));
    }
    case Way::Pixels: return channels_forward<T>(c, v, x, w, f.bias, y);
    case Way::Columns: return activated(c, v, y, forward<T>(c, v, x, w, f.bias, y));
  }
  return PLAIT_DECLINE;
}

template <class T>
plait_status convolve(const plait_call *c, const Conv &v) {
  const DLTensor *bias = tensor(c, 2);
  T *y = data<T>(result(c));
  if (v.patch() == 0) return activated(c, v, y, only_bias<T>(v, bias, y));
  const Algorithm request = asked_for<T>(v, ConvolutionPass::Forward);
  Forward<T> f{};
  f.way = way_of<T>(v, channels_forward_fit(v), v.gc(), true, Sums::ByImage, request);
  f.tile = kSelectsWinograd ? winograd_tile<T>(v, request) : 0;
  f.bias = bias;
  PLAIT_TRY(f.x.take(c, tensor(c, 0), f.way));
  PLAIT_TRY(f.w.take(c, tensor(c, 1)));
  // Winograd's tiles and depthwise kernels apply activations, but add no residual.
  if (!v.residual || !(f.tile || f.way == Way::Depthwise)) return convolve_by(c, v, f, y);
  Conv sums = v;
  sums.residual = nullptr;
  sums.activation = {};
  return activated(c, v, y, convolve_by(c, sums, f, y));
}

Conv forward_geometry(const plait_call *c) {
  return geometry(c, tensor(c, 0)->shape, tensor(c, 1)->shape, result(c)->shape, 3);
}

// conv2d(input, weight, bias, stride, padding, dilation, groups)
plait_status conv2d(plait_call *c) {
  if (numel(result(c)) == 0) return PLAIT_OK;
  const Conv v = forward_geometry(c);
  PLAIT_FLOATING(kind(result(c)->dtype), return convolve<T>(c, v))
  return PLAIT_OK;
}

// conv2d_activation(input, weight, bias, stride, padding, dilation, groups, activation, its
// numbers)
plait_status conv2d_activation(plait_call *c) {
  return with_activation(c, 7, [&](const auto &activation) -> plait_status {
    if (numel(result(c)) == 0) return PLAIT_OK;
    Conv v = forward_geometry(c);
    v.activation = Activation(activation);
    PLAIT_FLOATING(kind(result(c)->dtype), return convolve<T>(c, v))
    return PLAIT_OK;
  });
}

// conv2d_add_activation(input, weight, bias, stride, padding, dilation, groups, residual,
// activation, its numbers)
plait_status conv2d_add_activation(plait_call *c) {
  const auto run = [&](const Activation &activation) -> plait_status {
    if (numel(result(c)) == 0) return PLAIT_OK;
    Conv v = forward_geometry(c);
    v.activation = activation;
    PLAIT_FLOATING(kind(result(c)->dtype), {
      Dense<T> residual;
      PLAIT_TRY(residual.take(c, tensor(c, 7)));
      v.residual = static_cast<const T *>(residual);
      return convolve<T>(c, v);
    })
    return PLAIT_OK;
  };
  if (c->in[8].tag == PLAIT_NONE) return run({});
  return with_activation(c, 8, [&](const auto &activation) { return run(Activation(activation)); });
}

// conv2d_backward_input(gy, weight, input_size, stride, padding, dilation, groups)
plait_status conv2d_backward_input(plait_call *c) {
  const DLTensor *gy = tensor(c, 0), *weight = tensor(c, 1);
  DLTensor *out = result(c);
  const Conv v = geometry(c, out->shape, weight->shape, gy->shape, 3);
  PLAIT_FLOATING(kind(out->dtype), {
    if (numel(gy) == 0 || numel(weight) == 0) zero<T>(out);
    if (numel(gy) == 0 || numel(out) == 0 || numel(weight) == 0) return PLAIT_OK;
    T *gx = data<T>(out);
    const bool plain = v.sh == 1 && v.sw == 1 && v.dh == 1 && v.dw == 1;
    const int64_t k = v.patch();
    const Algorithm request = asked_for<T>(v, ConvolutionPass::ByInput);
    Way way = way_of<T>(v, channels_input_fit(v), v.goc(), plain, Sums::ByImage, request);
    Operand<T> g;
    Dense<T> w;
    PLAIT_TRY(g.take(c, gy, way));
    PLAIT_TRY(w.take(c, weight));
    // windows that are cut at a border skip products of zeros and values that may be infinite or
    // NaN
    if (way == Way::Lanes && batch_invariant() && !all_finite<T>(w, v.oc * k)) way = Way::Pixels;
    const int64_t image = v.c * v.h * v.w, output = v.oc * v.oh * v.ow;
    if (const int64_t m = kSelectsWinograd ? winograd_tile<T>(v, request) : 0)
      return by_winograd(
          c, v,
          [&](uint8_t *broken) { return winograd_backward_input<T>(c, v, m, g, w, gx, broken); },
          [&](const Conv &one, int64_t i) {
            const T *from = g;
            return backward_input<T>(c, one, from + i * output, w, gx + i * image);
          });
    switch (way) {
      case Way::Dense:
        return gemm(c, Product<T>{v.n, k, v.oc, T(1), {g, v.oc, 1}, {w, k, 1}, T(0), gx, k});
      case Way::Depthwise:
        if constexpr (kSelectsGroups) return depthwise_backward_input<T>(c, v, g, w, gx);
        return PLAIT_DECLINE;
      case Way::Pointwise: return pointwise_backward_input<T>(c, v, g.images(), w, gx);
      case Way::Lanes:
        return lanes_backward_input(c, v, floats<T>(g), floats<T>(w), data<float>(out));
      case Way::Pixels: return channels_backward_input<T>(c, v, g, w, gx);
      case Way::Columns: return backward_input<T>(c, v, g, w, gx);
    }
  })
  return PLAIT_OK;
}

// conv2d_backward_weight(gy, input, weight_size, stride, padding, dilation, groups)
plait_status conv2d_backward_weight(plait_call *c) {
  const DLTensor *gy = tensor(c, 0), *in = tensor(c, 1);
  DLTensor *out = result(c);
  const Conv v = geometry(c, in->shape, out->shape, gy->shape, 3);
  PLAIT_FLOATING(kind(out->dtype), {
    if (numel(gy) == 0 || numel(in) == 0) zero<T>(out);
    if (numel(gy) == 0 || numel(in) == 0 || numel(out) == 0) return PLAIT_OK;
    T *gw = data<T>(out);
    const int64_t k = v.patch();
    const bool pixels = channels_weight_fit(v) || panels_weight_fit<T>(v);
    const Algorithm request = asked_for<T>(v, ConvolutionPass::ByWeight);
    const Way way = way_of<T>(v, pixels, v.gc(), true, Sums::OfImages, request);
    Operand<T> g, x;
    PLAIT_TRY(g.take(c, gy, way));
    PLAIT_TRY(x.take(c, in, way));
    if (const int64_t m = kSelectsWinograd ? winograd_tile<T>(v, request, true) : 0) {
      bool broken = false;
      PLAIT_TRY(winograd_backward_weight<T>(c, v, m, g, x, gw, &broken));
      if (!broken) return PLAIT_OK;  // else the next way, which does not spread what is not finite
    }
    switch (way) {
      case Way::Dense:
        return gemm(c, Product<T>{v.oc, k, v.n, T(1), {g, 1, v.oc}, {x, k, 1}, T(0), gw, k});
      case Way::Depthwise:
        if constexpr (kSelectsGroups) return depthwise_backward_weight<T>(c, v, g, x, gw);
        return PLAIT_DECLINE;
      case Way::Pointwise: return pointwise_backward_weight<T>(c, v, g.images(), x.images(), gw);
      case Way::Lanes:
        return lanes_backward_weight(c, v, floats<T>(g), floats<T>(x), data<float>(out));
      case Way::Pixels:
        return panels_weight_fit<T>(v) ? panels_backward_weight<T>(c, v, g, x, gw)
                                       : channels_backward_weight<T>(c, v, g, x, gw);
      case Way::Columns: return backward_weight<T>(c, v, g, x, gw);
    }
  })
  return PLAIT_OK;
}

PLAIT_KERNEL("conv2d", conv2d);
PLAIT_FLOAT_KERNEL("conv2d_activation", conv2d_activation);
PLAIT_FLOAT_KERNEL("conv2d_add_activation", conv2d_add_activation);
PLAIT_KERNEL("conv2d_backward_input", conv2d_backward_input);
PLAIT_KERNEL("conv2d_backward_weight", conv2d_backward_weight);

}  // namespace
}  // namespace plait::core
