#include "convolution/convolution_depthwise.h"

#include "convolution/convolution_depthwise_frame.h"

namespace plait::core {
namespace {

using Frame = DepthwiseFrame;
using Bands = DepthwiseBands;

constexpr int64_t kLongRow = 4;  // vectors of a row that pay for a sum of its own

// Copies of short rows: pieces that overlap.
template <class T>
PLAIT_INLINE void copy_line(T *to, const T *from, int64_t n) {
  constexpr int64_t half = kLanes<T> / 2;
  if (n >= kLanes<T>) return copy_row(to, from, n);
  if (n >= half) {
    T a[half], b[half];
    memcpy(a, from, sizeof a);
    memcpy(b, from + n - half, sizeof b);
    memcpy(to, a, sizeof a);
    memcpy(to + n - half, b, sizeof b);
    return;
  }
  for (int64_t i = 0; i < n; i++) to[i] = from[i];
}

// Everything but the columns outside of the plane, which are zeros already.
template <class T>
void fill(const Frame &f, const T *plane, T *to) {
  const int64_t begin = most(f.left, 0), end = least(f.left + f.w, f.pitch * f.across);
  for (int64_t d = 0; d < f.down; d++)
    for (int64_t i = 0; i < f.rows; i++) {
      const int64_t y = i * f.down + d - f.top;
      for (int64_t k = 0; k < f.across; k++) {
        const int64_t skip = begin > k ? (begin - k + f.across - 1) / f.across : 0;
        const int64_t x = skip * f.across + k - f.left, n = ceil_div(end - f.left - x, f.across);
        T *row = to + (d * f.across + k) * f.part() + i * f.pitch + skip;
        if (n <= 0) continue;
        if (y < 0 || y >= f.h)
          memset(row, 0, size_t(n) * sizeof(T));
        else if (f.across == 1)
          copy_line(row, plane + y * f.w + x, n);
        else
          take_every(row, plane + y * f.w + x, f.across, n);
      }
    }
}

// Rows of sums: result q of row i is the sum of factors[t] * from[i * pitch + q + offsets[t]] over
// t < count, for q < n.
template <class T>
struct Taps {
  const int64_t *offsets;
  const T *factors;
  int64_t count;
};
struct Lines {
  int64_t rows, n, from_pitch, to_pitch;
  bool past = false;  // the caches
  Lines joined() const {  // one row, if the next one begins at its end
    if (n != from_pitch || n != to_pitch) return *this;
    return {1, rows * n, n, n, past};
  }
};

template <class T, int N>
PLAIT_NOINLINE void sum_of_taps(const int64_t *offsets, const T *factors, const Lines &lines,
                                const T *from, T start, bool add, T *to) {
  constexpr int64_t w = kLanes<T>;
  Vec<T> factor[N];
  const T *x[N];
  for (int t = 0; t < N; t++) {
    factor[t] = splat(factors[t]);
    x[t] = from + offsets[t];
  }
  const Vec<T> first = splat(start);
  const int64_t whole = lines.n / w * w, rest = lines.n - whole;
  for (int64_t i = 0; i < lines.rows; i++) {
    const int64_t row = i * lines.from_pitch;
    T *line = to + i * lines.to_pitch;
    auto sum = [&](int64_t q, Vec<T> s) {
      for (int t = 0; t < N; t++) s = fused(factor[t], load(x[t] + row + q), s);
      return s;
    };
    if (add)
      for (int64_t q = 0; q < whole; q += w) store(line + q, sum(q, load(line + q)));
    else if (lines.past)
      for (int64_t q = 0; q < whole; q += w) store_past(line + q, sum(q, first));
    else
      for (int64_t q = 0; q < whole; q += w) store(line + q, sum(q, first));
    if (!rest) continue;
    if (!add && whole) {  // once more some of the last vector
      store(line + lines.n - w, sum(lines.n - w, first));
      continue;
    }
    T edge[w];
    store(edge, first);
    if (add) memcpy(edge, line + whole, size_t(rest) * sizeof(T));
    store(edge, sum(whole, load(edge)));
    memcpy(line + whole, edge, size_t(rest) * sizeof(T));
  }
}

template <class T>
void sum_taps(const Taps<T> &taps, const Lines &lines, const T *from, T start, T *to) {
  using Sum = void (*)(const int64_t *, const T *, const Lines &, const T *, T, bool, T *);
  static constexpr Sum kSums[] = {nullptr,           sum_of_taps<T, 1>, sum_of_taps<T, 2>,
                                  sum_of_taps<T, 3>, sum_of_taps<T, 4>, sum_of_taps<T, 5>,
                                  sum_of_taps<T, 6>, sum_of_taps<T, 7>, sum_of_taps<T, 8>,
                                  sum_of_taps<T, 9>};
  for (int64_t i = 0; i < (taps.count ? 0 : lines.rows); i++)
    for (int64_t q = 0; q < lines.n; q++) to[i * lines.to_pitch + q] = start;
  for (int64_t t = 0; t < taps.count; t += kMostTaps)
    kSums[least(taps.count - t, kMostTaps)](taps.offsets + t, taps.factors + t, lines, from, start,
                                            t > 0, to);
}

// sums[t] += the sum of g[i * to_pitch + q] * from[i * from_pitch + q + offsets[t]], in lanes
template <class T, int N>
PLAIT_NOINLINE void dots_of_taps(const int64_t *offsets, const Lines &lines, const T *from,
                                 const T *g, Vec<T> *sums) {
  constexpr int64_t w = kLanes<T>;
  Vec<T> sum[N] = {};
  const T *x[N];
  for (int t = 0; t < N; t++) x[t] = from + offsets[t];
  const int64_t whole = lines.n / w * w, rest = lines.n - whole;
  for (int64_t i = 0; i < lines.rows; i++) {
    const int64_t row = i * lines.from_pitch;
    const T *line = g + i * lines.to_pitch;
    for (int64_t q = 0; q < whole; q += w) {
      const Vec<T> factor = load(line + q);
      for (int t = 0; t < N; t++) sum[t] = fused(factor, load(x[t] + row + q), sum[t]);
    }
    if (!rest) continue;
    T edge[w] = {};
    memcpy(edge, line + whole, size_t(rest) * sizeof(T));
    for (int t = 0; t < N; t++) {
      T seen[w] = {};
      memcpy(seen, x[t] + row + whole, size_t(rest) * sizeof(T));
      sum[t] = fused(load(edge), load(seen), sum[t]);
    }
  }
  for (int t = 0; t < N; t++) sums[t] += sum[t];
}

template <class T>
void dot_taps(const int64_t *offsets, int64_t count, const Lines &lines, const T *from, const T *g,
              Vec<T> *sums) {
  using Dots = void (*)(const int64_t *, const Lines &, const T *, const T *, Vec<T> *);
  static constexpr Dots kDots[] = {nullptr,
                                   dots_of_taps<T, 1>,
                                   dots_of_taps<T, 2>,
                                   dots_of_taps<T, 3>,
                                   dots_of_taps<T, 4>,
                                   dots_of_taps<T, 5>,
                                   dots_of_taps<T, 6>,
                                   dots_of_taps<T, 7>,
                                   dots_of_taps<T, 8>,
                                   dots_of_taps<T, 9>};
  for (int64_t t = 0; t < count; t += kMostTaps)
    kDots[least(count - t, kMostTaps)](offsets + t, lines, from, g, sums + t);
}

// The planes that windows of results [0, rows) x [0, v.ow) see, after `begin` rows.
Frame seen(const Conv &v, int64_t rows, int64_t begin) {
  const int64_t reach = (v.kw - 1) * v.dw / v.sw, below = (v.kh - 1) * v.dh / v.sh;
  return {v.h, v.w, v.sh, v.sw, v.ph - begin * v.sh, v.pw, rows + below, v.ow + reach};
}

// Whether rows of results are stored past the caches: not those that other stores complete, for
// which the processor would combine nothing. Taps in several runs add to results, which are better
// near.
template <class T>
bool goes_past(int64_t rows, int64_t columns) {
  return rows * columns * int64_t(sizeof(T)) >= kPastCaches && columns % kLanes<T> == 0;
}

template <class T>
bool is_long(int64_t columns) {
  return columns >= kLongRow * kLanes<T>;
}

// Whether sums over windows take planes side by side: rows are short, or strides take them apart,
// which lanes for all planes need not do.
template <class T>
bool in_lanes(const Conv &v, int64_t pitch, int64_t planes) {
  return (v.sw > 1 && planes >= kLanes<T>) || (!is_long<T>(v.ow) && v.ow != pitch);
}

// The offsets of a window's elements in the planes that `seen` describes.
void window_offsets(const Conv &v, const Frame &f, int64_t *offsets) {
  for (int64_t i = 0; i < v.kh; i++)
    for (int64_t j = 0; j < v.kw; j++) *offsets++ = f.at(i * v.dh, j * v.dw);
}

}  // namespace

template <class T>
plait_status depthwise_forward(const plait_call *c, const Conv &v, const T *x, const T *w,
                               const DLTensor *bias, T *y) {
  const int64_t filters = v.goc(), taps = v.kh * v.kw, area = v.oh * v.ow;
  if (depthwise_rows_fit<T>(v)) return depthwise_rows_forward(c, v, x, w, bias, y);
  if (depthwise_direct_fit<T>(v)) return depthwise_direct_forward(c, v, x, w, bias, y);
  const Bands bands(v.oh, 1, v.w * v.sh, kRowsBand);
  const Frame whole = seen(v, bands.rows, 0);
  if (in_lanes<T>(v, whole.pitch, v.n * v.c)) return depthwise_lanes_forward(c, v, x, w, bias, y);
  Workspace space;
  PLAIT_TRY(space.take(c, uint64_t(taps) * sizeof(int64_t)));
  window_offsets(v, whole, space.as<int64_t>());
  const bool past = taps <= kMostTaps && goes_past<T>(v.n * v.oc * v.oh, v.ow);
  const int64_t frame_size = rounded(whole.size());
  const int64_t some = v.activation ? most(kMade / v.ow, 1) : bands.rows;
  const bool beside = past && v.activation;  // results are made in a buffer
  return with_zeros<T>(
      c, v.n * v.c * bands.count, kChunk / (bands.rows * v.ow * filters) + 1,
      frame_size + (beside ? some * v.ow : 0), [&](int64_t begin, int64_t end, T *frame) {
        T *result = frame + frame_size;
        for (int64_t u = begin; u < end; u++) {
          const int64_t plane = u / bands.count, first = u % bands.count * bands.rows;
          const int64_t rows = least(bands.rows, v.oh - first), pitch = whole.pitch;
          fill(seen(v, bands.rows, first), x + plane * v.h * v.w, frame);
          for (int64_t m = 0; m < filters; m++) {
            const int64_t o = plane % v.c * filters + m;
            const T start = bias ? data<T>(bias)[o * bias->strides[0]] : T(0);
            const Taps<T> list{space.as<int64_t>(), w + o * taps, taps};
            T *own = y + (plane * filters + m) * area + first * v.ow;
            for (int64_t i = 0; i < rows; i += some) {
              const int64_t high = least(some, rows - i), n = high * v.ow;
              T *to = beside ? result : own + i * v.ow;
              sum_taps(list, Lines{high, v.ow, pitch, v.ow, past && !beside}.joined(),
                       frame + i * pitch, start, to);
              v.activation(to, n);
              if (beside) copy_row_past(own + i * v.ow, result, n);
            }
          }
        }
      });
}

namespace {

template <class T>
PLAIT_INLINE void store_some(T *to, Vec<T> v, int64_t n, bool past) {
  if (n < kLanes<T>) {
    T edge[kLanes<T>];
    store(edge, v);
    return copy_line(to, edge, n);
  }
  past ? store_past(to, v) : store(to, v);
}

// One row of the derivative by the input from its parts, one for each residue of the stride.
template <class T>
void join_row(const T *parts, int64_t apart, int64_t step, int64_t n, bool past, T *to) {
  if (step == 1) return copy_line(to, parts, n);
  int64_t i = 0;
  if constexpr (sizeof(T) == 4)
    for (; step == 2 && 2 * i < n; i += kLanes<T>) {
      const Vec<T> even = load(parts + i), odd = load(parts + apart + i);
      const Vec<T> low = shuffled<0, 8, 1, 9, 2, 10, 3, 11>(even, odd);
      const Vec<T> high = shuffled<4, 12, 5, 13, 6, 14, 7, 15>(even, odd);
      store_some(to + 2 * i, low, n - 2 * i, past);
      if (2 * i + kLanes<T> < n)
        store_some(to + 2 * i + kLanes<T>, high, n - 2 * i - kLanes<T>, past);
    }
  for (; i * step < n; i++)
    for (int64_t k = 0; k < step && i * step + k < n; k++) to[i * step + k] = parts[k * apart + i];
}

}  // namespace

template <class T>
plait_status depthwise_backward_input(const plait_call *c, const Conv &v, const T *gy, const T *w,
                                      T *gx) {
  if (depthwise_direct_backward_fit<T>(v))  // shorter rows are summed in another order
    return depthwise_rows_fit<T>(v) ? depthwise_rows_backward_input(c, v, gy, w, gx)
                                    : depthwise_direct_backward_input(c, v, gy, w, gx);
  const int64_t filters = v.goc(), own = filters * v.kh * v.kw, area = v.oh * v.ow;
  const Bands bands(v.h, v.sh, v.w, kRowsBand);
  const Frame whole = covering(v, bands.rows, 0);
  const int64_t columns = ceil_div(v.w, v.sw), pitch = whole.pitch;
  if (!is_long<T>(columns) && columns != pitch)
    return depthwise_lanes_backward_input(c, v, gy, w, gx);
  const bool direct = v.sw == 1;
  const int64_t part_rows = bands.rows / v.sh, part_pitch = rounded(columns);
  const int64_t frame_size = rounded(whole.size()), apart = rounded(part_rows * part_pitch + 16);
  DepthwiseResidues list(v);
  PLAIT_TRY(list.find(c, v, whole, frame_size));
  const int64_t parts = direct ? 0 : list.acrosses * apart;
  const int64_t work = bands.rows * v.w + filters * area / bands.count;
  const bool past = own <= kMostTaps && goes_past<T>(v.n * v.c * v.h, v.w);
  return with_zeros<T>(
      c, v.n * v.c * bands.count, 4 * kChunk / work + 1, filters * frame_size + parts + own,
      [&](int64_t begin, int64_t end, T *frame) {
        T *result = frame + filters * frame_size, *factors = result + parts;
        for (int64_t u = begin; u < end; u++) {
          const int64_t plane = u / bands.count, first = u % bands.count * bands.rows;
          const int64_t height = least(bands.rows, v.h - first);
          const Frame f = covering(v, bands.rows, first);
          T *to = gx + (plane * v.h + first) * v.w;
          for (int64_t m = 0; m < filters; m++)
            fill(f, gy + (plane * filters + m) * area, frame + m * frame_size);
          int64_t all = 0;
          for (int64_t r = 0; r < list.downs * list.acrosses; r++)
            for (int64_t k = 0; k < list.counts[r]; k++, all++)
              factors[all] = w[plane % v.c * own + list.elements[all]];
          all = 0;
          for (int64_t down = 0; down < list.downs; down++) {
            const int64_t rows = ceil_div(height - down, v.sh);
            for (int64_t k = 0; k < list.acrosses; k++) {
              const int64_t count = list.counts[down * list.acrosses + k];
              const Taps<T> taps{list.offsets + all, factors + all, count};
              const Lines lines{rows, ceil_div(v.w - k, v.sw), pitch,
                                direct ? v.w * v.sh : part_pitch, past && direct};
              all += count;
              if (rows > 0)
                sum_taps(taps, lines.joined(), frame, T(0),
                         direct ? to + down * v.w : result + k * apart);
            }
            for (int64_t i = 0; i < (direct ? 0 : rows); i++)
              join_row(result + i * part_pitch, apart, v.sw, v.w, past,
                       to + (down + i * v.sh) * v.w);
          }
        }
      });
}

template <class T>
plait_status depthwise_backward_weight(const plait_call *c, const Conv &v, const T *gy, const T *x,
                                       T *gw) {
  const int64_t filters = v.goc(), taps = v.kh * v.kw, area = v.oh * v.ow;
  const Bands bands(v.oh, 1, v.w * v.sh, kRowsBand);
  const Frame whole = seen(v, bands.rows, 0);
  if (in_lanes<T>(v, whole.pitch, v.c)) return depthwise_lanes_backward_weight(c, v, gy, x, gw);
  // Neighbouring channels are taken together, image after image, as far as these are small.
  const int64_t own = filters * taps, beside = most(least(kChunk / (area * filters), 32), 1);
  const int64_t sums_room = beside * own * kLanes<T>, pitch = whole.pitch;
  Workspace offsets;
  PLAIT_TRY(offsets.take(c, uint64_t(taps) * sizeof(int64_t)));
  window_offsets(v, whole, offsets.as<int64_t>());
  return with_zeros<T>(
      c, ceil_div(v.c, beside), 1, sums_room + whole.size(), [&](int64_t block, int64_t, T *space) {
        Vec<T> *sums = reinterpret_cast<Vec<T> *>(space);
        T *frame = space + sums_room;
        const int64_t channel = block * beside, channels = least(beside, v.c - channel);
        for (int64_t u = 0; u < v.n * channels * bands.count; u++) {
          const int64_t k = u / bands.count % channels;
          const int64_t plane = u / bands.count / channels * v.c + channel + k;
          const int64_t first = u % bands.count * bands.rows;
          const int64_t rows = least(bands.rows, v.oh - first);
          fill(seen(v, bands.rows, first), x + plane * v.h * v.w, frame);
          for (int64_t m = 0; m < filters; m++)
            dot_taps(offsets.as<int64_t>(), taps, Lines{rows, v.ow, pitch, v.ow}.joined(), frame,
                     gy + (plane * filters + m) * area + first * v.ow,
                     sums + (k * filters + m) * taps);
        }
        for (int64_t i = 0; i < channels * own; i++) gw[channel * own + i] = sum_of<T>(sums[i]);
      });
}

bool depthwise_fit(const Conv &v) {
  if (v.gc() != 1 || v.groups < 2) return false;
  auto area = [](double rows, double columns) { return rows * columns; };
  const double high = double(v.kh) * double(v.dh), broad = double(v.kw) * double(v.dw);
  const double sh = double(v.sh), sw = double(v.sw);
  const double seen = area(double(v.oh) * sh + high + sh, double(v.ow) * sw + broad + sw);
  const double covering =
      area(double(v.h + v.ph) + high + 2 * sh, double(v.w + v.pw) + broad + 2 * sw);
  const double own = area(double(v.h), double(v.w)) + area(double(v.oh), double(v.ow));
  return seen + covering <= 16 * own + 65536;
}

#define PLAIT_INSTANCE(T)                                                                         \
  template plait_status depthwise_forward(const plait_call *, const Conv &, const T *, const T *, \
                                          const DLTensor *, T *);                                 \
  template plait_status depthwise_backward_input(const plait_call *, const Conv &, const T *,     \
                                                 const T *, T *);                                 \
  template plait_status depthwise_backward_weight(const plait_call *, const Conv &, const T *,    \
                                                  const T *, T *);
PLAIT_INSTANCE(float)
PLAIT_INSTANCE(double)

}  // namespace plait::core
