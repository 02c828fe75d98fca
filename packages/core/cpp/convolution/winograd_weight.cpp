// The derivative by the weights: F(r x r, m x m) for windows of r x r, where the gradients' tiles
// take the place of the filters. The matrix products are sums over all tiles.
#include "convolution/winograd.h"
#include "convolution/winograd_tiles.h"

namespace plait::core {
namespace {

constexpr int64_t kBandTiles = 56;   // tiles that are transformed and multiplied at once
constexpr int64_t kParts = 16;       // partial sums, if there are enough tiles
constexpr int64_t kBlock = 64;       // largest number of channels, and of filters, of a block
constexpr int64_t kTasks = 8;        // smallest number of parallel units, if sizes allow
constexpr int64_t kLocal = 640 << 10;     // elements of a sum that a thread keeps near its core
constexpr int64_t kTransformed = 4 << 20;  // elements of transformed tiles of all blocks

template <class T>
struct Job {
  int64_t window, m, n, channels, filters;
  Grid in, out;
  const T *x, *gy;
  int64_t x_image, gy_image;  // elements from an image to the next
  T *gw;
  bool *broken;  // becomes true as winograd.h says
  int64_t block = kBlock;

  int64_t taps() const { return window * window; }
  int64_t side() const { return m + window - 1; }
  int64_t points() const { return side() * side(); }
  int64_t rows() const { return n * in.down; }  // of tiles, of all images
  int64_t channel_blocks() const { return ceil_div(channels, block); }
  int64_t filter_blocks() const { return ceil_div(filters, block); }
  // Channels of a block, which are as even as whole panels allow.
  int64_t wide(int64_t n, int64_t blocks) const {
    return ceil_div(ceil_div(n, kPanel<T>), blocks) * kPanel<T>;
  }
  int64_t wide_channels() const { return wide(channels, channel_blocks()); }
  int64_t wide_filters() const { return wide(filters, filter_blocks()); }
  // Transformed inputs are [block][point][tile][channel of a block], gradients
  // [panel][point][tile][filter of a panel], sums [block][block][point][channel][filter].
  int64_t in_point(int64_t tiles) const { return plane_step<T>(tiles * wide_channels()); }
  int64_t out_point(int64_t tiles) const { return plane_step<T>(tiles * kPanel<T>); }
  int64_t in_size(int64_t tiles) const { return channel_blocks() * points() * in_point(tiles); }
  int64_t panels() const { return filter_blocks() * wide_filters() / kPanel<T>; }
  int64_t out_size(int64_t tiles) const { return panels() * points() * out_point(tiles); }
  int64_t sum_point() const { return plane_step<T>(wide_channels() * wide_filters()); }
  int64_t sum_size() const { return points() * sum_point(); }
  int64_t blocks() const { return channel_blocks() * filter_blocks(); }
  int64_t size() const { return filters * channels * taps(); }
  int64_t pixels(int64_t rows) const {
    const int64_t a = in.template pixels<T>(rows), b = out.template pixels<T>(rows);
    return a > b ? a : b;
  }
};

// Transforms rows [begin, end) of tiles, counted from `base` on: panel i of the input's channels,
// or, from the number of these on, of the filters. `tiles`: that memory is laid out for.
template <class T>
void transform(const Job<T> &job, int64_t i, int64_t base, int64_t begin, int64_t end,
               int64_t tiles, T *in, T *out, T *pixels) {
  constexpr int64_t w = kPanel<T>;
  const WinogradMaps<T> &maps = winograd_maps<T>(job.window, job.m);
  const int64_t panels = ceil_div(job.channels, w), tile = (begin - base) * job.in.across;
  auto lanes = [](int64_t rest) { return rest < w ? rest : w; };
  if (i < panels) {
    const int64_t wide = job.wide_channels(), step = job.in_point(tiles), c = i * w;
    T *to = in + c / wide * job.points() * step + tile * wide + c % wide;
    read_tiles(job.in, maps.input, job.x + c * job.in.h * job.in.w, job.x_image,
               lanes(job.channels - c), begin, end, to, {job.side() * step, step, wide}, pixels);
  } else {
    const int64_t step = job.out_point(tiles), k = (i - panels) * w;
    T *to = out + (i - panels) * job.points() * step + tile * w;
    read_tiles(job.out, maps.gradient, job.gy + k * job.out.h * job.out.w, job.gy_image,
               lanes(job.filters - k), begin, end, to, {job.side() * step, step, w}, pixels);
  }
}

template <class T>
int64_t all_panels(const Job<T> &job) {
  return ceil_div(job.channels, kPanel<T>) + ceil_div(job.filters, kPanel<T>);
}

// The sums of one block of channels and one of filters over `count` tiles.
template <class T>
void multiply(const Job<T> &job, int64_t block, int64_t count, int64_t tiles, const T *in,
              const T *out, T *sums, bool add) {
  const int64_t wide_in = job.wide_channels(), wide_out = job.wide_filters();
  const int64_t row = block / job.filter_blocks(), column = block % job.filter_blocks();
  const int64_t in_step = job.in_point(tiles), out_step = job.out_point(tiles);
  const int64_t first = column * wide_out / kPanel<T>, rest = job.channels - row * wide_in;
  if (rest <= 0 || job.filters <= column * wide_out) return;
  in += row * job.points() * in_step;
  out += first * job.points() * out_step;
  const int64_t left = ceil_div(job.filters - column * wide_out, kPanel<T>) * kPanel<T>;
  for (int64_t p = 0; p < job.points(); p++)
    multiply_tile(rest < wide_in ? rest : wide_in, left < wide_out ? left : wide_out, count,
                  Matrix<T>{in + p * in_step, 1, wide_in},
                  Panels<T>{out + p * out_step, job.points() * out_step, kPanel<T>},
                  sums + p * job.sum_point(), wide_out, add);
}

// Transforms a block's sums to gradients of weights; `room`: finish_room elements.
template <class T>
void finish(const Job<T> &job, int64_t block, const T *sums, T *gw, bool add, T *room) {
  constexpr int64_t w = kPanel<T>;
  const int64_t wide_in = job.wide_channels(), wide_out = job.wide_filters();
  const int64_t c = block / job.filter_blocks() * wide_in;
  const int64_t k = block % job.filter_blocks() * wide_out;
  const int64_t high = job.channels - c < wide_in ? job.channels - c : wide_in;
  const int64_t step = job.sum_point(), size = high * job.taps(), all = job.channels * job.taps();
  for (int64_t j = 0; j < wide_out && k + j < job.filters && high > 0; j += w) {
    const int64_t rest = job.filters - k - j, lanes = rest < w ? rest : w;
    winograd_maps<T>(job.window, job.m)
        .weight(high, sums + j, {job.side() * step, step, wide_out}, room,
                {job.window * w, w, job.taps() * w}, nullptr);
    Finite<T> finite;
    for (int64_t i = 0; i < high; i++) {
      finite.add(room + i * job.taps() * w, w);
      finite.add(room + ((i + 1) * job.taps() - 1) * w, w);
    }
    if (!finite.all()) __atomic_store_n(job.broken, true, __ATOMIC_RELAXED);
    T *to = gw + (k + j) * all + c * job.taps(), *beside = room + size * w;
    transposed(add ? beside : to, add ? size : all, room, w, size, lanes);
    if (!add) continue;
    for (int64_t i = 0; i < lanes; i++)
      for (int64_t l = 0; l < size; l++) to[i * all + l] += beside[i * size + l];
  }
}

template <class T>
int64_t finish_room(const Job<T> &job) {
  return 2 * job.wide_channels() * job.taps() * kPanel<T>;
}

// Parts of the tiles that are worth sums of their own.
template <class T>
int64_t parts_of(const Job<T> &job) {
  const int64_t parts = job.rows() * job.in.across / kBandTiles;
  return parts < 1 ? 1 : parts < kParts ? parts : kParts;
}

// Few channels: parts of the tiles with sums of their own, added up in order.
template <class T>
plait_status by_parts(const plait_call *c, const Job<T> &job) {
  const int64_t all = job.rows(), share = ceil_div(all, parts_of(job));
  const int64_t parts = ceil_div(all, share);
  int64_t rows = ceil_div(kBandTiles, job.in.across);
  if (rows > share) rows = share;
  const int64_t tiles = rows * job.in.across, in = job.in_size(tiles), out = job.out_size(tiles);
  const int64_t sums = job.blocks() * job.sum_size();
  const int64_t pixels = job.pixels(rows), last = finish_room(job);
  Workspace space;
  if (parts > 1) PLAIT_TRY(space.take(c, uint64_t((parts - 1) * job.size()) * sizeof(T)));
  auto part = [&](int64_t p) { return p ? space.as<T>() + (p - 1) * job.size() : job.gw; };
  PLAIT_TRY(with_scratch<T>(
      c, parts, 1, in + out + sums + (pixels > last ? pixels : last), [&](int64_t p, T *room) {
        T *to = room + in + out, *beside = to + sums;
        const int64_t first = p * share, end = first + share < all ? first + share : all;
        for (int64_t i = first; i < end; i += rows) {
          const int64_t till = i + rows < end ? i + rows : end;
          for (int64_t j = 0; j < all_panels(job); j++)
            transform(job, j, i, i, till, tiles, room, room + in, beside);
          for (int64_t b = 0; b < job.blocks(); b++)
            multiply(job, b, (till - i) * job.in.across, tiles, room, room + in,
                     to + b * job.sum_size(), i > first);
        }
        for (int64_t b = 0; b < job.blocks(); b++)
          finish(job, b, to + b * job.sum_size(), part(p), false, beside);
      }));
  parallel_ranges(c, job.size(), kChunk, [&](int64_t begin, int64_t end) {
    for (int64_t p = 1; p < parts; p++) {
      const T *from = part(p);
      for (int64_t i = begin; i < end; i++) job.gw[i] += from[i];
    }
  });
  return PLAIT_OK;
}

// Many channels: blocks of channels and filters, each with its sums over a range of tiles.
template <class T>
plait_status by_blocks(const plait_call *c, const Job<T> &job) {
  const int64_t all = job.rows(), row = job.in_size(job.in.across) + job.out_size(job.in.across);
  const int64_t ranges = ceil_div(all * row, kTransformed);
  const int64_t share = ceil_div(all, ranges < all ? ranges : all);
  const int64_t tiles = share * job.in.across, high = ceil_div(kBandTiles, job.in.across);
  Workspace space;
  PLAIT_TRY(space.take(c, uint64_t(job.in_size(tiles) + job.out_size(tiles)) * sizeof(T)));
  T *in = space.as<T>(), *out = in + job.in_size(tiles);
  const int64_t panels = all_panels(job);
  for (int64_t first = 0; first < all; first += share) {
    const int64_t end = first + share < all ? first + share : all;
    PLAIT_TRY(with_scratch<T>(
        c, ceil_div(end - first, high) * panels, 1, job.pixels(high), [&](int64_t t, T *pixels) {
          const int64_t i = first + t / panels * high, till = i + high < end ? i + high : end;
          transform(job, t % panels, first, i, till, tiles, in, out, pixels);
        }));
    PLAIT_TRY(with_scratch<T>(
        c, job.blocks(), 1, job.sum_size() + finish_room(job), [&](int64_t b, T *sums) {
          multiply(job, b, (end - first) * job.in.across, tiles, in, out, sums, false);
          finish(job, b, sums, job.gw, first > 0, sums + job.sum_size());
        }));
  }
  return PLAIT_OK;
}

}  // namespace

template <class T>
plait_status winograd_backward_weight(const plait_call *c, const Conv &v, int64_t m, const T *gy,
                                      const T *x, T *gw, bool *broken) {
  const int64_t down = ceil_div(v.oh, m), across = ceil_div(v.ow, m), area = v.oh * v.ow;
  for (int64_t g = 0; g < v.groups; g++) {
    Job<T> job{v.kh,
               m,
               v.n,
               v.gc(),
               v.goc(),
               {v.h, v.w, m, m + v.kh - 1, v.ph, v.pw, down, across},
               {v.oh, v.ow, m, m, 0, 0, down, across},
               x + g * v.gc() * v.h * v.w,
               gy + g * v.goc() * area,
               v.c * v.h * v.w,
               v.oc * area,
               gw + g * v.goc() * v.gc() * v.kh * v.kw,
               broken};
    const bool near = job.blocks() * job.sum_size() <= kLocal && parts_of(job) >= kTasks;
    if (!near && job.blocks() < kTasks) job.block = kBlock / 2;
    PLAIT_TRY(near ? by_parts(c, job) : by_blocks(c, job));
  }
  return PLAIT_OK;
}

template plait_status winograd_backward_weight(const plait_call *, const Conv &, int64_t,
                                               const float *, const float *, float *, bool *);
template plait_status winograd_backward_weight(const plait_call *, const Conv &, int64_t,
                                               const double *, const double *, double *, bool *);

}  // namespace plait::core
