#include "convolution/winograd.h"

#include "convolution/winograd_mode.h"
#include "convolution/winograd_tiles.h"
#include "kernel/integers.h"
#include "kernel/packed_weight.h"
#include "linalg/gemm.h"

namespace plait::core {
namespace {

constexpr int64_t kBandTiles = 56;         // tiles of a band, whose numbers stay near a core
constexpr int64_t kFewTiles = 14;  // of a band for many threads, which read all filters for each
constexpr int64_t kUnits = 16;  // parallel units that are enough for few threads
constexpr int64_t kColumns = 64;           // output channels that are computed together
constexpr int64_t kResults = 128 << 10;    // products of a band that are in the cache at once

// A convolution of stride 1 of one group of channels: forward, or backward by the input, where the
// gradients are the images and the filters are turned.
template <class T>
struct Job {
  int64_t window, m, images, channels, filters;
  int64_t h, w, oh, ow, ph, pw;
  const T *x;
  int64_t x_image;  // elements from an image to the next
  const T *weight;
  int64_t by_filter, by_channel;  // elements of `weight` from a filter or channel to the next
  bool turned;
  const T *bias;
  int64_t by_bias;
  T *y;
  int64_t y_image;
  uint8_t *broken;  // of each image
  Activation activation{};
  const T *packed = nullptr;  // the filters as pack_filters lays them out, or NULL

  int64_t taps() const { return window * window; }
  int64_t side() const { return m + window - 1; }
  int64_t points() const { return side() * side(); }
  int64_t down() const { return ceil_div(oh, m); }
  int64_t across() const { return ceil_div(ow, m); }
  Grid in() const { return {h, w, m, side(), ph, pw, down(), across()}; }
  Grid out() const { return {oh, ow, m, m, 0, 0, down(), across()}; }
  // Distances of tiles and of points in the transformed input: [point][tile][channel].
  int64_t tile_step() const {
    return ceil_div(channels, kChannels<T>) * kChannels<T> + kChannels<T>;
  }
  int64_t point_step(int64_t tiles) const { return plane_step<T>(tiles * tile_step()); }
  // Transformed filters: [panel][point][channel][filter of a panel].
  int64_t filter_step() const { return plane_step<T>(channels * kPanel<T>); }
  int64_t panel_step() const { return points() * filter_step(); }
};

constexpr int64_t kAtOnce = 16;  // channels of filters that are transformed together
constexpr int64_t kKeptTiles = 256;  // of more tiles filters are a small part

template <class T>
int64_t filter_room(const Job<T> &job) {
  return kAtOnce * job.taps() * kPanel<T>;
}

// Transforms a panel of filters; `room` has filter_room elements.
template <class T>
void transform_filters(const Job<T> &job, int64_t panel, T *to, T *room) {
  constexpr int64_t w = kPanel<T>;
  const int64_t taps = job.taps(), line = job.window * w;
  const SquareMap<T> map = winograd_maps<T>(job.window, job.m).filter;
  const int64_t first = panel * w, rest = job.filters - first, wide = rest < w ? rest : w;
  const SquareSteps source =
      job.turned ? SquareSteps{-line, -w, taps * w} : SquareSteps{line, w, taps * w};
  const SquareSteps target{job.side() * job.filter_step(), job.filter_step(), w};
  if (job.packed)
    return map(job.channels, job.packed + panel * job.channels * taps * w, source, to, target,
               nullptr);
  if (wide < w) memset(room, 0, size_t(filter_room(job)) * sizeof(T));
  for (int64_t k = 0; k < job.channels; k += kAtOnce) {
    const int64_t n = job.channels - k < kAtOnce ? job.channels - k : kAtOnce;
    const T *from = job.weight + first * job.by_filter + k * job.by_channel;
    if (job.by_channel == taps)
      transposed(room, w, from, job.by_filter, wide, n * taps);
    else
      for (int64_t i = 0; i < n; i++)
        transposed(room + i * taps * w, w, from + i * job.by_channel, job.by_filter, wide, taps);
    map(n, room + (job.turned ? (taps - 1) * w : 0), source, to + k * w, target, nullptr);
  }
}

// [panel][channel][kh][kw][filter of a panel]
template <class T>
void pack_filters(const plait_call *c, const Job<T> &job, T *to) {
  constexpr int64_t w = kPanel<T>;
  const int64_t depth = job.channels * job.taps();
  parallel_ranges(c, ceil_div(job.filters, w), kChunk / (depth * w), [&](int64_t i, int64_t end) {
    for (; i < end; i++) {
      const int64_t rest = job.filters - i * w;
      if (rest < w) memset(to + i * depth * w, 0, size_t(depth * w) * sizeof(T));
      transposed(to + i * depth * w, w, job.weight + i * w * depth, depth, rest < w ? rest : w,
                 depth);
    }
  });
}

// Transforms the tiles of rows [begin, end), channels [first, first + kChannels).
template <class T>
void transform_input(const Job<T> &job, int64_t begin, int64_t end, int64_t first, T *to,
                     int64_t point_step, T *pixels) {
  const int64_t rest = job.channels - first;
  read_tiles(job.in(), winograd_maps<T>(job.window, job.m).input, job.x + first * job.h * job.w,
             job.x_image, rest < kChannels<T> ? rest : kChannels<T>, begin, end, to + first,
             {job.side() * point_step, point_step, job.tile_step()}, pixels);
}

// Results of rows [begin, end) of tiles, for the filters [first, first + n) of whole panels.
template <class T>
void multiply(const Job<T> &job, int64_t begin, int64_t end, int64_t first, int64_t n,
              const T *tiles, int64_t point_step, const T *filters, T *products, T *pixels) {
  constexpr int64_t w = kChannels<T>;
  const int64_t count = (end - begin) * job.across(), area = job.oh * job.ow;
  const int64_t columns = ceil_div(n, w) * w, step = plane_step<T>(count * columns);
  for (int64_t p = 0; p < job.points(); p++)
    multiply_tile(count, columns, job.channels,
                  Matrix<T>{tiles + p * point_step, job.tile_step(), 1},
                  Panels<T>{filters + p * job.filter_step(), job.panel_step(), w},
                  products + p * step, columns, false);
  for (int64_t j = 0; j < n; j += w) {
    const int64_t lanes = n - j < w ? n - j : w;
    alignas(64) T shift[w] = {};
    if (job.bias)
      for (int64_t i = 0; i < lanes; i++) shift[i] = job.bias[(first + j + i) * job.by_bias];
    write_tiles(job.out(), winograd_maps<T>(job.window, job.m).output, products + j,
                SquareSteps{job.side() * step, step, columns}, job.bias ? shift : nullptr,
                job.activation, job.y + (first + j) * area, job.y_image, lanes, begin, end, pixels,
                job.broken);
  }
}

template <class T>
int64_t pixel_room(const Job<T> &job, int64_t rows) {
  const int64_t in = job.in().template pixels<T>(rows), out = job.out().template pixels<T>(rows);
  return in > out ? in : out;
}

// Many tiles: each band of tiles is transformed, multiplied and transformed back on its own. The
// filters are transformed once.
template <class T>
plait_status in_bands(const plait_call *c, const Job<T> &job) {
  const int64_t panels = ceil_div(job.filters, kPanel<T>), all = job.images * job.down();
  Workspace space;
  PLAIT_TRY(space.take(c, uint64_t(panels * job.panel_step()) * sizeof(T)));
  T *filters = space.as<T>();
  PLAIT_TRY(with_scratch<T>(c, panels, 1, filter_room(job), [&](int64_t i, T *room) {
    transform_filters(job, i, filters + i * job.panel_step(), room);
  }));
  int64_t rows = ceil_div(kBandTiles, job.across());
  if (const int64_t wanted = units_wanted(kUnits); wanted > kUnits && all < wanted * rows)
    rows = least(most(all / wanted, ceil_div(kFewTiles, job.across())), rows);
  const int64_t bands = ceil_div(all, rows);
  const int64_t count = rows * job.across(), step = job.point_step(count);
  const int64_t tiles = job.points() * step,
                products = job.points() * plane_step<T>(count * kColumns);
  return with_scratch<T>(
      c, bands, 1, tiles + products + pixel_room(job, rows), [&](int64_t t, T *room) {
        const int64_t begin = t * rows, end = begin + rows < all ? begin + rows : all;
        T *pixels = room + tiles + products;
        for (int64_t k = 0; k < job.channels; k += kChannels<T>)
          transform_input(job, begin, end, k, room, step, pixels);
        for (int64_t k = 0; k < job.filters; k += kColumns) {
          const int64_t n = job.filters - k < kColumns ? job.filters - k : kColumns;
          multiply(job, begin, end, k, n, room, step, filters + k / kPanel<T> * job.panel_step(),
                   room + tiles, pixels);
        }
      });
}

// Few tiles and many filters: all tiles are transformed, then blocks of filters, each with the
// products and results that it is used for.
template <class T>
plait_status by_filters(const plait_call *c, const Job<T> &job) {
  const int64_t all = job.images * job.down(), step = job.point_step(all * job.across());
  Workspace space;
  PLAIT_TRY(space.take(c, uint64_t(job.points() * step) * sizeof(T)));
  T *tiles = space.as<T>();
  const int64_t blocks = ceil_div(job.channels, kChannels<T>);
  const int64_t high = ceil_div(kBandTiles, job.across());
  PLAIT_TRY(with_scratch<T>(
      c, ceil_div(all, high) * blocks, 1, pixel_room(job, high), [&](int64_t t, T *pixels) {
        const int64_t begin = t / blocks * high, end = begin + high < all ? begin + high : all;
        transform_input(job, begin, end, t % blocks * kChannels<T>,
                        tiles + begin * job.across() * job.tile_step(), step, pixels);
      }));
  int64_t columns = kColumns;
  const int64_t wanted = units_wanted(kUnits), few = wanted > kUnits ? 1 : 2;  // panels
  while (columns > few * kPanel<T> && job.filters < wanted / 2 * columns) columns /= 2;
  int64_t rows = kResults / (columns * job.points() * job.across());
  rows = rows < 1 ? 1 : rows > all ? all : rows;
  // For many threads, tiles are cut as well, and each part transforms the filters that it needs.
  const int64_t units = ceil_div(job.filters, columns);
  int64_t parts = all * job.across() / (2 * kFewTiles);
  parts = wanted > kUnits ? least(ceil_div(wanted, units), parts) : 1;
  const int64_t share = ceil_div(all, most(parts, 1));
  parts = ceil_div(all, share);
  rows = least(rows, share);
  const int64_t panels = columns / kPanel<T>, filters = panels * job.panel_step();
  const int64_t products = job.points() * plane_step<T>(rows * job.across() * columns);
  const int64_t out = job.out().template pixels<T>(rows);
  const int64_t beside = out > filter_room(job) ? out : filter_room(job);
  return with_scratch<T>(c, units * parts, 1, filters + products + beside, [&](int64_t t, T *room) {
    const int64_t first = t / parts * columns, rest = job.filters - first;
    const int64_t begin = t % parts * share, end = least(begin + share, all);
    const int64_t n = rest < columns ? rest : columns;
    T *pixels = room + filters + products;
    for (int64_t j = 0; j < ceil_div(n, kPanel<T>); j++)
      transform_filters(job, first / kPanel<T> + j, room + j * job.panel_step(), pixels);
    for (int64_t i = begin; i < end; i += rows)
      multiply(job, i, least(i + rows, end), first, n, tiles + i * job.across() * job.tile_step(),
               step, room, room + filters, pixels);
  });
}

// The way that moves fewer bytes: bands read all filters each, blocks of filters all tiles.
template <class T>
plait_status convolve(const plait_call *c, const Job<T> &job) {
  const double tiles = double(job.images) * double(job.down() * job.across());
  const double filters = double(job.filters);
  const double banded = filters * (2 + tiles / kBandTiles);
  const double shared = tiles * (2 + filters / kColumns);
  return banded < shared ? in_bands(c, job) : by_filters(c, job);
}

}  // namespace

template <class T>
int64_t winograd_tile(const Conv &v, Algorithm request, bool by_weight) {
  const WinogradMode mode = winograd_mode();
  if (v.kh != v.kw || (v.kh != 3 && v.kh != 5)) return 0;
  if (v.sh != 1 || v.sw != 1 || v.dh != 1 || v.dw != 1) return 0;
  const int64_t less = v.kh - 3;  // results of a tile, than points besides 0 and infinity
  switch (mode) {
    case WinogradMode::F2: return 2 - less;
    case WinogradMode::F4: return 4 - less;
    case WinogradMode::F5: return 5 - less;
    case WinogradMode::F6: return 6 - less;
    case WinogradMode::Off: return 0;
    case WinogradMode::Auto: break;
  }
  if (sizeof(T) > 4) return 0;
  if (request != Algorithm::ByRule) {
    const int64_t m = int64_t(request);
    for (const int64_t size : kTileSizes)
      if (m >= 2 && m == size - less && selects_tiles(v.kh, m)) return m;
    return 0;
  }
  const int64_t images = batch_invariant() ? 1 : v.n;
  const int64_t m = winograd_rule({v.kh, images, v.gc(), v.goc(), v.oh, v.ow, v.groups}, by_weight);
  return selects_tiles(v.kh, m) ? m : 0;
}

template <class T>
plait_status winograd_forward(const plait_call *c, const Conv &v, int64_t m, const T *x, const T *w,
                              const DLTensor *bias, T *y, uint8_t *broken) {
  const int64_t taps = v.kh * v.kw, size = v.gc() * taps, area = v.oh * v.ow;
  const int64_t by_bias = bias ? bias->strides[0] : 0;
  auto of_group = [&](int64_t g) {
    return Job<T>{v.kh,
                  m,
                  v.n,
                  v.gc(),
                  v.goc(),
                  v.h,
                  v.w,
                  v.oh,
                  v.ow,
                  v.ph,
                  v.pw,
                  x + g * v.gc() * v.h * v.w,
                  v.c * v.h * v.w,
                  w + g * v.goc() * size,
                  size,
                  taps,
                  false,
                  bias ? data<T>(bias) + g * v.goc() * by_bias : nullptr,
                  by_bias,
                  y + g * v.goc() * area,
                  v.oc * area,
                  broken,
                  v.activation};
  };
  // Transformed filters are up to four times as many bytes: to read these from memory takes as long
  // as to transform them, so they are kept as they are before, the filters of a panel side by side.
  PackedWeight packed;
  const int64_t group = ceil_div(v.goc(), kPanel<T>) * kPanel<T> * size;
  const bool keeps =
      v.n * ceil_div(v.oh, m) * ceil_div(v.ow, m) <= kKeptTiles && may_keep_packed(c, 1);
  if (keeps)
    PLAIT_TRY(packed.take(c, 1, PackedForm::WinogradFilters, uint64_t(v.groups * group) * sizeof(T),
                          [&](void *to) {
                            for (int64_t g = 0; g < v.groups; g++)
                              pack_filters(c, of_group(g), static_cast<T *>(to) + g * group);
                            return PLAIT_OK;
                          }));
  else
    PackedWeight::pass(c, 1);
  for (int64_t g = 0; g < v.groups; g++) {
    Job<T> job = of_group(g);
    if (keeps) job.packed = packed.as<T>() + g * group;
    PLAIT_TRY(convolve(c, job));
  }
  return PLAIT_OK;
}

template <class T>
plait_status winograd_backward_input(const plait_call *c, const Conv &v, int64_t m, const T *gy,
                                     const T *w, T *gx, uint8_t *broken) {
  for (int64_t g = 0; g < v.groups; g++) {
    const int64_t taps = v.kh * v.kw, size = v.gc() * taps, area = v.oh * v.ow;
    PLAIT_TRY(convolve(c, Job<T>{v.kh,
                                 m,
                                 v.n,
                                 v.goc(),
                                 v.gc(),
                                 v.oh,
                                 v.ow,
                                 v.h,
                                 v.w,
                                 v.kh - 1 - v.ph,
                                 v.kw - 1 - v.pw,
                                 gy + g * v.goc() * area,
                                 v.oc * area,
                                 w + g * v.goc() * size,
                                 taps,
                                 size,
                                 true,
                                 nullptr,
                                 0,
                                 gx + g * v.gc() * v.h * v.w,
                                 v.c * v.h * v.w,
                                 broken}));
  }
  return PLAIT_OK;
}

#define PLAIT_INSTANCE(T)                                                                      \
  template int64_t winograd_tile<T>(const Conv &, Algorithm, bool);                            \
  template plait_status winograd_forward(const plait_call *, const Conv &, int64_t, const T *, \
                                         const T *, const DLTensor *, T *, uint8_t *);         \
  template plait_status winograd_backward_input(const plait_call *, const Conv &, int64_t,     \
                                                const T *, const T *, T *, uint8_t *);
PLAIT_INSTANCE(float)
PLAIT_INSTANCE(double)

}  // namespace plait::core
