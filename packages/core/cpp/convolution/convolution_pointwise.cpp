#include "convolution/convolution_pointwise.h"

#include "convolution/convolution_channels.h"
#include "kernel/integers.h"
#include "kernel/packed_weight.h"
#include "linalg/tile.h"

namespace plait::core {
namespace {

constexpr int64_t kPacked = 1 << 17;  // elements of a block, which stays in the second-level cache
constexpr int64_t kRows = 48;  // rows of a factor or of results that stay in the caches
constexpr int64_t kDeep = 768;  // positions of a block of which the weights' gradient is a sum
constexpr int64_t kWide = 128;  // channels of such a block
constexpr int64_t kAhead = 8;  // rows of distant planes that are prefetched
constexpr int64_t kLines = 8;  // channels with strides that are turned together
constexpr int64_t kUnits = 16;  // parallel units that are wanted for few threads
constexpr int64_t kUnit = 3 << 18;  // multiplications of a unit, which takes some microseconds
constexpr int64_t kShare = 256;  // rows for which packing once more does not count
constexpr int64_t kSmallShare = 96;  // the same, of few columns, or for many threads
constexpr int64_t kFewPositions = 112;  // of several images, for which positions are rows
constexpr int64_t kFewOfOne = 224;  // the same, of one image, for which filters are read once
constexpr int64_t kTurnedUnits = 8;  // units of positions of a turned product, for few threads
constexpr int64_t kMostInPlace = 384;  // channels that are read where they lie
constexpr int64_t kInPlaceRows = 32;  // of results, for which nothing is packed
constexpr int64_t kMostKept = 1024;  // positions; of more of them copying filters is a small part
constexpr int64_t kPartials = 4 << 20;  // largest number of elements of partial sums

template <class T>
constexpr int64_t whole_panels(int64_t n) {
  return ceil_div(n, kPanel<T>) * kPanel<T>;
}

// The positions of an image that results see: rows of `w` positions, `row` and `step` pixels apart.
struct Grid {
  int64_t w, area, row, step;
  bool is_dense() const { return step == 1 && row == w; }
  // Runs f(first column, its pixel, how many) for the runs of columns [begin, end).
  template <class F>
  void each_run(int64_t begin, int64_t end, F &&f) const {
    if (is_dense()) return f(begin, begin, end - begin);
    while (begin < end) {
      const int64_t y = begin / w, x = begin % w, n = least(w - x, end - begin);
      f(begin, y * row + x * step, n);
      begin += n;
    }
  }
};
Grid grid_of(const Conv &v) { return {v.ow, v.oh * v.ow, v.sh * v.w, v.sw}; }
Grid own_grid(const Conv &v) { return {v.ow, v.oh * v.ow, v.ow, 1}; }

// Runs f(image, begin, end, at) for the positions [begin, end) of each image that columns [first,
// first + n) are; `at` counts from the first one.
template <class F>
void each_image(int64_t area, int64_t first, int64_t n, F &&f) {
  for (int64_t at = 0; at < n;) {
    const int64_t image = (first + at) / area, begin = (first + at) % area;
    const int64_t count = least(area - begin, n - at);
    f(image, begin, begin + count, at);
    at += count;
  }
}

// The channels of a group at columns [first, first + n) as panels of columns: k rows each.
template <class T>
void pack_columns(Images<T> x, const Grid &grid, int64_t k, int64_t first, int64_t n, T *to,
                  T *line) {
  constexpr int64_t w = kPanel<T>;
  const int64_t padded = whole_panels<T>(n);
  if (x.channel == 1 && x.pixel != 1) {  // channels are side by side
    if (n < padded) memset(to + (padded - w) * k, 0, size_t(w * k) * sizeof(T));
    return each_image(grid.area, first, n, [&](int64_t i, int64_t begin, int64_t end, int64_t at) {
      grid.each_run(begin, end, [&](int64_t q, int64_t pixel, int64_t count) {
        int64_t column = at + q - begin;
        const T *from = x.data + i * x.image + pixel * x.pixel;
        for (int64_t done = 0; done < count;) {
          const int64_t some = least(w - column % w, count - done);
          transposed(to + column / w * w * k + column % w, w, from + done * grid.step * x.pixel,
                     grid.step * x.pixel, some, k);
          done += some;
          column += some;
        }
      });
    });
  }
  const int64_t area = grid.area, image = first / area, begin = first % area;
  const bool direct = n == padded && begin + n <= area && grid.is_dense();
  const T *from = x.data + image * x.image + begin;
  for (int64_t i = n; i < padded; i++) line[i] = T(0);
  for (int64_t l = 0; l < k; l++, from += x.channel) {
    const int64_t ahead = l + kAhead < k ? kAhead * x.channel : 0;
    if (!direct)
      each_image(area, first, n, [&](int64_t i, int64_t b, int64_t e, int64_t at) {
        const T *plane = x.data + i * x.image + l * x.channel;
        grid.each_run(b, e, [&](int64_t q, int64_t pixel, int64_t count) {
          const int64_t reach = (count - 1) * grid.step;
          for (int64_t j = 0; j <= reach; j += w) __builtin_prefetch(plane + ahead + pixel + j);
          if (grid.step == 1) return copy_row(line + at + q - b, plane + pixel, count);
          take_every(line + at + q - b, plane + pixel, grid.step, count);
        });
      });
    const T *row = direct ? from : line;
    for (int64_t j = 0; j < padded; j += w) {
      if (direct) __builtin_prefetch(from + ahead + j);
      memcpy(to + j * k + l * w, row + j, w * sizeof(T));
    }
  }
}

// Results at columns [first, first + r.n) of rows in a buffer, with what is added to them and the
// activation, to `r.to`, where rows are planes of images `image` elements apart; a residual is
// added where they are dense alone. `line` has room for a row.
template <class T>
void spread(const Grid &grid, const Activation &activation, const Activation::Rows<T> &r,
            int64_t first, int64_t image, bool past, T *line) {
  each_image(grid.area, first, r.n, [&](int64_t j, int64_t begin, int64_t end, int64_t at) {
    Activation::Rows<T> own = r;
    own.n = end - begin;
    own.from += at;
    own.to += j * image;
    if (grid.is_dense()) {
      own.to += begin;
      if (own.residual) own.residual += j * image + begin;
      if (!past) return activation.store(own);
    }
    own.rows = 1;
    const bool changed = r.bias || r.residual || activation;
    for (int64_t i = 0; i < r.rows; i++, own.from += own.pitch) {
      T *to = own.to + i * own.plane;
      const T *row = changed ? line : own.from;
      if (changed) {
        Activation::Rows<T> one = own;
        one.to = line;
        activation.store(one);
      }
      if (own.bias) own.bias += own.step;
      if (own.residual) own.residual += own.plane;
      if (grid.is_dense()) {
        copy_row_past(to, row, own.n);
        continue;
      }
      grid.each_run(begin, end, [&](int64_t q, int64_t pixel, int64_t count) {
        if (grid.step == 1) return copy_row(to + pixel, row + q - begin, count);
        put_every(to + pixel, row + q - begin, grid.step, count);
      });
    }
  });
}

// Rows of filters whose distance is a power of two would share sets of the caches: such are copied.
template <class T>
class Apart {
 public:
  int64_t pitch;
  const T *data;
  Apart(int64_t pitch, const T *data) : pitch(pitch), data(data) {}
  // `kept`: the copy is the call's argument 1 and may be kept between calls.
  plait_status take(const plait_call *c, int64_t rows, bool kept) {
    if (pitch * int64_t(sizeof(T)) % 1024) return PLAIT_OK;
    const int64_t own = pitch;
    const T *from = data;
    pitch += kPadding;
    auto copy_rows = [&](void *into) {
      T *to = static_cast<T *>(into);
      parallel_ranges(c, rows, 4 * kChunk / own, [&](int64_t i, int64_t end) {
        for (; i < end; i++) memcpy(to + i * pitch, from + i * own, size_t(own) * sizeof(T));
      });
      return PLAIT_OK;
    };
    const uint64_t bytes = uint64_t(rows * pitch) * sizeof(T);
    if (kept) {
      PLAIT_TRY(packed_.take(c, 1, PackedForm::PointwiseFilters, bytes, copy_rows));
      data = packed_.as<T>();
      return PLAIT_OK;
    }
    PLAIT_TRY(space_.take(c, bytes));
    data = space_.as<T>();
    return copy_rows(space_.as<void>());
  }

 private:
  PackedWeight packed_;
  Workspace space_;
};

// y = a x for all columns and groups: a is m x k, `apart` elements from a group to the next.
template <class T>
struct Channels {
  int64_t images, groups, m, k;
  Matrix<T> a;
  int64_t apart;
  Images<T> x;
  Grid from, to;  // where columns are read and written
  T *y;
  int64_t plane;  // elements of a plane of y
  Activation activation{};
  const T *residual = nullptr;  // laid out as y
  const T *residual_at(int64_t i) const { return residual ? residual + i : nullptr; }
};

// How the results of a product of m rows and `area` columns of each image are cut: into pieces of
// columns, of which each is packed, and these into parts of rows.
struct Blocks {
  int64_t length, pieces, columns;  // of an image, or of all of them; columns of a piece
  int64_t blocks;  // pieces of all images
  int64_t high, share, parts;  // rows that are multiplied at once; rows of a part, and parts
  bool in_place;  // columns are read where they lie, and results stored by the tile
};

// Whether k lines whose distance is `pitch` elements do not share too few of the 64 sets of a
// cache, the same one every 4096 bytes.
template <class T>
bool lines_spread(int64_t k, int64_t pitch) {
  int64_t sets = 64;
  for (int64_t lines = pitch * int64_t(sizeof(T)) / 64; sets > 1 && lines % 2 == 0; lines /= 2)
    sets /= 2;
  return k <= 16 * sets;
}

template <class T>
Blocks blocks_of(const Channels<T> &p, bool by_tile) {
  constexpr int64_t w = kPanel<T>;
  Blocks b;
  // Large images are cut apart, which leaves few panels with empty columns.
  const int64_t area = p.from.area;
  const bool apart = area >= 4 * w && (whole_panels<T>(area) - area) * 32 <= area;
  // Few rows of results use a column so seldom that packing it costs more than distant reads do.
  b.in_place = by_tile && p.m <= kInPlaceRows && p.k <= kMostInPlace && (apart || p.images == 1) &&
               area >= 4 * w && p.x.pixel == 1 && p.from.is_dense() &&
               lines_spread<T>(p.k, p.x.channel);
  b.length = apart ? area : p.images * area;
  const int64_t images = apart ? p.images : 1, panels = ceil_div(b.length, w);
  const int64_t work = p.groups * p.m * p.k * images * panels * w;
  const int64_t wanted = most(least(work / kUnit, units_wanted(kUnits)), 1);
  const int64_t most_panels = least(most(kPacked / p.k / w, 4), 32);
  const int64_t enough = ceil_div(panels, ceil_div(wanted, p.groups * images));
  int64_t each = least(most(enough, 2), most_panels);
  each = ceil_div(panels, ceil_div(panels, each));
  each += each % 2 && each < panels && each < most_panels;  // two panels are multiplied at once
  b.columns = each * w;
  b.pieces = ceil_div(panels, each);
  b.blocks = b.pieces * images;
  b.high = ceil_div(p.m, ceil_div(p.m, kRows));
  // Few blocks are packed once for each part of many results. So are those of one image: threads
  // then make planes of their own, which is what an operator that takes planes apart reads.
  const int64_t required = most(ceil_div(wanted, p.groups * b.blocks), p.images == 1 ? 2 : 1);
  b.share = ceil_div(p.m, most(least(required, p.m / kSmallShare), 1));
  b.share = ceil_div(b.share, b.high) * b.high;
  b.parts = ceil_div(p.m, b.share);
  return b;
}

// The weights that are read after the first of the rows [i, i + rows).
template <class T>
Ahead ahead_of(const Matrix<T> &a, int64_t i, int64_t rows, int64_t m) {
  if (a.columns != 1) return {};
  const int64_t begin = least(i + tile_rows<T>(), m), end = least(i + rows + tile_rows<T>(), m);
  return Ahead::of(a.at(begin, 0).data, (end - begin) * a.rows);
}

// The columns that the unit behind t reads, if these are of one image.
template <class T>
Ahead columns_behind(const Channels<T> &p, const Blocks &b, int64_t t) {
  if (++t >= p.groups * b.blocks || p.x.pixel != 1 || !p.from.is_dense()) return {};
  const int64_t own = t % b.pieces * b.columns, n = least(b.columns, b.length - own);
  const int64_t first = t % b.blocks / b.pieces * b.length + own;
  const int64_t image = first / p.from.area, pixel = first % p.from.area;
  if (pixel + n > p.from.area) return {};
  return Ahead::of_rows(p.x.data + image * p.x.image + t / b.blocks * p.k * p.x.channel + pixel,
                        p.k, p.x.channel, n);
}

template <class T>
plait_status mix_channels(const plait_call *c, const Channels<T> &p, const DLTensor *bias) {
  const int64_t image = p.groups * p.m * p.plane, step = bias ? bias->strides[0] : 0;
  const bool past = p.images * image * int64_t(sizeof(T)) >= kPastCaches;
  const Bounds bounds = p.activation.bounds();
  const int64_t address = int64_t(reinterpret_cast<uintptr_t>(p.y));
  const bool lines = (address | p.plane * int64_t(sizeof(T))) % Ahead::kLine == 0;  // whole ones
  const bool by_tile = p.to.is_dense() && (!past || lines) && (bounds.exist || !p.activation);
  const Blocks b = blocks_of(p, by_tile);
  const int64_t columns = b.in_place ? kPanel<T> : b.columns, high = b.high, packed = columns * p.k;
  const bool one = p.images == 1;
  const int64_t all = p.groups * b.blocks;
  return with_scratch<T>(
      c, all * b.parts, kUnit / 2 / (b.columns * p.k * b.share + 1) + 1,
      packed + (high + 1) * columns, [&](int64_t u, T *space) {
        T *result = space + packed, *line = result + high * columns;
        const int64_t t = one ? u % all : u / b.parts, part = one ? u / all : u % b.parts;
        const int64_t group = t / b.blocks, own = t % b.pieces * b.columns;
        const int64_t first = t % b.blocks / b.pieces * b.length + own;
        const int64_t n = least(b.columns, b.length - own);
        const int64_t at = first / p.to.area, pixel = first % p.to.area;
        Images<T> x = p.x;
        x.data += group * p.k * x.channel;
        // Whole panels of one image are stored by the tile, the others by way of a buffer.
        const bool direct = by_tile && pixel + n <= p.to.area;
        const int64_t whole = direct ? n / kPanel<T> * kPanel<T> : 0, rest = n - whole;
        Panels<T> panels = Panels<T>::packed(space, p.k), last = panels;
        if (b.in_place)
          panels = Panels<T>::of_rows(x.data + at * x.image + pixel, x.channel);
        else
          last.data += whole / kPanel<T> * panels.panel;
        const int64_t skipped = b.in_place ? whole : 0;
        if (skipped < n) pack_columns(x, p.from, p.k, first + skipped, n - skipped, space, line);
        const Matrix<T> a{p.a.data + group * p.apart, p.a.rows, p.a.columns};
        const int64_t begin = part * b.share, end = least(begin + b.share, p.m);
        Ahead behind = one || part + 1 < b.parts ? Ahead{} : columns_behind(p, b, t);
        for (int64_t i = begin; i < end; i += high) {
          const int64_t rows = least(high, end - i), row = group * p.m + i;
          const T *shift = bias ? data<T>(bias) + row * step : nullptr;
          T *y = p.y + row * p.plane;
          Ahead weights = ahead_of(a, i, rows, p.m), *ahead = one ? &weights : &behind;
          const int64_t begin_of_tile = at * image + pixel;
          if (whole)
            multiply_tile(rows, whole, p.k, a.at(i, 0), panels, y + begin_of_tile, p.plane,
                          Finish<T>{nullptr, 0, shift, step, bounds.exist, T(bounds.low),
                                    T(bounds.high), T(bounds.zero),
                                    p.residual_at(row * p.plane + begin_of_tile), p.plane, past},
                          ahead);
          if (!rest) continue;
          multiply_tile(rows, whole_panels<T>(rest), p.k, a.at(i, 0), last, result, columns,
                        Finish<T>{}, ahead);
          spread<T>(
              p.to, p.activation,
              {rows, rest, result, columns, y, p.plane, shift, step, p.residual_at(row * p.plane)},
              first + whole, image, past, line);
        }
        if (past) finish_stores();
      });
}

// Few positions leave much of a panel empty. The result is then computed turned: positions are its
// rows, and panels of filters, which are kept between calls, its columns.
template <class T>
bool turned_fit(const Conv &v) {
  const int64_t positions = v.n * v.oh * v.ow;
  const int64_t few = v.n == 1 ? kFewOfOne : kFewPositions;
  return positions <= few && whole_panels<T>(positions) * 20 > positions * 21 &&
         v.goc() >= 4 * kPanel<T>;
}

// Positions and filters of a unit of a turned product. A thread reads its own part of one factor
// and all of the other one, much of which lies in the caches of other cores: the smaller one.
struct TurnedUnits {
  int64_t high, wide;
};
template <class T>
TurnedUnits turned_units(const Channels<T> &p) {
  constexpr int64_t w = kPanel<T>;
  const int64_t n = p.from.area;
  if (p.m >= n || !p.from.is_dense()) return {n, p.m < 16 * w ? w : 2 * w};
  return {most(ceil_div(n, units_wanted(kTurnedUnits)), tile_rows<T>()), whole_panels<T>(p.m)};
}

template <class T>
plait_status mix_turned(const plait_call *c, const Channels<T> &p, const DLTensor *bias) {
  const int64_t n = p.from.area, panels = whole_panels<T>(p.m);
  const auto [high, wide] = turned_units<T>(p);
  const int64_t down = ceil_div(n, high), across = ceil_div(p.m, wide);
  const int64_t pitch = whole_panels<T>(high);
  PackedWeight filters;
  PLAIT_TRY(filters.take(c, 1, PackedForm::PointwisePanels,
                         uint64_t(p.groups * panels * p.k) * sizeof(T), [&](void *to) {
                           for (int64_t g = 0; g < p.groups; g++)
                             pack_panels(Matrix<T>{p.a.data + g * p.apart, p.a.columns, p.a.rows},
                                         p.k, p.m, static_cast<T *>(to) + g * panels * p.k);
                           return PLAIT_OK;
                         }));
  const int64_t step = bias ? bias->strides[0] : 0, image = p.groups * p.m * p.plane;
  const int64_t units = p.groups * across * down;
  const bool dense = p.from.is_dense();
  return with_scratch<T>(
      c, p.images * units, kUnit / 2 / (high * wide * p.k + 1) + 1,
      high * wide + wide * pitch + pitch, [&, high = high, wide = wide](int64_t u, T *result) {
        const int64_t i = u / units, group = u % units / (across * down);
        const int64_t begin = u / down % across * wide, first = u % down * high;
        const int64_t row = group * p.m + begin, rows = least(wide, p.m - begin);
        const int64_t positions = least(high, n - first);
        const T *x = p.x.data + i * p.x.image + group * p.k * p.x.channel + first * p.x.pixel;
        const T *b = filters.as<T>() + (group * panels + begin) * p.k;
        const int64_t columns = whole_panels<T>(rows), next = begin + rows < p.m ? columns : 0;
        Ahead ahead = Ahead::of(b + columns * p.k, next * p.k);
        // a grid's rows are apart
        for (int64_t y = 0; y < positions; y += dense ? positions : p.from.w)
          multiply_tile(dense ? positions : p.from.w, columns, p.k,
                        {x + (dense ? 0 : y / p.from.w * p.from.row) * p.x.pixel,
                         p.from.step * p.x.pixel, p.x.channel},
                        Panels<T>::packed(b, p.k), result + y * wide, wide, Finish<T>{}, &ahead);
        T *turned = result + high * wide, *line = turned + wide * pitch;
        transposed(turned, pitch, result, wide, positions, rows);
        const T *shift = bias ? data<T>(bias) + row * step : nullptr;
        spread<T>(p.to, p.activation,
                  {rows, positions, turned, pitch, p.y + row * p.plane, p.plane, shift, step,
                   p.residual_at(row * p.plane)},
                  i * n + first, image, false, line);
      });
}

// The derivative by the weights.

// The factor that becomes panels, whose channels are the columns of a sum, and the other one, whose
// channels are rows; both have the positions `grid` says.
template <class T>
struct Factors {
  int64_t images, groups, m, n;  // channels of rows and columns
  Images<T> rows, columns;
  Grid grid;  // of the columns' positions; the rows' ones are dense
};

struct Cut {
  int64_t deep, together;  // positions of an image, and images, that are taken at once
  int64_t pieces, parts;  // of the sum
  int64_t high, wide, down, across;  // rows and columns of a unit, and how many units
};

template <class T>
Cut cut_of(const Factors<T> &f) {
  Cut cut;
  const int64_t area = f.grid.area;
  cut.deep = ceil_div(area, ceil_div(area, kDeep));
  cut.together = area >= kDeep ? 1 : least(kDeep / area, f.images);
  cut.pieces =
      cut.together > 1 ? ceil_div(f.images, cut.together) : f.images * ceil_div(area, cut.deep);
  const int64_t panels = ceil_div(f.n, kPanel<T>), most_panels = kWide / kPanel<T>;
  cut.wide = ceil_div(panels, ceil_div(panels, most_panels)) * kPanel<T>;
  cut.across = ceil_div(f.n, cut.wide);
  // Rows are cut where these are so many that packing for each of them does not count.
  const int64_t required = ceil_div(kUnits, cut.across * f.groups);
  cut.down = most(least(required, f.m / kShare), 1);
  cut.high = ceil_div(f.m, cut.down);
  cut.down = ceil_div(f.m, cut.high);
  const int64_t result = f.groups * f.m * cut.across * cut.wide;
  cut.parts = least(ceil_div(required, cut.down), most(kPartials / result, 1));
  cut.parts = least(cut.parts, cut.pieces);
  cut.parts = ceil_div(cut.pieces, ceil_div(cut.pieces, cut.parts));
  const int64_t others = f.groups * cut.across * cut.parts;
  const int64_t more = least(ceil_div(units_wanted(kUnits), others), f.m / kSmallShare);
  cut.high = ceil_div(f.m, most(cut.down, more));
  cut.down = ceil_div(f.m, cut.high);
  return cut;
}

// A piece of the sum: positions [first, first + deep) of images [image, image + images).
struct Piece {
  int64_t image, images, first, deep;
  template <class T>
  Piece(const Factors<T> &f, const Cut &cut, int64_t piece) {
    const int64_t area = f.grid.area, an_image = ceil_div(area, cut.deep);
    image = cut.together > 1 ? piece * cut.together : piece / an_image;
    images = least(cut.together, f.images - image);
    first = cut.together > 1 ? 0 : piece % an_image * cut.deep;
    deep = least(cut.deep, area - first);
  }
};

// What becomes panels of a piece of one image.
template <class T>
Ahead columns_of(const Factors<T> &f, const Piece &p, int64_t channel, int64_t columns) {
  const Images<T> &x = f.columns;
  if (p.images > 1 || x.pixel != 1 || !f.grid.is_dense()) return {};
  return Ahead::of_rows(x.data + p.image * x.image + channel * x.channel + p.first, columns,
                        x.channel, p.deep);
}

// The sum over one piece for a unit's rows and columns. `next` is read after it.
template <class T>
void add_piece(const Factors<T> &f, const Piece &p, Ahead next, int64_t group, int64_t row,
               int64_t rows, int64_t column, int64_t columns, bool add, T *packed, T *line, T *sums,
               int64_t pitch) {
  constexpr int64_t w = kPanel<T>;
  const int64_t image = p.image, images = p.images, first = p.first, deep = p.deep;
  const int64_t panel = images * deep * w;
  const Images<T> &x = f.columns;
  for (int64_t j = 0; j < columns; j += w) {
    const int64_t wide = least(w, columns - j);
    T *to = packed + j / w * panel;
    if (wide < w) memset(to, 0, size_t(panel) * sizeof(T));
    for (int64_t i = 0; i < images; i++, to += deep * w) {
      const T *from = x.data + (image + i) * x.image + (group * f.n + column + j) * x.channel;
      if (x.channel == 1) {
        f.grid.each_run(first, first + deep, [&](int64_t q, int64_t pixel, int64_t count) {
          for (int64_t k = 0; k < count; k++)
            memcpy(to + (q - first + k) * w, from + (pixel + k * f.grid.step) * x.pixel,
                   size_t(wide) * sizeof(T));
        });
        continue;
      }
      if (f.grid.is_dense()) {
        transposed(to, w, from + first, x.channel, wide, deep);
        continue;
      }
      for (int64_t l = 0; l < wide; l += kLines) {  // a few channels' lines, side by side
        const int64_t lines = least(kLines, wide - l);
        for (int64_t r = 0; r < lines; r++)
          f.grid.each_run(first, first + deep, [&](int64_t q, int64_t pixel, int64_t count) {
            take_every(line + r * deep + q - first, from + (l + r) * x.channel + pixel, f.grid.step,
                       count);
          });
        transposed(to + l, w, line, deep, lines, deep);
      }
    }
  }
  const Images<T> &a = f.rows;
  const T *from = a.data + image * a.image + (group * f.m + row) * a.channel + first * a.pixel;
  for (int64_t i = 0; i < rows; i += kRows)
    multiply_rounds(
        least(kRows, rows - i), whole_panels<T>(columns), deep, {images, a.image, deep * w},
        {1, 0, 0}, Matrix<T>{from + i * a.channel, a.channel, a.pixel}, Panels<T>{packed, panel, w},
        sums + i * pitch, pitch, Finish<T>::added(add, sums + i * pitch, pitch), &next);
}

// gw[group][row][column], or gw[group][column][row] if `turned`
template <class T>
plait_status sum_products(const plait_call *c, const Factors<T> &f, bool turned, T *gw) {
  const Cut cut = cut_of(f);
  const int64_t pitch = cut.across * cut.wide, result = f.groups * f.m * pitch;
  Workspace space;
  const bool direct = cut.parts == 1 && pitch == f.n && !turned;
  if (!direct) PLAIT_TRY(space.take(c, uint64_t(cut.parts * result) * sizeof(T)));
  T *sums = direct ? gw : space.as<T>();
  const int64_t deepest = cut.together * cut.deep, units = f.groups * cut.down * cut.across;
  const int64_t each = ceil_div(cut.pieces, cut.parts);
  const int64_t work = cut.high * cut.wide * deepest * each;
  PLAIT_TRY(with_scratch<T>(
      c, cut.parts * units, (1 << 18) / (work + 1) + 1, deepest * cut.wide + kLines * cut.deep,
      [&](int64_t t, T *packed) {
        const int64_t part = t / units, unit = t % units, group = unit / (cut.down * cut.across);
        const int64_t row = unit / cut.across % cut.down * cut.high;
        const int64_t column = unit % cut.across * cut.wide;
        T *to = sums + part * result + (group * f.m + row) * pitch + column;
        const int64_t end = least(part * each + each, cut.pieces);
        const int64_t rows = least(cut.high, f.m - row), columns = least(cut.wide, f.n - column);
        for (int64_t piece = part * each; piece < end; piece++) {
          Ahead next;
          if (piece + 1 < end)
            next = columns_of(f, Piece(f, cut, piece + 1), group * f.n + column, columns);
          add_piece(f, Piece(f, cut, piece), next, group, row, rows, column, columns,
                    piece > part * each, packed, packed + deepest * cut.wide, to, pitch);
        }
      }));
  if (direct) return PLAIT_OK;
  constexpr int64_t band = 16;  // rows that are turned together
  const int64_t bands = ceil_div(f.m, band);
  parallel_ranges(c, f.groups * bands, kChunk / (band * pitch), [&](int64_t t, int64_t end) {
    for (; t < end; t++) {
      const int64_t group = t / bands, row = t % bands * band, rows = least(band, f.m - row);
      T *own = sums + (group * f.m + row) * pitch;
      for (int64_t p = 1; p < cut.parts; p++)
        for (int64_t i = 0; i < rows * pitch; i++) own[i] += own[p * result + i];
      if (turned) {
        transposed(gw + group * f.m * f.n + row, f.m, own, pitch, rows, f.n);
        continue;
      }
      for (int64_t i = 0; i < rows; i++)
        memcpy(gw + ((group * f.m + row) + i) * f.n, own + i * pitch, size_t(f.n) * sizeof(T));
    }
  });
  return PLAIT_OK;
}

// What a product of m rows and n columns costs for each position, in multiplications: those of
// whole panels, and packing.
template <class T>
int64_t cost(int64_t m, int64_t n) {
  return whole_panels<T>(n) * (m + 10);
}

}  // namespace

template <class T>
plait_status pointwise_forward(const plait_call *c, const Conv &v, Images<T> x, const T *w,
                               const DLTensor *bias, T *y) {
  Apart<T> a(v.gc(), w);
  const bool keeps = v.n * v.oh * v.ow <= kMostKept && may_keep_packed(c, 1);
  if (!keeps) PackedWeight::pass(c, 1);
  const bool turned = keeps && turned_fit<T>(v);
  if (!turned) PLAIT_TRY(a.take(c, v.oc, keeps));
  const Channels<T> p{v.n,
                      v.groups,
                      v.goc(),
                      v.gc(),
                      Matrix<T>{a.data, a.pitch, 1},
                      v.goc() * a.pitch,
                      x,
                      grid_of(v),
                      own_grid(v),
                      y,
                      v.oh * v.ow,
                      v.activation,
                      static_cast<const T *>(v.residual)};
  return turned ? mix_turned(c, p, bias) : mix_channels(c, p, bias);
}

template <class T>
plait_status pointwise_backward_input(const plait_call *c, const Conv &v, Images<T> gy, const T *w,
                                      T *gx) {
  Apart<T> a(v.gc(), w);
  PLAIT_TRY(a.take(c, v.oc, false));
  const int64_t plane = v.h * v.w;
  if (!grid_of(v).is_dense() || v.oh * v.ow < plane)  // elements that no window sees
    parallel_ranges(c, v.n * v.c, kChunk / plane, [&](int64_t begin, int64_t end) {
      memset(gx + begin * plane, 0, size_t((end - begin) * plane) * sizeof(T));
    });
  const Channels<T> p{v.n,
                      v.groups,
                      v.gc(),
                      v.goc(),
                      Matrix<T>{a.data, 1, a.pitch},
                      v.goc() * a.pitch,
                      gy,
                      own_grid(v),
                      grid_of(v),
                      gx,
                      plane};
  return mix_channels(c, p, nullptr);
}

template <class T>
plait_status pointwise_backward_weight(const plait_call *c, const Conv &v, Images<T> gy,
                                       Images<T> x, T *gw) {
  const Grid grid = grid_of(v), own = own_grid(v);
  // The cheaper side becomes panels; one with strides must.
  const bool turned =
      grid.is_dense() && x.channel != 1 && cost<T>(v.gc(), v.goc()) < cost<T>(v.goc(), v.gc());
  if (turned) {
    const Factors<T> f{v.n, v.groups, v.gc(), v.goc(), x, gy, own};
    return sum_products(c, f, true, gw);
  }
  const Factors<T> f{v.n, v.groups, v.goc(), v.gc(), gy, x, grid};
  return sum_products(c, f, false, gw);
}

bool pointwise_fit(const Conv &v) {
  return v.kh == 1 && v.kw == 1 && v.ph == 0 && v.pw == 0 && v.gc() >= 4 && v.goc() >= 4;
}

#define PLAIT_INSTANCE(T)                                                                         \
  template plait_status pointwise_forward(const plait_call *, const Conv &, Images<T>, const T *, \
                                          const DLTensor *, T *);                                 \
  template plait_status pointwise_backward_input(const plait_call *, const Conv &, Images<T>,     \
                                                 const T *, T *);                                 \
  template plait_status pointwise_backward_weight(const plait_call *, const Conv &, Images<T>,    \
                                                  Images<T>, T *);
PLAIT_INSTANCE(float)
PLAIT_INSTANCE(double)

}  // namespace plait::core
