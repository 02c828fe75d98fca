// Depthwise convolutions of planes with short rows: neighbouring planes side by side, one in each
// lane of a vector. No lane is spent on borders, and strides are distances of whole vectors.
#include "convolution/convolution_channels.h"
#include "convolution/convolution_depthwise.h"
#include "convolution/convolution_depthwise_frame.h"
#include "kernel/lanes.h"
#include "kernel/packed_weight.h"

namespace plait::core {
namespace {

constexpr int64_t kBand = 1 << 11;  // elements of a plane that are taken at once
constexpr int64_t kFlat = 64;       // products that are summed up one after the other
constexpr int64_t kUnits = 16;      // parallel units of a sum over images
constexpr int64_t kPrefetched = 1 << 12;  // elements of planes that are prefetched
constexpr int64_t kPartials = 1 << 20;  // largest number of elements of partial sums

// The planes of a unit of work: kLanes of them, if there are so many, from `first` on. The last
// unit begins early enough for that, and does not store the first `skip`.
template <class T>
struct Group {
  int64_t first, skip, lanes;
  Group(int64_t planes, int64_t unit)
      : first(least(unit * kLanes<T>, most(planes - kLanes<T>, 0))),
        skip(unit * kLanes<T> - first),
        lanes(least(planes, kLanes<T>)) {}
};

// to[q * kLanes + lane] = from[lane * apart + q] for q < n
template <class T>
PLAIT_INLINE void side_by_side(const Group<T> &g, const T *from, int64_t apart, int64_t n, T *to) {
  constexpr int64_t h = kHalf<T>;
  if (g.lanes < kLanes<T> || n < h) {
    for (int64_t q = 0; q < n; q++)
      for (int64_t lane = 0; lane < g.lanes; lane++)
        to[q * kLanes<T> + lane] = from[lane * apart + q];
    return;
  }
  for (int64_t q = 0;; q = least(q + h, n - h)) {  // the last ones once more
    Vec<T> v[h];
    for (int64_t i = 0; i < h; i++)
      v[i] = load_halves(from + i * apart + q, from + (i + h) * apart + q);
    transpose_halves<T>(v);
    for (int64_t i = 0; i < h; i++) store(to + (q + i) * kLanes<T>, v[i]);
    if (q + h == n) break;
  }
}

// The other way round.
template <class T>
PLAIT_INLINE void one_by_one(const Group<T> &g, const T *from, int64_t n, T *to, int64_t apart) {
  constexpr int64_t h = kHalf<T>;
  if (g.skip || g.lanes < kLanes<T> || n < h) {
    for (int64_t lane = g.skip; lane < g.lanes; lane++)
      for (int64_t q = 0; q < n; q++) to[lane * apart + q] = from[q * kLanes<T> + lane];
    return;
  }
  for (int64_t q = 0;; q = least(q + h, n - h)) {
    Vec<T> v[h];
    for (int64_t i = 0; i < h; i++) v[i] = load(from + (q + i) * kLanes<T>);
    transpose_halves<T>(v);
    for (int64_t i = 0; i < h; i++)
      store_halves(to + i * apart + q, to + (i + h) * apart + q, v[i]);
    if (q + h == n) break;
  }
}

// Planes inside of zeros. `clear`: rows outside of the planes may hold something else.
template <class T>
void fill(const DepthwiseFrame &f, const Group<T> &g, const T *planes, int64_t apart, bool clear,
          T *to) {
  for (int64_t i = 0; i < f.rows; i++) {
    const int64_t y = i - f.top;
    T *row = to + (i * f.pitch + f.left) * kLanes<T>;
    if (y >= 0 && y < f.h)
      side_by_side(g, planes + y * f.w, apart, f.w, row);
    else if (clear)
      memset(row, 0, size_t(f.w * kLanes<T>) * sizeof(T));
  }
}

// A row of results and the next: how many, elements between two of them, and between two rows.
struct Steps {
  int64_t step, row;
};
struct Results {
  int64_t rows, n;
  Steps from, to;
};

// Elements of a window: where they are beside a position, and their factors at `elements` of the
// table of factors.
template <class T>
struct LaneTaps {
  const int64_t *offsets, *elements;
  const T *factors;
};

// Result q of row i is `start` plus the sum of the factors times from[offsets[t] + position], t <
// N.
template <class T, int N, int S>
PLAIT_INLINE void sum_positions(const int64_t *offsets, const Vec<T> *factor, const T *from,
                                int64_t step, Vec<T> start, bool add, T *to, int64_t to_step) {
  Vec<T> sum[S];
  for (int s = 0; s < S; s++) sum[s] = add ? load(to + s * to_step) : start;
  for (int t = 0; t < N; t++) {
    const T *x = from + offsets[t];
    for (int s = 0; s < S; s++) sum[s] = fused(factor[t], load(x + s * step), sum[s]);
  }
  for (int s = 0; s < S; s++) store(to + s * to_step, sum[s]);
}

template <class T, int N>
PLAIT_NOINLINE void sum_lanes(const LaneTaps<T> &taps, const Results &r, const T *from,
                              const T *start, bool add, T *to) {
  const int64_t *offsets = taps.offsets;
  Vec<T> factor[N];
  for (int t = 0; t < N; t++) factor[t] = load(taps.factors + taps.elements[t]);
  const int64_t step = r.from.step, to_step = r.to.step;
  for (int64_t i = 0; i < r.rows; i++) {
    const T *x = from + i * r.from.row;
    T *y = to + i * r.to.row;
    int64_t q = 0;
    for (; q + 4 <= r.n; q += 4)
      sum_positions<T, N, 4>(offsets, factor, x + q * step, step, load(start), add, y + q * to_step,
                             to_step);
    if (q + 2 <= r.n) {
      sum_positions<T, N, 2>(offsets, factor, x + q * step, step, load(start), add, y + q * to_step,
                             to_step);
      q += 2;
    }
    if (q < r.n)
      sum_positions<T, N, 1>(offsets, factor, x + q * step, step, load(start), add, y + q * to_step,
                             to_step);
  }
}

template <class T>
void sum_all(const LaneTaps<T> &taps, int64_t count, const Results &r, const T *from,
             const T *start, T *to) {
  using Sum = void (*)(const LaneTaps<T> &, const Results &, const T *, const T *, bool, T *);
  static constexpr Sum kSums[] = {sum_lanes<T, 1>, sum_lanes<T, 2>, sum_lanes<T, 3>,
                                  sum_lanes<T, 4>, sum_lanes<T, 5>, sum_lanes<T, 6>,
                                  sum_lanes<T, 7>, sum_lanes<T, 8>, sum_lanes<T, 9>};
  for (int64_t i = 0; i < (count ? 0 : r.rows); i++)
    for (int64_t q = 0; q < r.n; q++) store(to + i * r.to.row + q * r.to.step, load(start));
  for (int64_t t = 0; t < count; t += kMostTaps)
    kSums[least(count - t, kMostTaps) - 1]({taps.offsets + t, taps.elements + t, taps.factors}, r,
                                           from, start, t > 0, to);
}

// sums[t] += the sum of g[position] * from[offsets[t] + position] of rows of positions, lane by
// lane.
template <class T, int N>
PLAIT_NOINLINE void dot_lanes(const int64_t *offsets, const Results &r, const T *from, const T *g,
                              T *sums) {
  for (int64_t begin = 0, at_once = kFlat / r.n + 1; begin < r.rows; begin += at_once) {
    Vec<T> sum[N] = {};
    for (int64_t i = begin; i < r.rows && i < begin + at_once; i++) {
      const T *x = from + i * r.from.row;
      for (int64_t q = 0; q < r.n; q++, x += r.from.step, g += kLanes<T>) {
        const Vec<T> factor = load(g);
        for (int t = 0; t < N; t++) sum[t] = fused(factor, load(x + offsets[t]), sum[t]);
      }
    }
    for (int t = 0; t < N; t++) store(sums + t * kLanes<T>, load(sums + t * kLanes<T>) + sum[t]);
  }
}

template <class T>
void dot_all(const int64_t *offsets, int64_t count, const Results &r, const T *from, const T *g,
             T *sums) {
  using Dots = void (*)(const int64_t *, const Results &, const T *, const T *, T *);
  static constexpr Dots kDots[] = {dot_lanes<T, 1>, dot_lanes<T, 2>, dot_lanes<T, 3>,
                                   dot_lanes<T, 4>, dot_lanes<T, 5>, dot_lanes<T, 6>,
                                   dot_lanes<T, 7>, dot_lanes<T, 8>, dot_lanes<T, 9>};
  for (int64_t t = 0; t < count; t += kMostTaps)
    kDots[least(count - t, kMostTaps) - 1](offsets + t, r, from, g, sums + t * kLanes<T>);
}

// Elements of the window, of all filters of a channel, each for all channels and again for the
// first ones, so that the lanes of every group of planes are side by side.
template <class T>
struct ByElement {
  int64_t pitch;
  explicit ByElement(const Conv &v) : pitch(v.c + kLanes<T>) {}
  // to[e * pitch + channel] = from[channel * elements + e]
  void lay_out(const Conv &v, const T *from, int64_t elements, T *to) const {
    transposed(to, pitch, from, elements, v.c, elements);
    for (int64_t e = 0; e < elements; e++, to += pitch)
      for (int64_t channel = v.c; channel < pitch; channel++) to[channel] = to[channel - v.c];
  }
};

// The planes that windows of results [0, rows) x [0, v.ow) see, after `begin` rows.
DepthwiseFrame seen(const Conv &v, int64_t rows, int64_t begin) {
  const int64_t reach = (v.ow - 1) * v.sw + (v.kw - 1) * v.dw + 1;
  return {v.h,
          v.w,
          1,
          1,
          v.ph - begin * v.sh,
          v.pw,
          (rows - 1) * v.sh + (v.kh - 1) * v.dh + 1,
          most(reach, v.pw + v.w)};
}

// What `covering` says, wide enough for whole planes.
DepthwiseFrame covering_all(const Conv &v, int64_t rows, int64_t begin) {
  DepthwiseFrame f = covering(v, rows, begin);
  const int64_t left = most(f.left, 0);
  f.pitch = most(f.pitch - f.left, v.ow) + left;
  f.left = left;
  return f;
}

template <class T>
void window_offsets(const Conv &v, int64_t pitch, int64_t *offsets) {
  for (int64_t i = 0; i < v.kh; i++)
    for (int64_t j = 0; j < v.kw; j++) *offsets++ = (i * v.dh * pitch + j * v.dw) * kLanes<T>;
}

// Asks for small planes of a unit that follows, or for the memory of results: no prefetcher follows
// eight planes at once.
template <bool kWrite, class T>
PLAIT_INLINE void ask_for(const T *planes, int64_t n) {
  if (n > kPrefetched) return;
  for (int64_t i = 0; i < n; i += 64 / int64_t(sizeof(T))) __builtin_prefetch(planes + i, kWrite);
}

template <class T>
int64_t units(int64_t planes) {
  return ceil_div(planes, kLanes<T>);
}

}  // namespace

template <class T>
plait_status depthwise_lanes_forward(const plait_call *c, const Conv &v, const T *x, const T *w,
                                     const DLTensor *bias, T *y) {
  constexpr int64_t lanes = kLanes<T>;
  const int64_t filters = v.goc(), taps = v.kh * v.kw, area = v.oh * v.ow, planes = v.n * v.c;
  const DepthwiseBands bands(v.oh, 1, v.w * v.sh, kBand);
  const DepthwiseFrame whole = seen(v, bands.rows, 0);
  const ByElement<T> table(v);
  const int64_t frame_size = rounded(whole.part() * lanes), row = whole.pitch * lanes;
  Workspace list, space;
  PLAIT_TRY(list.take(c, uint64_t(taps * (filters + 1)) * sizeof(int64_t)));
  PLAIT_TRY(space.take(c, uint64_t(filters * (table.pitch + v.c)) * sizeof(T)));
  PackedWeight packed;
  const uint64_t bytes = uint64_t(taps * filters * table.pitch) * sizeof(T);
  PLAIT_TRY(packed.take(c, 1, PackedForm::DepthwiseFactors, bytes, [&](void *to) {
    table.lay_out(v, w, taps * filters, static_cast<T *>(to));
    return PLAIT_OK;
  }));
  int64_t *offsets = list.as<int64_t>(), *elements = offsets + taps;
  for (int64_t i = 0; i < filters * taps; i++) elements[i] = i * table.pitch;
  const T *factors = packed.as<T>();
  T *starts = space.as<T>(), *own = starts + filters * table.pitch;
  window_offsets<T>(v, whole.pitch, offsets);
  for (int64_t i = 0; i < v.oc; i++) own[i] = bias ? data<T>(bias)[i * bias->strides[0]] : T(0);
  table.lay_out(v, own, filters, starts);
  return with_zeros<T>(
      c, units<T>(planes) * bands.count, kChunk / 8 / (bands.rows * v.ow * filters * lanes) + 1,
      frame_size + bands.rows * v.ow * lanes, [&](int64_t begin, int64_t end, T *frame) {
        T *result = frame + frame_size;
        for (int64_t u = begin; u < end; u++) {
          const Group<T> g(planes, u / bands.count);
          const int64_t first = u % bands.count * bands.rows, channel = g.first % v.c;
          const int64_t rows = least(bands.rows, v.oh - first);
          const T *from = x + g.first * v.h * v.w;
          fill(seen(v, rows, first), g, from, v.h * v.w, bands.count > 1, frame);
          if (u + 1 < end) ask_for<false>(from + lanes * v.h * v.w, lanes * v.h * v.w);
          ask_for<true>(y + g.first * filters * area, lanes * area);
          const Results r{rows, v.ow, {v.sw * lanes, v.sh * row}, {lanes, v.ow * lanes}};
          for (int64_t m = 0; m < filters; m++) {
            sum_all<T>({offsets, elements + m * taps, factors + channel}, taps, r, frame,
                       starts + m * table.pitch + channel, result);
            v.activation(result, rows * v.ow * lanes);
            one_by_one(g, result, rows * v.ow, y + (g.first * filters + m) * area + first * v.ow,
                       filters * area);
          }
        }
      });
}

template <class T>
plait_status depthwise_lanes_backward_input(const plait_call *c, const Conv &v, const T *gy,
                                            const T *w, T *gx) {
  constexpr int64_t lanes = kLanes<T>;
  const int64_t filters = v.goc(), own = filters * v.kh * v.kw, area = v.oh * v.ow;
  const int64_t planes = v.n * v.c;
  const DepthwiseBands bands(v.h, v.sh, v.w, kBand);
  const DepthwiseFrame whole = covering_all(v, bands.rows, 0);
  const ByElement<T> table(v);
  const int64_t frame_size = rounded(whole.part() * lanes), row = whole.pitch * lanes;
  Workspace space;
  PLAIT_TRY(space.take(c, uint64_t((own + 1) * table.pitch) * sizeof(T)));
  T *factors = space.as<T>(), *zeros = factors + own * table.pitch;
  table.lay_out(v, w, own, factors);
  memset(zeros, 0, lanes * sizeof(T));
  DepthwiseResidues list(v);
  PLAIT_TRY(list.find(c, v, whole, frame_size / lanes));
  for (int64_t i = 0; i < own; i++) {
    list.offsets[i] *= lanes;
    list.elements[i] *= table.pitch;
  }
  const int64_t work = (bands.rows * v.w + filters * area / bands.count) * lanes;
  return with_zeros<T>(
      c, units<T>(planes) * bands.count, 2 * kChunk / work + 1,
      filters * frame_size + bands.rows * v.w * lanes, [&](int64_t begin, int64_t end, T *frame) {
        T *result = frame + filters * frame_size;
        for (int64_t u = begin; u < end; u++) {
          const Group<T> g(planes, u / bands.count);
          const int64_t first = u % bands.count * bands.rows, channel = g.first % v.c;
          const int64_t height = least(bands.rows, v.h - first);
          const T *from = gy + g.first * filters * area;
          T *to = gx + (g.first * v.h + first) * v.w;
          for (int64_t m = 0; m < filters; m++)
            fill(covering_all(v, bands.rows, first), g, from + m * area, filters * area,
                 bands.count > 1, frame + m * frame_size);
          if (u + 1 < end) ask_for<false>(from + lanes * filters * area, lanes * filters * area);
          ask_for<true>(to, lanes * v.h * v.w);
          int64_t all = 0;
          for (int64_t down = 0; down < list.downs; down++)
            for (int64_t k = 0; k < list.acrosses; k++) {
              const int64_t count = list.counts[down * list.acrosses + k];
              const Results r{ceil_div(height - down, v.sh),
                              ceil_div(v.w - k, v.sw),
                              {lanes, row},
                              {v.sw * lanes, v.sh * v.w * lanes}};
              sum_all<T>({list.offsets + all, list.elements + all, factors + channel}, count, r,
                         frame, zeros, result + (down * v.w + k) * lanes);
              all += count;
            }
          one_by_one(g, result, height * v.w, to, v.h * v.w);
        }
      });
}

template <class T>
plait_status depthwise_lanes_backward_weight(const plait_call *c, const Conv &v, const T *gy,
                                             const T *x, T *gw) {
  constexpr int64_t lanes = kLanes<T>;
  const int64_t filters = v.goc(), taps = v.kh * v.kw, area = v.oh * v.ow, own = filters * taps;
  const DepthwiseBands bands(v.oh, 1, v.w * v.sh, kBand);
  const DepthwiseFrame whole = seen(v, bands.rows, 0);
  const int64_t frame_size = rounded(whole.part() * lanes), row = whole.pitch * lanes;
  // Images in parts with sums of their own, which are added up in order.
  const int64_t blocks = units<T>(v.c), size = own * lanes, required = ceil_div(kUnits, blocks);
  const int64_t images = ceil_div(v.n, most(least(required, kPartials / (blocks * size)), 1));
  const int64_t parts = ceil_div(v.n, images);
  Workspace list, space;
  PLAIT_TRY(list.take(c, uint64_t(taps) * sizeof(int64_t)));
  PLAIT_TRY(space.take(c, uint64_t(parts * blocks * size) * sizeof(T)));
  int64_t *offsets = list.as<int64_t>();
  window_offsets<T>(v, whole.pitch, offsets);
  PLAIT_TRY(with_zeros<T>(
      c, parts * blocks, kChunk / (images * area * lanes) + 1,
      frame_size + bands.rows * v.ow * lanes, [&](int64_t begin, int64_t end, T *frame) {
        T *gradient = frame + frame_size;
        for (int64_t u = begin; u < end; u++) {
          T *sums = space.as<T>() + u * size;
          const Group<T> g(v.c, u % blocks);
          memset(sums, 0, size_t(size) * sizeof(T));
          const int64_t image = u / blocks * images, last = least(image + images, v.n);
          for (int64_t i = image * bands.count; i < last * bands.count; i++) {
            const int64_t plane = i / bands.count * v.c + g.first;
            const int64_t first = i % bands.count * bands.rows;
            const int64_t rows = least(bands.rows, v.oh - first), next = plane + v.c;
            fill(seen(v, rows, first), g, x + plane * v.h * v.w, v.h * v.w, bands.count > 1, frame);
            if (i + 1 < last) {
              ask_for<false>(x + next * v.h * v.w, lanes * v.h * v.w);
              ask_for<false>(gy + next * filters * area, lanes * filters * area);
            }
            const Results r{rows, v.ow, {v.sw * lanes, v.sh * row}, {lanes, v.ow * lanes}};
            for (int64_t m = 0; m < filters; m++) {
              side_by_side(g, gy + (plane * filters + m) * area + first * v.ow, filters * area,
                           rows * v.ow, gradient);
              dot_all<T>(offsets, taps, r, frame, gradient, sums + m * taps * lanes);
            }
          }
        }
      }));
  for (int64_t block = 0; block < blocks; block++) {
    T *sums = space.as<T>() + block * size;
    for (int64_t p = 1; p < parts; p++)
      for (int64_t i = 0; i < size; i++) sums[i] += sums[p * blocks * size + i];
    const Group<T> g(v.c, block);
    for (int64_t lane = g.skip; lane < g.lanes; lane++)
      for (int64_t e = 0; e < own; e++) gw[(g.first + lane) * own + e] = sums[e * lanes + lane];
  }
  return PLAIT_OK;
}

#define PLAIT_INSTANCE(T)                                                                    \
  template plait_status depthwise_lanes_forward(const plait_call *, const Conv &, const T *, \
                                                const T *, const DLTensor *, T *);           \
  template plait_status depthwise_lanes_backward_input(const plait_call *, const Conv &,     \
                                                       const T *, const T *, T *);           \
  template plait_status depthwise_lanes_backward_weight(const plait_call *, const Conv &,    \
                                                        const T *, const T *, T *);
PLAIT_INSTANCE(float)
PLAIT_INSTANCE(double)

}  // namespace plait::core
