#include "convolution/convolution_channels.h"

#include "kernel/integers.h"
#include "kernel/packed_weight.h"

#include "linalg/tile.h"

namespace plait::core {

template <class T>
void to_pixels(const Frame &f, const T *image, T *to, T *beside) {
  const int64_t c = f.channels, pitch = f.width * c, line = f.w * c;
  const int64_t above = f.first < 0 ? (-f.first < f.rows ? -f.first : f.rows) : 0;
  const int64_t in = f.h - f.first < f.rows ? f.h - f.first : f.rows, end = in > above ? in : above;
  auto clear = [](T *from, int64_t n) { memset(from, 0, size_t(n) * sizeof(T)); };
  clear(to, above * pitch);
  clear(to + end * pitch, (f.rows - end) * pitch);
  if (end == above) return;
  const T *from = image + (f.first + above) * f.w;
  if (f.width == f.w)
    return transposed(to + above * pitch, c, from, f.h * f.w, c, (end - above) * f.w);
  const bool direct = c == 1 || f.w % kLanes<T> == 0;  // rows of whole vectors
  if (!direct) transposed(beside, c, from, f.h * f.w, c, (end - above) * f.w);
  for (int64_t i = above; i < end; i++) {
    T *row = to + i * pitch, *inner = row + f.left * c;
    clear(row, f.left * c);
    clear(inner + line, pitch - line - f.left * c);
    if (direct)
      transposed(inner, c, from + (i - above) * f.w, f.h * f.w, c, f.w);
    else
      memcpy(inner, beside + (i - above) * line, size_t(line) * sizeof(T));
  }
}

namespace {

// elements of a band of rows and its results, which stay in the cache
constexpr int64_t kBand = 96 << 10;
constexpr int64_t kUnits = 16;  // parallel units that are wanted for few threads
constexpr int64_t kResults = 4 << 10;  // elements that are turned at once
constexpr int64_t kMostPanels = 2;   // channels that go through an image together

// The elements of an image under a window: kh rows of kw pixels, `row` and `column` elements apart.
struct Window {
  int64_t kh, kw, row, column, depth;
};

// m neighbouring results of n channels.
template <class T>
void window_sums(const Window &q, int64_t m, int64_t n, Matrix<T> a, Panels<T> weights, T *to,
                 int64_t ldc, bool add) {
  if (q.column == q.depth || q.kw == 1 || q.kh == 0) {
    const int64_t k = q.kw * q.depth;
    return multiply_rounds(m, n, k, {q.kh, q.row, k * kPanel<T>}, {1, 0, 0}, a, weights, to, ldc,
                           add);
  }
  for (int64_t i = 0; i < q.kh; i++) {
    multiply_rounds(m, n, q.depth, {q.kw, q.column, q.depth * kPanel<T>}, {1, 0, 0},
                    a.at(0, i * q.row), weights, to, ldc, add || i > 0);
    weights.data += q.kw * q.depth * kPanel<T>;
  }
}

int64_t band_rows(int64_t rows, int64_t step, int64_t in_row, int64_t out_row) {
  int64_t n = kBand / (in_row * step + out_row + 1);
  if (n > rows) n = rows;
  n = n < 1 ? 1 : n;
  return ceil_div(rows, ceil_div(rows, n));
}

// Runs f(panel, columns) over the panels of `columns` channels.
template <class T, class F>
void each_panels(int64_t columns, F &&f) {
  constexpr int64_t most = kMostPanels * kPanel<T>;
  for (int64_t j = 0; j < columns; j += most) f(j, columns - j < most ? columns - j : most);
}

template <class T>
int64_t together(int64_t columns) {  // channels that go through an image together
  return columns < kMostPanels * kPanel<T> ? columns : kMostPanels * kPanel<T>;
}

template <class T>
constexpr int64_t whole_panels(int64_t n) {
  return ceil_div(n, kPanel<T>) * kPanel<T>;
}

// The convolution itself.

// [group][panel][kh][kw][channel][filters of a panel]
template <class T>
void pack_filters(const plait_call *c, const Conv &v, const T *w, T *to) {
  const int64_t taps = v.kh * v.kw, panels = ceil_div(v.goc(), kPanel<T>), size = v.patch();
  parallel_ranges(c, v.groups * panels, kChunk / (size * kPanel<T>), [&](int64_t i, int64_t end) {
    for (; i < end; i++) {
      const int64_t first = i % panels * kPanel<T>;
      const int64_t wide = v.goc() - first < kPanel<T> ? v.goc() - first : kPanel<T>;
      T *panel = to + i * size * kPanel<T>;
      if (wide < kPanel<T>) memset(panel, 0, size_t(size * kPanel<T>) * sizeof(T));
      const T *from = w + (i / panels * v.goc() + first) * size;
      for (int64_t k = 0; k < v.gc(); k++)
        transposed(panel + k * kPanel<T>, v.gc() * kPanel<T>, from + k * taps, size, wide, taps);
    }
  });
}

// The derivative by the input.

// One dimension of a window of k elements, `stride` and `dilation`, of which one is 1. The input's
// elements of a residue see `taps` elements, the last of them first.
struct Residues {
  int64_t k, stride, dilation, padding;
  int64_t taps(int64_t residue) const {
    return residue < k ? (stride == 1 ? k : ceil_div(k - residue, stride)) : 0;
  }
  int64_t before(int64_t residue) const {  // taps of smaller residues
    const int64_t rest = k % stride;
    return residue * (k / stride) + (residue < rest ? residue : rest);
  }
  int64_t of(int64_t at) const { return (at + padding) % stride; }
  // The first of the results that element `at` contributes to; it may lie outside.
  int64_t first(int64_t at) const {
    return (at + padding) / stride - (taps(of(at)) - 1) * dilation;
  }
  int64_t least(int64_t at) const {  // the first one for elements from `at` on
    return (at + padding) / stride - (taps(0) - 1) * dilation;
  }
  int64_t last(int64_t at) const { return (at + padding) / stride; }
};

// Offsets of the window's elements, residue after residue, each window reversed.
void turned_offsets(const Conv &v, const Residues &rows, const Residues &columns, int64_t *offset) {
  for (int64_t i = 0; i < v.kh; i++) {
    const int64_t down = i % v.sh, high = rows.taps(down);
    for (int64_t j = 0; j < v.kw; j++) {
      const int64_t across = j % v.sw, broad = columns.taps(across);
      *offset++ = rows.before(down) * v.kw + high * columns.before(across) +
                  (high - 1 - i / v.sh) * broad + broad - 1 - j / v.sw;
    }
  }
}

// [group][panel][element of the window][filter][channels of a panel]
template <class T>
plait_status pack_turned(const plait_call *c, const Conv &v, const int64_t *offset, const T *w,
                         T *to) {
  const int64_t taps = v.kh * v.kw, panels = ceil_div(v.gc(), kPanel<T>), depth = v.goc();
  const int64_t size = taps * depth * kPanel<T>, tile = taps * kPanel<T>;
  return with_scratch<T>(c, v.groups * panels, kChunk / size, tile, [&](int64_t t, T *turned) {
    const int64_t first = t % panels * kPanel<T>;
    const int64_t wide = v.gc() - first < kPanel<T> ? v.gc() - first : kPanel<T>;
    if (wide < kPanel<T>) memset(turned, 0, size_t(tile) * sizeof(T));
    const T *from = w + (t / panels * depth * v.gc() + first) * taps;
    for (int64_t o = 0; o < depth; o++, from += v.gc() * taps) {
      T *panel = to + t * size + o * kPanel<T>;
      transposed(turned, kPanel<T>, from, taps, wide, taps);
      for (int64_t i = 0; i < taps; i++)
        memcpy(panel + offset[i] * depth * kPanel<T>, turned + i * kPanel<T>,
               kPanel<T> * sizeof(T));
    }
  });
}

// Adds the sums of a row of one group's input: all its residues.
template <class T>
void input_row(const Conv &v, const Residues &rows, const Residues &columns, int64_t at, int64_t n,
               const T *row, int64_t pitch, int64_t left, Panels<T> weights, T *to, int64_t ldc) {
  const int64_t depth = v.goc(), down = rows.of(at), high = rows.taps(down);
  for (int64_t x = 0; x < v.sw && x < v.w; x++) {
    const int64_t across = columns.of(x), broad = columns.taps(across);
    const int64_t slot = rows.before(down) * v.kw + high * columns.before(across);
    const Window q{broad ? high : 0, broad, pitch * v.dh, depth * v.dw, depth};
    Panels<T> taps = weights;
    taps.data += slot * depth * kPanel<T>;
    const T *from = broad ? row + (columns.first(x) + left) * depth : row;
    window_sums(q, ceil_div(v.w - x, v.sw), n, Matrix<T>{from, depth, 1}, taps, to + x * ldc,
                v.sw * ldc, true);
  }
}

}  // namespace

template <class T>
plait_status channels_forward(const plait_call *c, const Conv &v, const T *x, const T *w,
                              const DLTensor *bias, T *y) {
  const int64_t panels = whole_panels<T>(v.goc()), size = v.patch() * panels;
  PackedWeight packed;
  PLAIT_TRY(packed.take(c, 1, PackedForm::ChannelFilters, uint64_t(v.groups * size) * sizeof(T),
                        [&](void *to) {
                          pack_filters(c, v, w, static_cast<T *>(to));
                          return PLAIT_OK;
                        }));
  const T *weights = packed.as<T>();
  const int64_t reach = (v.ow - 1) * v.sw + (v.kw - 1) * v.dw + 1, own = v.w + v.pw;
  const int64_t width = reach > own ? reach : own, pitch = width * v.gc();
  const int64_t line = v.ow * together<T>(panels), area = v.oh * v.ow;
  const int64_t enough = ceil_div(v.oh, ceil_div(units_wanted(kUnits), v.n * v.groups));
  const int64_t rows = least(band_rows(v.oh, v.sh, pitch, line), enough);
  const int64_t bands = ceil_div(v.oh, rows);
  const int64_t in_rows = (rows - 1) * v.sh + (v.kh - 1) * v.dh + 1;
  // Results of a few rows, which stay in the first-level cache, are turned and stored.
  const int64_t some = least(most(kResults / line, 1), rows), most_positions = some * v.ow;
  const int64_t turned_pitch = ceil_div(most_positions, kLanes<T>) * kLanes<T>;
  const int64_t out = (most_positions + turned_pitch) * together<T>(panels);
  const int64_t beside = in_rows * v.w * v.gc(), room = in_rows * pitch;
  const int64_t step = bias ? bias->strides[0] : 0;
  const Window q{v.kh, v.kw, v.dh * pitch, v.dw * v.gc(), v.gc()};
  return with_scratch<T>(
      c, v.n * v.groups * bands, grain_for(v, rows * v.ow), room + (beside > out ? beside : out),
      [&](int64_t t, T *pixels) {
        const int64_t image = t / bands, begin = t % bands * rows, group = image % v.groups;
        const int64_t n = v.oh - begin < rows ? v.oh - begin : rows;
        Frame frame{v.gc(), v.h, v.w, begin * v.sh - v.ph, in_rows, v.pw, width};
        frame.rows = (n - 1) * v.sh + (v.kh - 1) * v.dh + 1;
        T *result = pixels + room, *turned = result + most_positions * together<T>(panels);
        to_pixels(frame, x + image * v.gc() * v.h * v.w, pixels, result);
        each_panels<T>(panels, [&](int64_t j, int64_t columns) {
          const T *of = weights + group * size + j * v.patch();
          const int64_t channel = group * v.goc() + j, channels = least(v.goc() - j, columns);
          const T *shift = bias ? data<T>(bias) + channel * step : nullptr;
          for (int64_t i = 0; i < n; i += some) {
            const int64_t high = least(some, n - i), positions = high * v.ow;
            for (int64_t r = 0; r < high; r++)
              window_sums(
                  q, v.ow, columns, Matrix<T>{pixels + (i + r) * v.sh * pitch, v.sw * v.gc(), 1},
                  Panels<T>::packed(of, v.patch()), result + r * v.ow * columns, columns, false);
            transposed(turned, turned_pitch, result, columns, positions, channels);
            T *to = y + (image * v.goc() + j) * area + (begin + i) * v.ow;
            const T *added = v.residual ? static_cast<const T *>(v.residual) + (to - y) : nullptr;
            v.activation.store(
                {channels, positions, turned, turned_pitch, to, area, shift, step, added});
          }
        });
      });
}

template <class T>
plait_status channels_backward_input(const plait_call *c, const Conv &v, const T *gy, const T *w,
                                     T *gx) {
  const Residues down{v.kh, v.sh, v.dh, v.ph}, across{v.kw, v.sw, v.dw, v.pw};
  const int64_t panels = whole_panels<T>(v.gc()), taps = v.kh * v.kw, depth = v.goc();
  const int64_t size = taps * depth * panels;
  Workspace space, offsets;
  PLAIT_TRY(space.take(c, uint64_t(v.groups * size) * sizeof(T)));
  PLAIT_TRY(offsets.take(c, uint64_t(taps) * sizeof(int64_t)));
  T *weights = space.as<T>();
  turned_offsets(v, down, across, offsets.as<int64_t>());
  PLAIT_TRY(pack_turned(c, v, offsets.as<int64_t>(), w, weights));
  const int64_t least = across.least(0), left = least < 0 ? -least : 0;
  const int64_t most = across.last(v.w - 1) + 1, width = left + (most > v.ow ? most : v.ow);
  const int64_t pitch = width * depth, line = v.w * together<T>(panels), area = v.h * v.w;
  const int64_t rows = band_rows(v.h, 1, pitch / v.sh, line), bands = ceil_div(v.h, rows);
  const int64_t in_rows = (rows - 1) / v.sh + 2 + (down.taps(0) - 1) * v.dh;
  const int64_t beside = in_rows * v.ow * depth, out = rows * line, room = in_rows * pitch;
  return with_scratch<T>(
      c, v.n * v.groups * bands, grain_for(v, rows * v.w / (v.sh * v.sw) + 1),
      room + (beside > out ? beside : out), [&](int64_t t, T *pixels) {
        const int64_t image = t / bands, begin = t % bands * rows, group = image % v.groups;
        const int64_t n = v.h - begin < rows ? v.h - begin : rows;
        Frame frame{depth, v.oh, v.ow, down.least(begin), 0, left, width};
        frame.rows = down.last(begin + n - 1) - frame.first + 1;
        T *result = pixels + room, *to = gx + image * v.gc() * area + begin * v.w;
        to_pixels(frame, gy + image * depth * v.oh * v.ow, pixels, result);
        each_panels<T>(panels, [&](int64_t j, int64_t columns) {
          const T *of = weights + group * size + j * taps * depth;
          memset(result, 0, size_t(n * v.w * columns) * sizeof(T));
          for (int64_t i = 0; i < n; i++) {
            const int64_t y = begin + i;
            const bool any = down.taps(down.of(y)) > 0;
            const T *row = pixels + (any ? down.first(y) - frame.first : 0) * pitch;
            input_row(v, down, across, y, columns, row, pitch, left,
                      Panels<T>::packed(of, taps * depth), result + i * v.w * columns, columns);
          }
          transposed(to + j * area, area, result, columns, n * v.w,
                     v.gc() - j < columns ? v.gc() - j : columns);
        });
      });
}

bool channels_border_fit(const Conv &v) {  // the padding's zeros are stored too
  const double whole = double(v.h + 2 * v.ph) * double(v.w + 2 * v.pw);
  return whole <= 8 * (double(v.h) * double(v.w) + double(v.oh) * double(v.ow)) + 4096;
}
bool channels_forward_fit(const Conv &v) {
  return v.goc() >= 12 && v.gc() * v.kw >= 4 && channels_border_fit(v);
}
bool channels_input_fit(const Conv &v) {
  const bool one = (v.sh == 1 || v.dh == 1) && (v.sw == 1 || v.dw == 1);
  // of a large window in a small image most elements see zeros
  const double used = double(v.oh) * double(v.ow) * double(v.sh) * double(v.sw);
  return v.gc() >= 12 && one && double(v.h) * double(v.w) < 2.5 * used && channels_border_fit(v);
}

#define PLAIT_INSTANCE(T)                                                                        \
  template void to_pixels(const Frame &, const T *, T *, T *);                                   \
  template plait_status channels_forward(const plait_call *, const Conv &, const T *, const T *, \
                                         const DLTensor *, T *);                                 \
  template plait_status channels_backward_input(const plait_call *, const Conv &, const T *,     \
                                                const T *, T *);
PLAIT_INSTANCE(float)
PLAIT_INSTANCE(double)

}  // namespace plait::core
