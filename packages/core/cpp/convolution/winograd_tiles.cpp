#include "convolution/winograd_tiles.h"

#include "convolution/winograd.h"

namespace plait::core {
namespace {

constexpr int64_t kMostSide = 8;

// Squares [begin, end) of a row of `count` that lie within `size` elements.
struct Inner {
  int64_t begin, end;
  Inner(const Grid &g, int64_t count) {
    begin = g.left > 0 ? ceil_div(g.left, g.step) : 0;
    const int64_t room = g.w - g.side + g.left;
    end = room < 0 ? 0 : room / g.step + 1;
    if (end > count) end = count;
    if (begin > end) begin = end;
  }
};

// Runs f(image, first row of squares, rows) for the parts of [begin, end) that belong to one image.
template <class F>
void each_image(const Grid &g, int64_t begin, int64_t end, F &&f) {
  while (begin < end) {
    const int64_t first = begin % g.down, rest = g.down - first;
    const int64_t rows = end - begin < rest ? end - begin : rest;
    f(begin / g.down, first, rows);
    begin += rows;
  }
}

struct Lines {  // of an image
  int64_t begin, end;
  Lines(const Grid &g, int64_t first, int64_t rows) {
    begin = first * g.step - g.top;
    end = begin + (rows - 1) * g.step + g.side;
    if (begin < 0) begin = 0;
    if (end > g.h) end = g.h;
    if (end < begin) end = begin;
  }
};

}  // namespace

template <class T>
void read_tiles(const Grid &g, SquareMap<T> map, const T *images, int64_t image, int64_t lanes,
                int64_t begin, int64_t end, T *to, SquareSteps target, T *pixels) {
  constexpr int64_t w = kChannels<T>;
  alignas(64) T patch[kMostSide * kMostSide * w];
  const SquareSteps patches{g.side * w, w, 0}, inside{g.w * w, w, g.step * w};
  const int64_t most = end - begin < g.down ? end - begin : g.down;
  if (lanes < w) memset(pixels, 0, size_t(g.pixels<T>(most)) * sizeof(T));
  const Inner inner(g, g.across);
  each_image(g, begin, end, [&](int64_t n, int64_t first, int64_t rows) {
    const Lines lines(g, first, rows);
    transposed(pixels, w, images + n * image + lines.begin * g.w, g.h * g.w, lanes,
               (lines.end - lines.begin) * g.w);
    for (int64_t i = first; i < first + rows; i++, to += g.across * target.next) {
      const int64_t y = i * g.step - g.top;
      const bool whole = y >= lines.begin && y + g.side <= lines.end;
      const T *row = pixels + (y - lines.begin) * g.w * w;
      auto at_border = [&](int64_t j) {
        const int64_t x = j * g.step - g.left;
        for (int64_t r = 0; r < g.side; r++)
          for (int64_t s = 0; s < g.side; s++) {
            const bool in = y + r >= lines.begin && y + r < lines.end && x + s >= 0 && x + s < g.w;
            T *element = patch + (r * g.side + s) * w;
            if (in)
              memcpy(element, row + (r * g.w + x + s) * w, w * sizeof(T));
            else
              memset(element, 0, w * sizeof(T));
          }
        map(1, patch, patches, to + j * target.next, target, nullptr);
      };
      const int64_t from = whole ? inner.begin : g.across, till = whole ? inner.end : g.across;
      for (int64_t j = 0; j < from; j++) at_border(j);
      if (from < till)
        map(till - from, row + (from * g.step - g.left) * w, inside, to + from * target.next,
            target, nullptr);
      for (int64_t j = till; j < g.across; j++) at_border(j);
    }
  });
}

template <class T>
void write_tiles(const Grid &g, SquareMap<T> map, const T *from, SquareSteps source, const T *shift,
                 const Activation &activation, T *images, int64_t image, int64_t lanes,
                 int64_t begin, int64_t end, T *pixels, uint8_t *broken) {
  constexpr int64_t w = kChannels<T>;
  alignas(64) T patch[kMostSide * kMostSide * w];
  const SquareSteps patches{g.side * w, w, 0}, inside{g.w * w, w, g.step * w};
  const Inner inner(g, g.across);
  each_image(g, begin, end, [&](int64_t n, int64_t first, int64_t rows) {
    const Lines lines(g, first, rows);
    Finite<T> finite;
    for (int64_t i = first; i < first + rows; i++, from += g.across * source.next) {
      const int64_t y = i * g.step, high = g.h - y < g.side ? g.h - y : g.side;
      T *row = pixels + (y - lines.begin) * g.w * w;
      auto at_border = [&](int64_t j) {
        const int64_t x = j * g.step, wide = g.w - x < g.side ? g.w - x : g.side;
        map(1, from + j * source.next, source, patch, patches, shift);
        finite.add(patch, w);
        finite.add(patch + (g.side * g.side - 1) * w, w);
        for (int64_t r = 0; r < high; r++)
          memcpy(row + (r * g.w + x) * w, patch + r * g.side * w, size_t(wide * w) * sizeof(T));
      };
      const int64_t till = high == g.side ? inner.end : 0;
      if (till > 0) map(till, from, source, row, inside, shift);
      const T *last = row + (g.side - 1) * (g.w + 1) * w;
      for (int64_t j = 0; j < till; j++) {
        finite.add(row + j * g.step * w, w);
        finite.add(last + j * g.step * w, w);
      }
      for (int64_t j = till; j < g.across; j++) at_border(j);
    }
    if (!finite.all()) __atomic_store_n(broken + n, 1, __ATOMIC_RELAXED);
    activation(pixels, (lines.end - lines.begin) * g.w * w);
    transposed(images + n * image + lines.begin * g.w, g.h * g.w, pixels, w,
               (lines.end - lines.begin) * g.w, lanes);
  });
}

#define PLAIT_INSTANCE(T)                                                                     \
  template void read_tiles(const Grid &, SquareMap<T>, const T *, int64_t, int64_t, int64_t,  \
                           int64_t, T *, SquareSteps, T *);                                   \
  template void write_tiles(const Grid &, SquareMap<T>, const T *, SquareSteps, const T *,    \
                            const Activation &, T *, int64_t, int64_t, int64_t, int64_t, T *, \
                            uint8_t *);
PLAIT_INSTANCE(float)
PLAIT_INSTANCE(double)

}  // namespace plait::core
