#include "convolution/convolution_depthwise.h"

namespace plait::core {
namespace {

constexpr int64_t kMostTaps = 9;  // whose factors, or sums, fit into the registers
constexpr int64_t kBand = 1 << 15;  // elements of a plane that are taken at once
constexpr int64_t kLongRow = 4;  // vectors of a row that pay for a sum of its own

int64_t floor_div(int64_t a, int64_t b) { return a < 0 ? -ceil_div(-a, b) : a / b; }
int64_t least(int64_t a, int64_t b) { return a < b ? a : b; }
int64_t most(int64_t a, int64_t b) { return a > b ? a : b; }

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

// Rows of a plane inside of zeros. With strides, its rows and columns are dealt out to down x
// across parts, so that the elements that neighbouring results see at one place of the window are
// neighbours. Element (0, 0) of the plane is at (top, left), which may lie outside.
struct Frame {
  int64_t h, w;  // of the plane
  int64_t down, across;  // the strides, as many parts
  int64_t top, left;
  int64_t rows, pitch;  // of each part
  int64_t part() const { return rows * pitch; }
  int64_t size() const { return down * across * part() + 16; }  // and what vectors read beyond
  int64_t at(int64_t i, int64_t j) const {
    return (i % down * across + j % across) * part() + i / down * pitch + j / across;
  }
};

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
      for (int t = 0; t < N; t++) s += factor[t] * load(x[t] + row + q);
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
      for (int t = 0; t < N; t++) sum[t] += factor * load(x[t] + row + q);
    }
    if (!rest) continue;
    T edge[w] = {};
    memcpy(edge, line + whole, size_t(rest) * sizeof(T));
    for (int t = 0; t < N; t++) {
      T seen[w] = {};
      memcpy(seen, x[t] + row + whole, size_t(rest) * sizeof(T));
      sum[t] += load(edge) * load(seen);
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

// Result rows of a plane are taken in bands of equal heights, which are multiples of `step`.
struct Bands {
  int64_t rows, count;
  Bands(int64_t height, int64_t step, int64_t row) {
    rows = most(kBand / (row + 1) / step, 1) * step;
    rows = ceil_div(ceil_div(height, ceil_div(height, rows)), step) * step;
    count = ceil_div(height, rows);
  }
};

// The planes that windows of results [0, rows) x [0, v.ow) see, after `begin` rows.
Frame seen(const Conv &v, int64_t rows, int64_t begin) {
  const int64_t reach = (v.kw - 1) * v.dw / v.sw, below = (v.kh - 1) * v.dh / v.sh;
  return {v.h, v.w, v.sh, v.sw, v.ph - begin * v.sh, v.pw, rows + below, v.ow + reach};
}

// The planes of the gradient that windows cover elements [0, rows) x [0, v.w) with, after `begin`
// rows.
Frame covering(const Conv &v, int64_t rows, int64_t begin) {
  const int64_t up = floor_div(v.ph + begin - (v.kh - 1) * v.dh, v.sh);
  const int64_t left = floor_div(v.pw - (v.kw - 1) * v.dw, v.sw);
  const int64_t below = floor_div(v.ph + begin + rows - 1, v.sh) + 1;
  const int64_t right = floor_div(v.pw + v.w - 1, v.sw) + 1;
  return {v.oh, v.ow, 1, 1, -up, -left, below - up, right - left};
}

// Scratch memory of T for `size` elements, zeros, for each chunk of about `grain` of n units.
template <class T, class F>
plait_status with_zeros(const plait_call *c, int64_t n, int64_t grain, int64_t size, F &&f) {
  const uint64_t nbytes = uint64_t(size) * sizeof(T);
  bool failed = false;
  parallel_ranges(c, n, grain, [&](int64_t begin, int64_t end) {
    Workspace space;
    if (!space.try_take(nbytes)) return __atomic_store_n(&failed, true, __ATOMIC_RELAXED);
    memset(space.as<T>(), 0, size_t(nbytes));
    f(begin, end, space.as<T>());
    finish_stores();
  });
  return failed ? Workspace::out_of_memory(c, nbytes) : PLAIT_OK;
}

constexpr int64_t rounded(int64_t n) { return (n + 15) / 16 * 16; }  // whole cache lines
template <class T>
constexpr int64_t whole_vectors(int64_t n) {
  return ceil_div(n, kLanes<T>) * kLanes<T>;
}

template <class T>
bool is_long(int64_t columns) {
  return columns >= kLongRow * kLanes<T>;
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
  const Bands bands(v.oh, 1, v.w * v.sh);
  const Frame whole = seen(v, bands.rows, 0);
  const bool direct = is_long<T>(v.ow) || whole.pitch == v.ow;
  const int64_t frame_size = rounded(whole.size()), out = direct ? 0 : rounded(whole.part());
  Workspace space;
  PLAIT_TRY(space.take(c, uint64_t(taps) * sizeof(int64_t)));
  window_offsets(v, whole, space.as<int64_t>());
  // taps in several runs add to results, which are better near
  const bool past = v.n * v.oc * area * int64_t(sizeof(T)) >= kPastCaches && taps <= kMostTaps;
  return with_zeros<T>(
      c, v.n * v.c * bands.count, 4 * kChunk / (bands.rows * v.ow * filters) + 1, frame_size + out,
      [&](int64_t begin, int64_t end, T *frame) {
        T *made = frame + frame_size;
        for (int64_t u = begin; u < end; u++) {
          const int64_t plane = u / bands.count, first = u % bands.count * bands.rows;
          const int64_t rows = least(bands.rows, v.oh - first), pitch = whole.pitch;
          fill(seen(v, bands.rows, first), x + plane * v.h * v.w, frame);
          for (int64_t m = 0; m < filters; m++) {
            const int64_t o = plane % v.c * filters + m;
            const T start = bias ? data<T>(bias)[o * bias->strides[0]] : T(0);
            const Taps<T> list{space.as<int64_t>(), w + o * taps, taps};
            T *to = y + (plane * filters + m) * area + first * v.ow;
            if (direct) {
              sum_taps(list, Lines{rows, v.ow, pitch, v.ow, past}, frame, start, to);
              continue;
            }
            const int64_t n = whole_vectors<T>((rows - 1) * pitch + v.ow);
            sum_taps(list, Lines{1, n, 0, 0}, frame, start, made);
            for (int64_t i = 0; i < rows; i++) copy_line(to + i * v.ow, made + i * pitch, v.ow);
          }
        }
      });
}

namespace {

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
      T edge[2 * kLanes<T>], *at = 2 * (i + kLanes<T>) > n ? edge : to + 2 * i;
      if (past && at != edge) {
        store_past(at, low);
        store_past(at + kLanes<T>, high);
        continue;
      }
      store(at, low);
      store(at + kLanes<T>, high);
      if (at == edge) copy_line(to + 2 * i, edge, n - 2 * i);
    }
  for (; i * step < n; i++)
    for (int64_t k = 0; k < step && i * step + k < n; k++) to[i * step + k] = parts[k * apart + i];
}

// What the rows and columns of each residue of the stride see of `filters` planes, `apart` elements
// from one to the next: an offset of the planes and an element of the filters each.
struct Residues {
  int64_t *counts, *offsets, *elements;
  void find(const Conv &v, const Frame &f, int64_t apart, int64_t downs, int64_t acrosses) {
    int64_t all = 0;
    for (int64_t r = 0; r < downs * acrosses; r++) {
      counts[r] = 0;
      for (int64_t e = 0; e < v.goc() * v.kh * v.kw; e++) {
        const int64_t m = e / (v.kh * v.kw), i = e / v.kw % v.kh, j = e % v.kw;
        const int64_t y = r / acrosses + v.ph - i * v.dh, x = r % acrosses + v.pw - j * v.dw;
        const int64_t row = floor_div(y, v.sh), column = floor_div(x, v.sw);
        if (row * v.sh != y || column * v.sw != x) continue;
        offsets[all] = m * apart + (row + f.top) * f.pitch + column + f.left;
        elements[all++] = e;
        counts[r]++;
      }
    }
  }
};

}  // namespace

template <class T>
plait_status depthwise_backward_input(const plait_call *c, const Conv &v, const T *gy, const T *w,
                                      T *gx) {
  const int64_t filters = v.goc(), own = filters * v.kh * v.kw, area = v.oh * v.ow;
  const Bands bands(v.h, v.sh, v.w);
  const Frame whole = covering(v, bands.rows, 0);
  const int64_t columns = ceil_div(v.w, v.sw), pitch = whole.pitch;
  const int64_t downs = least(v.sh, v.h), acrosses = least(v.sw, v.w), residues = downs * acrosses;
  const bool by_rows = is_long<T>(columns) || columns == pitch, direct = by_rows && v.sw == 1;
  const int64_t part_rows = bands.rows / v.sh, part_pitch = by_rows ? rounded(columns) : pitch;
  const int64_t frame_size = rounded(whole.size()), apart = rounded(part_rows * part_pitch + 16);
  const int64_t parts = direct ? 0 : acrosses * apart;
  Workspace space;
  PLAIT_TRY(space.take(c, uint64_t(residues + 2 * own) * sizeof(int64_t)));
  Residues list{space.as<int64_t>(), space.as<int64_t>() + residues,
                space.as<int64_t>() + residues + own};
  list.find(v, whole, frame_size, downs, acrosses);
  const int64_t work = bands.rows * v.w + filters * area / bands.count;
  // taps in several runs add to results, which are better near
  const bool past = v.n * v.c * v.h * v.w * int64_t(sizeof(T)) >= kPastCaches && own <= kMostTaps;
  return with_zeros<T>(
      c, v.n * v.c * bands.count, 4 * kChunk / work + 1, filters * frame_size + parts + own,
      [&](int64_t begin, int64_t end, T *frame) {
        T *made = frame + filters * frame_size, *factors = made + parts;
        for (int64_t u = begin; u < end; u++) {
          const int64_t plane = u / bands.count, first = u % bands.count * bands.rows;
          const int64_t height = least(bands.rows, v.h - first);
          const Frame f = covering(v, bands.rows, first);
          T *to = gx + (plane * v.h + first) * v.w;
          for (int64_t m = 0; m < filters; m++)
            fill(f, gy + (plane * filters + m) * area, frame + m * frame_size);
          int64_t all = 0;
          for (int64_t r = 0; r < residues; r++)
            for (int64_t k = 0; k < list.counts[r]; k++, all++)
              factors[all] = w[plane % v.c * own + list.elements[all]];
          all = 0;
          for (int64_t down = 0; down < downs; down++) {
            const int64_t rows = ceil_div(height - down, v.sh);
            for (int64_t k = 0; k < acrosses; k++) {
              const int64_t count = list.counts[down * acrosses + k], n = ceil_div(v.w - k, v.sw);
              const Taps<T> taps{list.offsets + all, factors + all, count};
              all += count;
              if (rows <= 0) continue;
              const int64_t flat = whole_vectors<T>((rows - 1) * pitch + n);
              const Lines lines =
                  by_rows ? Lines{rows, n, pitch, direct ? v.w * v.sh : part_pitch, past && direct}
                          : Lines{1, flat, 0, 0};
              sum_taps(taps, lines, frame, T(0), direct ? to + down * v.w : made + k * apart);
            }
            for (int64_t i = 0; i < (direct ? 0 : rows); i++)
              join_row(made + i * part_pitch, apart, v.sw, v.w, past, to + (down + i * v.sh) * v.w);
          }
        }
      });
}

template <class T>
plait_status depthwise_backward_weight(const plait_call *c, const Conv &v, const T *gy, const T *x,
                                       T *gw) {
  const int64_t filters = v.goc(), taps = v.kh * v.kw, area = v.oh * v.ow;
  const Bands bands(v.oh, 1, v.w * v.sh);
  const Frame whole = seen(v, bands.rows, 0);
  const bool direct = is_long<T>(v.ow) || whole.pitch == v.ow;
  const int64_t frame_size = rounded(whole.size()), out = direct ? 0 : rounded(whole.part());
  // Neighbouring channels are taken together, image after image, as far as these are small.
  const int64_t own = filters * taps, beside = most(least(kChunk / (area * filters), 32), 1);
  const int64_t sums_room = beside * own * kLanes<T>, pitch = whole.pitch;
  Workspace offsets;
  PLAIT_TRY(offsets.take(c, uint64_t(taps) * sizeof(int64_t)));
  window_offsets(v, whole, offsets.as<int64_t>());
  return with_zeros<T>(
      c, ceil_div(v.c, beside), 1, sums_room + frame_size + out,
      [&](int64_t block, int64_t, T *space) {
        Vec<T> *sums = reinterpret_cast<Vec<T> *>(space);
        T *frame = space + sums_room, *gradient = frame + frame_size;
        const int64_t channel = block * beside, channels = least(beside, v.c - channel);
        for (int64_t u = 0; u < v.n * channels * bands.count; u++) {
          const int64_t k = u / bands.count % channels;
          const int64_t plane = u / bands.count / channels * v.c + channel + k;
          const int64_t first = u % bands.count * bands.rows;
          const int64_t rows = least(bands.rows, v.oh - first);
          fill(seen(v, bands.rows, first), x + plane * v.h * v.w, frame);
          for (int64_t m = 0; m < filters; m++) {
            const T *g = gy + (plane * filters + m) * area + first * v.ow;
            Lines lines{rows, v.ow, pitch, v.ow};
            if (!direct) {
              for (int64_t i = 0; i < rows; i++)
                copy_line(gradient + i * pitch, g + i * v.ow, v.ow);
              const int64_t end = (rows - 1) * pitch + v.ow, n = whole_vectors<T>(end);
              memset(gradient + end, 0, size_t(least(n, whole.part()) - end) * sizeof(T));
              lines = Lines{1, n, 0, 0};
              g = gradient;
            }
            dot_taps(offsets.as<int64_t>(), taps, lines, frame, g, sums + (k * filters + m) * taps);
          }
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
