// Pooling of regions of interest: roi_align, ps_roi_align, ps_roi_pool, roi_pool, and the
// derivatives of the first three. A gradient is added up by the thread of its pixel, in the order
// of the regions, so that the sums are the same in each run.
#include "vision/regions.h"

#include "block/block.h"

namespace plait::cuda {
namespace {

using regions::Geometry;
using regions::Pooling;
using regions::Samples;

constexpr int kSide = 16;  // pixels of a tile, in both directions
constexpr int kSlice = 8;  // channels of a block

struct RegionArgs {
  Geometry g;
  const void *x;  // images, or gradients of what was pooled
  const void *rois;
  void *to;
  int32_t *argmax;
  void *weights;     // [count][ph h + pw w]: those of pixels in bins, of rows and of columns
  int32_t *bounds;  // [count][4]: [first, last) of the rows, and of the columns, with weights
  Fault fault;
};

#if PLAIT_KERNELS
// The image of region r; 0 instead of a wrong number, which is reported.
template <class R>
PLAIT_DEVICE int64_t image_of(Thread &t, const RegionArgs &a, const R &rois, int64_t r) {
  const double x = double(widen(rois.load(5 * r)));
  if (regions::is_image(x, a.g.n)) return int64_t(x);
  t.fail(a.fault, kIndexFault, x, 0, double(a.g.n));
  return 0;
}

// The samples along the rows of a region, or along its columns if `side` is 1.
template <class V, class R>
PLAIT_DEVICE Samples<V> samples_of(const Geometry &g, const R &rois, int64_t r, int side) {
  return regions::samples_of<V>(g, widen(rois.load(5 * r + 2 - side)),
                                widen(rois.load(5 * r + 4 - side)), side ? g.pw : g.ph,
                                side ? g.w : g.h);
}

// The pixels of bin b along the rows of a region, or along its columns if `side` is 1.
template <class V, class R>
PLAIT_DEVICE void span_of(const Geometry &g, const R &rois, int64_t r, int side, int64_t b,
                          int64_t *first, int64_t *last) {
  const V scale = V(g.scale);
  const V from = widen(rois.load(5 * r + 2 - side)), to = widen(rois.load(5 * r + 4 - side));
  const bool is_whole = g.how != Pooling::kSensitivePool;  // else without the last row and column
  regions::span<V>(from * scale, to * scale, is_whole, side ? g.pw : g.ph, b,
                   (side ? g.w : g.h) - !is_whole, first, last);
}

template <class T>
PLAIT_DEVICE void pool_regions(Thread &t, const RegionArgs &a) {
  using V = Compute<T>;
  const Geometry &g = a.g;
  const auto x = t.global<const T>(a.x);
  const auto rois = t.global<const T>(a.rois);
  const auto to = t.global<T>(a.to);
  const int64_t n = g.count * g.channels * g.bins();
  for (int64_t e = t.index(); e < n; e += t.stride()) {
    const int64_t j = e % g.pw, i = e / g.pw % g.ph, o = e / g.bins() % g.channels;
    const int64_t r = e / g.bins() / g.channels;
    const int64_t plane = (image_of(t, a, rois, r) * g.c + g.channel(o, i, j)) * g.area();
    V sum = V(0);
    if (g.how == Pooling::kSensitivePool) {
      int64_t top, bottom, left, right;
      span_of<V>(g, rois, r, 0, i, &top, &bottom);
      span_of<V>(g, rois, r, 1, j, &left, &right);
      for (int64_t y = top; y < bottom; y++)
        for (int64_t c = left; c < right; c++) sum += widen(x.load(plane + y * g.w + c));
      const int64_t pixels = (bottom - top) * (right - left);
      to.store(e, narrow<T>(sum / V(pixels > 0 ? pixels : 1)));
      continue;
    }
    const Samples<V> rows = samples_of<V>(g, rois, r, 0), columns = samples_of<V>(g, rois, r, 1);
    const auto along = [&](int64_t row) {
      int64_t first, last, low;
      V part, all = V(0);
      columns.range(j, &first, &last);
      for (int64_t k = first; k < last; k++) {
        if (!columns.at(j, k, &low, &part)) continue;
        all += (V(1) - part) * widen(x.load(row + low));
        if (part != V(0)) all += part * widen(x.load(row + low + 1));
      }
      return all;
    };
    int64_t first, last, low;
    V part;
    rows.range(i, &first, &last);
    for (int64_t k = first; k < last; k++) {
      if (!rows.at(i, k, &low, &part)) continue;
      sum += (V(1) - part) * along(plane + low * g.w);
      if (part != V(0)) sum += part * along(plane + (low + 1) * g.w);
    }
    to.store(e, narrow<T>(sum / regions::divisor_of(g, rows, columns)));
  }
}

template <class T>
PLAIT_DEVICE void pool_largest(Thread &t, const RegionArgs &a) {
  using V = Compute<T>;
  const Geometry &g = a.g;
  const auto x = t.global<const T>(a.x);
  const auto rois = t.global<const T>(a.rois);
  const int64_t n = g.count * g.channels * g.bins();
  for (int64_t e = t.index(); e < n; e += t.stride()) {
    const int64_t j = e % g.pw, i = e / g.pw % g.ph, o = e / g.bins() % g.channels;
    const int64_t r = e / g.bins() / g.channels;
    const int64_t plane = (image_of(t, a, rois, r) * g.c + o) * g.area();
    int64_t top, bottom, left, right, at = -1;
    span_of<V>(g, rois, r, 0, i, &top, &bottom);
    span_of<V>(g, rois, r, 1, j, &left, &right);
    V best = V(0);
    for (int64_t y = top; y < bottom; y++)
      for (int64_t c = left; c < right; c++) {
        const V v = widen(x.load(plane + y * g.w + c));
        if (at < 0 || regions::is_better(v, best)) best = v, at = y * g.w + c;
      }
    t.global<T>(a.to).store(e, narrow<T>(best));
    t.global<int32_t>(a.argmax).store(e, int32_t(at));
  }
}

// A thread writes the weights of one side of a region. They are divided by the number of samples.
template <class T>
PLAIT_DEVICE void weigh_regions(Thread &t, const RegionArgs &a) {
  using V = Compute<T>;
  const Geometry &g = a.g;
  const auto rois = t.global<const T>(a.rois);
  const int64_t e = t.index(), r = e / 2;
  const int side = int(e % 2);
  if (r >= g.count) return;
  if (side == 0) image_of(t, a, rois, r);  // reports
  const int64_t pixels = side ? g.w : g.h, bins = side ? g.pw : g.ph;
  const int64_t begin = r * (g.ph * g.h + g.pw * g.w) + side * g.ph * g.h;
  const auto weights = t.global<V>(static_cast<V *>(a.weights) + begin);
  int64_t least = pixels, most = 0;
  const auto add = [&](int64_t at, int64_t pixel, V weight) {
    weights.store(at + pixel, weights.load(at + pixel) + weight);
    least = pixel < least ? pixel : least;
    most = pixel + 1 > most ? pixel + 1 : most;
  };
  const bool is_pool = g.how == Pooling::kSensitivePool;
  const Samples<V> samples = samples_of<V>(g, rois, r, side);
  for (int64_t b = 0; b < bins; b++) {
    int64_t first, last, low;
    V part;
    if (is_pool)
      span_of<V>(g, rois, r, side, b, &first, &last);
    else
      samples.range(b, &first, &last);
    for (int64_t k = first; k < last; k++) {
      if (is_pool) {
        add(b * pixels, k, V(1) / V(last - first));
      } else if (samples.at(b, k, &low, &part)) {
        add(b * pixels, low, (V(1) - part) / V(samples.count));
        if (part != V(0)) add(b * pixels, low + 1, part / V(samples.count));
      }
    }
  }
  const auto bounds = t.global<int32_t>(a.bounds + 4 * r + 2 * side);
  bounds.store(0, int32_t(least)), bounds.store(1, int32_t(most));
}

// A block adds up the gradients of a tile of an image in some channels.
template <class T>
PLAIT_DEVICE void spread_regions(Thread &t, const RegionArgs &a) {
  using V = Compute<T>;
  const Geometry &g = a.g;
  const auto grad = t.global<const T>(a.x);
  const auto rois = t.global<const T>(a.rois);
  const auto weights = t.global<const V>(a.weights);
  const auto bounds = t.global<const int32_t>(a.bounds);
  const int64_t across = (g.w + kSide - 1) / kSide, down = (g.h + kSide - 1) / kSide;
  const int64_t slices = (g.c + kSlice - 1) / kSlice, tile = t.block() / slices;
  const int64_t channel = t.block() % slices * kSlice, image = tile / (across * down);
  const int64_t left = tile % across * kSide, top = tile / across % down * kSide;
  const int64_t x = left + t.thread() % kSide, y = top + t.thread() / kSide;
  if (x >= g.w || y >= g.h) return;
  const int count = int(g.c - channel < kSlice ? g.c - channel : kSlice);
  V sums[kSlice] = {};
  for (int64_t r = 0; r < g.count; r++) {
    const double number = double(widen(rois.load(5 * r)));
    if (!regions::is_image(number, g.n) || int64_t(number) != image) continue;
    if (y < bounds.load(4 * r) || y >= bounds.load(4 * r + 1)) continue;
    if (x < bounds.load(4 * r + 2) || x >= bounds.load(4 * r + 3)) continue;
    const int64_t rows = r * (g.ph * g.h + g.pw * g.w) + y, columns = rows - y + g.ph * g.h + x;
    const int64_t from = r * g.channels * g.bins();
    if (g.is_sensitive()) {
#pragma unroll
      for (int k = 0; k < kSlice; k++) {
        if (k >= count) continue;
        const int64_t bin = (channel + k) % g.bins();
        const V weight =
            weights.load(rows + bin / g.pw * g.h) * weights.load(columns + bin % g.pw * g.w);
        if (weight != V(0)) sums[k] += weight * widen(grad.load(from + channel + k));
      }
      continue;
    }
    for (int64_t i = 0; i < g.ph; i++) {
      const V row = weights.load(rows + i * g.h);
      if (row == V(0)) continue;
      for (int64_t j = 0; j < g.pw; j++) {
        const V weight = row * weights.load(columns + j * g.w);
        if (weight == V(0)) continue;
        const int64_t at = from + channel * g.bins() + i * g.pw + j;
#pragma unroll
        for (int k = 0; k < kSlice; k++)
          if (k < count) sums[k] += weight * widen(grad.load(at + k * g.bins()));
      }
    }
  }
  const auto to = t.global<T>(a.to);
#pragma unroll
  for (int k = 0; k < kSlice; k++)
    if (k < count) to.store(((image * g.c + channel + k) * g.h + y) * g.w + x, narrow<T>(sums[k]));
}
#endif

PLAIT_DEVICE_KERNEL(pool_regions, RegionArgs, 256, FLOATING);
PLAIT_DEVICE_KERNEL(pool_largest, RegionArgs, 256, FLOATING);
PLAIT_DEVICE_KERNEL(weigh_regions, RegionArgs, 128, FLOATING);
PLAIT_DEVICE_KERNEL(spread_regions, RegionArgs, kSide *kSide, FLOATING);

}  // namespace
}  // namespace plait::cuda

#if PLAIT_HOST
#include "host/copy.h"

namespace plait::cuda {
namespace {

// The operands of a call: images or gradients, and regions.
struct RegionCall {
  RegionArgs a{};
  Operand x, rois;
  DenseResult to;
  plait_status take(const plait_call *c) {
    PLAIT_TRY(x.take_dense(c, tensor(c, 0)));
    PLAIT_TRY(rois.take_dense(c, tensor(c, 1)));
    PLAIT_TRY(to.take(c, result(c, 0)));
    a.x = x.data(), a.rois = rois.data(), a.to = to.data();
    a.fault = fault_of(c, 1);
    return PLAIT_OK;
  }
  int64_t blocks(const plait_call *c) const { return blocks_for(c, numel(result(c, 0)), 256); }
};

// op(input, rois, spatial_scale, pooled_height, pooled_width, ...)
template <Pooling how>
plait_status forward(plait_call *c) {
  RegionCall call;
  PLAIT_TRY(call.take(c));
  call.a.g = regions::geometry(c, how, tensor(c, 0)->shape, 2);
  PLAIT_TRY(launch(c, pool_regions_kernel, kind(result(c)->dtype), call.a, call.blocks(c), 256));
  return call.to.finish(c);
}

// op(grad, rois, size, spatial_scale, pooled_height, pooled_width, ...)
template <Pooling how>
plait_status backward(plait_call *c) {
  RegionCall call;
  RegionArgs &a = call.a;
  PLAIT_TRY(call.take(c));
  a.g = regions::geometry(c, how, result(c)->shape, 3);
  const Geometry &g = a.g;
  const Kind k = kind(result(c)->dtype);
  const int64_t nbytes = g.count * (g.ph * g.h + g.pw * g.w) * size_of(k == F64 ? F64 : F32);
  DeviceWorkspace weights, bounds;
  PLAIT_TRY(weights.take(c, nbytes));
  PLAIT_TRY(bounds.take(c, g.count * 16));
  PLAIT_TRY(fill_bytes(c, weights.data(), 0, nbytes));
  a.weights = weights.data(), a.bounds = bounds.data<int32_t>();
  PLAIT_TRY(launch(c, weigh_regions_kernel, k, a, ceil_div(2 * g.count, 128), 128));
  const int64_t tiles = ceil_div(g.h, kSide) * ceil_div(g.w, kSide);
  const int64_t blocks = g.n * tiles * ceil_div(g.c, kSlice);
  PLAIT_TRY(launch(c, spread_regions_kernel, k, a, blocks, kSide * kSide));
  return call.to.finish(c);
}

// roi_pool(input, rois, spatial_scale, pooled_height, pooled_width) -> (result, argmax)
plait_status roi_pool(plait_call *c) {
  RegionCall call;
  DenseResult argmax;
  PLAIT_TRY(call.take(c));
  PLAIT_TRY(argmax.take(c, result(c, 1)));
  call.a.g = regions::geometry(c, Pooling::kPool, tensor(c, 0)->shape, 2);
  call.a.argmax = argmax.data<int32_t>();
  PLAIT_TRY(launch(c, pool_largest_kernel, kind(result(c)->dtype), call.a, call.blocks(c), 256));
  PLAIT_TRY(call.to.finish(c));
  return argmax.finish(c);
}

PLAIT_KERNEL("roi_align", forward<Pooling::kAlign>);
PLAIT_KERNEL("roi_align_backward", backward<Pooling::kAlign>);
PLAIT_KERNEL("ps_roi_align", forward<Pooling::kSensitiveAlign>);
PLAIT_KERNEL("ps_roi_align_backward", backward<Pooling::kSensitiveAlign>);
PLAIT_KERNEL("ps_roi_pool", forward<Pooling::kSensitivePool>);
PLAIT_KERNEL("ps_roi_pool_backward", backward<Pooling::kSensitivePool>);
PLAIT_KERNEL("roi_pool", roi_pool);

}  // namespace
}  // namespace plait::cuda
#endif
