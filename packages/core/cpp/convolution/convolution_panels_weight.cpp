// The derivative by the weights for many channels. A panel's worth of channels lies side by side in
// a frame of zeros, so that the pixels under each element of the window are panels as they are, and
// the gradient is read where it is: nothing is copied but the image, once.
#include "convolution/convolution_channels.h"
#include "linalg/tile.h"

namespace plait::core {
namespace {

constexpr int64_t kFrame = 1 << 16;  // elements of a frame, which stays in the second-level cache
constexpr int64_t kRows = 96;  // filters whose gradients stay there too
constexpr int64_t kUnits = 16;  // parallel units that are wanted
constexpr int64_t kPartials = 4 << 20;  // largest number of elements of partial sums

template <class T>
struct Cut {
  int64_t blocks, width;  // blocks of channels; pixels of a row with its border
  int64_t rows, bands;  // result rows that are taken at once
  int64_t in_rows, frame, beside;
  int64_t size, result;  // sums of a block, and of all
  int64_t pieces, parts;
  explicit Cut(const Conv &v) {
    constexpr int64_t w = kPanel<T>;
    blocks = ceil_div(v.gc(), w);
    const int64_t reach = (v.ow - 1) * v.sw + (v.kw - 1) * v.dw + 1, own = v.w + v.pw;
    width = reach > own ? reach : own;
    rows = kFrame / (width * w * v.sh) + 1;
    rows = ceil_div(v.oh, ceil_div(v.oh, rows));
    bands = ceil_div(v.oh, rows);
    in_rows = (rows - 1) * v.sh + (v.kh - 1) * v.dh + 1;
    frame = in_rows * width * w + w;  // and what the last panel reads beyond
    beside = in_rows * v.w * w;
    size = v.goc() * v.kh * v.kw * w;
    result = v.groups * blocks * size;
    pieces = v.n * bands;
    parts = ceil_div(kUnits, v.groups * blocks);
    const int64_t most = kPartials / result < pieces ? kPartials / result : pieces;
    parts = parts < most ? parts : most < 1 ? 1 : most;
    parts = ceil_div(pieces, ceil_div(pieces, parts));
  }
};

// The sums of one piece for a block of channels of a group: [filter][kh][kw][channel]
template <class T>
void add_piece(const Conv &v, const Cut<T> &cut, const T *gy, const T *x, int64_t piece,
               int64_t group, int64_t block, bool add, T *frame, T *beside, T *sums) {
  constexpr int64_t w = kPanel<T>;
  const int64_t image = piece / cut.bands * v.groups + group, area = v.oh * v.ow;
  const int64_t begin = piece % cut.bands * cut.rows;
  const int64_t n = v.oh - begin < cut.rows ? v.oh - begin : cut.rows;
  const int64_t wide = v.gc() - block * w < w ? v.gc() - block * w : w, pitch = cut.width * wide;
  const Frame f{wide, v.h,      v.w, begin * v.sh - v.ph, (n - 1) * v.sh + (v.kh - 1) * v.dh + 1,
                v.pw, cut.width};
  to_pixels(f, x + (image * v.gc() + block * w) * v.h * v.w, frame, beside);
  memset(frame + f.size(), 0, w * sizeof(T));
  const int64_t row = v.kw * w, filter = v.kh * row;
  for (int64_t o = 0; o < v.goc(); o += kRows) {
    const Matrix<T> gradient{gy + (image * v.goc() + o) * area + begin * v.ow, area, 1};
    const int64_t filters = v.goc() - o < kRows ? v.goc() - o : kRows;
    for (int64_t i = 0; i < v.kh; i++)
      multiply_rounds(filters, row, v.ow, {n, v.ow, v.sh * pitch}, {1, 0, 0}, gradient,
                      Panels<T>{frame + i * v.dh * pitch, v.dw * wide, v.sw * wide},
                      sums + o * filter + i * row, filter, add);
  }
}

}  // namespace

template <class T>
plait_status panels_backward_weight(const plait_call *c, const Conv &v, const T *gy, const T *x,
                                    T *gw) {
  constexpr int64_t w = kPanel<T>;
  const Cut<T> cut(v);
  Workspace space;
  PLAIT_TRY(space.take(c, uint64_t(cut.parts * cut.result) * sizeof(T)));
  T *sums = space.as<T>();
  const int64_t units = v.groups * cut.blocks, each = ceil_div(cut.pieces, cut.parts);
  const int64_t work = cut.size * cut.rows * v.ow * each;
  PLAIT_TRY(with_scratch<T>(
      c, cut.parts * units, (1 << 18) / (work + 1) + 1, cut.frame + cut.beside,
      [&](int64_t t, T *frame) {
        const int64_t part = t / units, unit = t % units, first = part * each;
        const int64_t end = first + each < cut.pieces ? first + each : cut.pieces;
        for (int64_t piece = first; piece < end; piece++)
          add_piece(v, cut, gy, x, piece, unit / cut.blocks, unit % cut.blocks, piece > first,
                    frame, frame + cut.frame, sums + part * cut.result + unit * cut.size);
      }));
  const int64_t taps = v.kh * v.kw, size = taps * w;
  parallel_ranges(c, units * v.goc(), kChunk / size, [&](int64_t t, int64_t end) {
    for (; t < end; t++) {
      const int64_t unit = t / v.goc(), block = unit % cut.blocks;
      const int64_t filter = unit / cut.blocks * v.goc() + t % v.goc();
      T *own = sums + t * size;
      for (int64_t p = 1; p < cut.parts; p++)
        for (int64_t i = 0; i < size; i++) own[i] += own[p * cut.result + i];
      transposed(gw + filter * v.patch() + block * w * taps, taps, own, w, taps,
                 v.gc() - block * w < w ? v.gc() - block * w : w);
    }
  });
  return PLAIT_OK;
}

// Few of the lanes may be empty.
template <class T>
bool panels_weight_fit(const Conv &v) {
  constexpr int64_t w = kPanel<T>;
  return ceil_div(v.gc(), w) * w * 4 <= v.gc() * 5 && v.goc() >= 4 && channels_border_fit(v);
}

#define PLAIT_INSTANCE(T)                                                                   \
  template bool panels_weight_fit<T>(const Conv &);                                         \
  template plait_status panels_backward_weight(const plait_call *, const Conv &, const T *, \
                                               const T *, T *);
PLAIT_INSTANCE(float)
PLAIT_INSTANCE(double)

}  // namespace plait::core
