// Matrix products by tiles. One operand gives the rows of tiles, from which single elements are
// broadcast; the other one gives columns, which lie in panels. Each operand is read where it lies,
// packed by the units of work that use it, or packed once for all of them. A result is the same sum
// in the same order in all of these ways.
#include <initializer_list>

#include "kernel/integers.h"
#include "kernel/transpose.h"
#include "kernel/units.h"
#include "linalg/gemm.h"
#include "linalg/packed.h"
#include "linalg/tile.h"

namespace plait::core {
namespace {

constexpr int64_t kUnit = 1 << 19;  // multiplications for one unit of parallel work
constexpr int64_t kShared = 1 << 22;  // multiplications from which operands are packed once
constexpr int64_t kHigh = 192, kWide = 256;  // largest tile, with which panels stay in a cache
constexpr int64_t kHighAlone = 144;  // of a tile that has all rows of a packed product
constexpr int64_t kLow = 24, kNarrow = 32;  // smallest tile
constexpr int64_t kPacked = 12 << 20;  // bytes of an operand that is packed for all units
constexpr int64_t kPackedNear = 3 << 20;  // of both operands, which then stay in the caches
constexpr int64_t kPasses = 4;  // bytes packed at once for a byte of results, read each time
constexpr int64_t kNear = 1 << 18;  // bytes of columns that are read where they lie
constexpr int64_t kGroup = 16;  // rows that are packed at once, at least those of a tile's group
constexpr int64_t kFewResults = 1 << 13, kFewUnits = 4;  // with fewer, units divide sums

template <class T>
constexpr int64_t kStride = kDepth<T> + 64 / int64_t(sizeof(T));  // distance of packed rows

enum class Source { kInPlace, kByUnit, kByAll };

template <class T>
struct Tiling {
  int64_t m, n, k;
  Matrix<T> rows, columns;  // m x k and k x n
  bool add;
  T *c;
  int64_t ldc;
  bool transposed;  // result (i, j) is c[j * ldc + i]
  Source from_rows, from_columns;
  int64_t high, wide;  // rows and columns of a unit's tile
  const T *bias = nullptr;  // what a column's sums begin with, unless `add`

  int64_t down() const { return ceil_div(m, high); }
  int64_t across() const { return ceil_div(n, wide); }
  Tiling at(int64_t i, int64_t j, int64_t l) const {
    Tiling part = *this;
    part.rows = rows.at(i, l);
    part.columns = columns.at(l, j);
    part.c = c + (transposed ? j * ldc + i : i * ldc + j);
    if (bias) part.bias = bias + j;
    part.m = m - i;
    part.n = n - j;
    part.k = k - l;
    return part;
  }
};

constexpr int64_t rounded(int64_t n, int64_t unit) { return ceil_div(n, unit) * unit; }

// Rows of `depth` elements whose distance is `stride`.
template <class T>
void pack_group(Matrix<T> a, int64_t rows, int64_t depth, int64_t stride, T *to) {
  constexpr int64_t kSome = 64;  // elements of a row, whose lines stay in the cache
  if (a.rows == 1 && a.columns != 1) {
    for (int64_t l = 0; l < depth; l += kSome)
      transpose_block(reinterpret_cast<char *>(to + l), stride,
                      reinterpret_cast<const char *>(a.at(0, l).data), a.columns,
                      least(kSome, depth - l), rows, sizeof(T));
    return;
  }
  for (int64_t i = 0; i < rows; i++)
    if (a.columns == 1)
      memcpy(to + i * stride, a.data + i * a.rows, size_t(depth) * sizeof(T));
    else
      for (int64_t l = 0; l < depth; l++) to[i * stride + l] = a.data[i * a.rows + l * a.columns];
}

// Whether a group of rows can be read where it lies: some processors keep eight lines whose
// distance is a multiple of 4096 bytes in their first-level cache.
template <class T>
bool rows_avoid_conflicts(Matrix<T> a) {
  return a.columns == 1 && a.rows * int64_t(sizeof(T)) % 2048 != 0;
}

// An estimate of the cycles of a product in one of its two orientations.
template <class T>
int64_t cost(int64_t m, int64_t n, int64_t k, Matrix<T> rows, Matrix<T> columns, bool transposed) {
  const int64_t groups = ceil_div(m, tile_rows<T>()), each = ceil_div(m, groups);
  const int64_t squares = groups * ceil_div(n, 2 * kPanel<T>) * k * most(each, 4);
  const int64_t packing =
      m * k / (rows.columns == 1 ? 8 : 2) + k * n / (columns.columns == 1 ? 8 : 2);
  return squares + packing + (transposed ? m * n / 2 : 0);
}

// Memory of a unit of work.
template <class T>
struct Buffers {
  T *rows, *columns, *results;
  static int64_t size_rows() { return kGroup * kStride<T>; }
  static int64_t size_columns(const Tiling<T> &s) {
    return least(kDepth<T>, s.k) * (s.from_columns == Source::kByUnit ? s.wide : kPanel<T>);
  }
  static int64_t size_results(const Tiling<T> &s) {
    return s.high * (s.transposed ? s.wide : kPanel<T>);
  }
  static int64_t size(const Tiling<T> &s) {
    return size_rows() + size_columns(s) + size_results(s);
  }
  Buffers(T *memory, const Tiling<T> &s)
      : rows(memory), columns(rows + size_rows()), results(columns + size_columns(s)) {}
};

// Operands of which all units use parts: rows one after the other with a gap, panels of columns.
template <class T>
struct Shared {
  const T *rows = nullptr, *columns = nullptr;
  int64_t stride = 0, depth = 0;  // of rows; of panels
};

// Copies what sums begin with, or results, between a unit's buffer and c.
template <class T>
void read_results(const Tiling<T> &s, int64_t m, int64_t from, int64_t to, T *results,
                  int64_t width) {
  for (int64_t i = 0; i < m; i++)
    for (int64_t j = from; j < to; j++)
      results[i * width + j - from] = !s.add         ? s.bias[j]
                                      : s.transposed ? s.c[j * s.ldc + i]
                                                     : s.c[i * s.ldc + j];
}
template <class T>
void write_results(const Tiling<T> &s, int64_t m, int64_t from, int64_t to, const T *results,
                   int64_t width) {
  if (s.transposed)
    return transpose_block(reinterpret_cast<char *>(s.c + from * s.ldc), s.ldc,
                           reinterpret_cast<const char *>(results), width, m, to - from, sizeof(T));
  for (int64_t i = 0; i < m; i++)
    memcpy(s.c + i * s.ldc + from, results + i * width, size_t(to - from) * sizeof(T));
}

// The first m x n results of s, from `depth` products each.
template <class T>
void multiply_unit(const Tiling<T> &s, int64_t m, int64_t n, int64_t depth, Shared<T> shared,
                   Buffers<T> buffers) {
  constexpr int64_t w = kPanel<T>;
  const int64_t whole = n / w * w, padded_n = rounded(n, w);
  const int64_t direct = s.transposed ? 0 : whole, width = padded_n - direct;
  const bool panels_apart = s.from_columns == Source::kInPlace && whole < n;
  if ((s.add || s.bias) && direct < n) read_results(s, m, direct, n, buffers.results, width);
  const int64_t groups = ceil_div(m, tile_rows<T>()), each = m / groups, larger = m % groups;
  for (int64_t l = 0; l < depth; l += kDepth<T>) {
    const int64_t d = least(kDepth<T>, depth - l);
    const bool add = s.add || l > 0;
    Panels<T> panels = Panels<T>::of_rows(s.columns.at(l, 0).data, s.columns.rows), last{};
    if (s.from_columns == Source::kByAll) {
      panels = Panels<T>::packed(shared.columns + l * w, shared.depth);
    } else if (s.from_columns == Source::kByUnit) {
      pack_panels(s.columns.at(l, 0), d, n, buffers.columns);
      panels = Panels<T>::packed(buffers.columns, d);
    }
    last = panels;
    last.data += whole / w * panels.panel;
    if (panels_apart) {
      pack_panels(s.columns.at(l, whole), d, n - whole, buffers.columns);
      last = Panels<T>::packed(buffers.columns, d);
    }
    for (int64_t g = 0, i = 0; g < groups; g++) {
      const int64_t height = each + (g < larger);
      Matrix<T> rows = s.rows.at(i, l);
      if (s.from_rows == Source::kByAll) {
        rows = {shared.rows + i * shared.stride + l, shared.stride, 1};
      } else if (s.from_rows == Source::kByUnit) {
        pack_group(rows, height, d, kStride<T>, buffers.rows);
        rows = {buffers.rows, kStride<T>, 1};
      }
      T *buffered = buffers.results + i * width;
      T *to = s.transposed ? buffered : s.c + i * s.ldc, *rest = buffered + (whole - direct);
      const int64_t pitch = s.transposed ? width : s.ldc;
      const Finish<T> first = s.bias && !add ? Finish<T>{s.bias} : Finish<T>::added(add, to, pitch);
      multiply_tile(height, whole, d, rows, panels, to, pitch, first);
      if (whole < n) multiply_tile(height, w, d, rows, last, rest, width, add || s.bias);
      i += height;
    }
  }
  if (direct < n) write_results(s, m, direct, n, buffers.results, width);
}

// Unit t of s, for `depth` products.
template <class T>
void multiply_unit_at(const Tiling<T> &s, int64_t t, int64_t depth, Shared<T> shared,
                      Buffers<T> buffers) {
  const int64_t i = t / s.across() * s.high, j = t % s.across() * s.wide;
  if (shared.rows) shared.rows += i * shared.stride;
  if (shared.columns) shared.columns += j * shared.depth;
  multiply_unit(s.at(i, j, 0), least(s.high, s.m - i), least(s.wide, s.n - j), depth, shared,
                buffers);
}

// Cuts s into tiles, of which there are `required` if these are not too small.
template <class T>
void cut(Tiling<T> *s, int64_t required, int64_t most_high) {
  int64_t down = ceil_div(s->m, most_high), across = ceil_div(s->n, kWide);
  while (down * across < required) {
    const int64_t h = s->m / down, v = s->n / across;
    if (v >= 2 * kNarrow && (v >= h || h < 2 * kLow))
      across *= 2;
    else if (h >= 2 * kLow)
      down *= 2;
    else
      break;
  }
  s->high = rounded(ceil_div(s->m, down), 12);
  s->wide = rounded(ceil_div(s->n, across), 2 * kPanel<T>);
}

template <class T>
Source source_of_rows(const Tiling<T> &s, Source packed) {
  return rows_avoid_conflicts(s.rows) ? Source::kInPlace
         : s.across() == 1            ? Source::kByUnit
                                      : packed;
}

template <class T>
Tiling<T> tiling(const Product<T> &p) {
  Tiling<T> s{p.m, p.n, p.k, p.a, p.b, p.beta != T(0), p.c, p.ldc, false, {}, {}, 0, 0};
  const int64_t work = p.m * p.n * p.k;
  if (cost(p.n, p.m, p.k, p.b.transposed(), p.a.transposed(), true) <
      cost(p.m, p.n, p.k, p.a, p.b, false)) {
    s.transposed = true;
    s.m = p.n;
    s.n = p.m;
    s.rows = p.b.transposed();
    s.columns = p.a.transposed();
  }
  cut(&s, least(work / kUnit, 64), kHigh);
  const Source packed = work < kShared ? Source::kByUnit : Source::kByAll;
  s.from_rows = source_of_rows(s, packed);
  const bool near = s.columns.columns == 1 && s.k * s.n * int64_t(sizeof(T)) <= kNear;
  s.from_columns = near ? Source::kInPlace : s.down() == 1 ? Source::kByUnit : packed;
  return s;
}
// Packs the operands that all units use, for the first `depth` products.
template <class T>
void pack_shared(const plait_call *c, const Tiling<T> &s, int64_t depth, int64_t stride, T *rows,
                 T *columns) {
  // at least two lines of a row, so that no line is fetched twice
  const int64_t beside = most(2, kChunk / 2 / depth / kPanel<T>) * kPanel<T>;
  const int64_t below = most(2, kChunk / 2 / depth / 8) * 8;
  const int64_t jobs_columns = columns ? ceil_div(s.n, beside) : 0;
  const int64_t jobs_rows = rows ? ceil_div(s.m, below) : 0;
  parallel(c, jobs_columns + jobs_rows, [&](int64_t job) {
    if (job < jobs_columns) {
      const int64_t j = job * beside;
      pack_panels(s.columns.at(0, j), depth, least(beside, s.n - j), columns + j * depth);
    } else {
      const int64_t i = (job - jobs_columns) * below;
      pack_group(s.rows.at(i, 0), least(below, s.m - i), depth, stride, rows + i * stride);
    }
  });
}

// Few results of long sums: units divide the sums, and add up the sums of blocks in their order.
template <class T>
plait_status multiply_deep(const plait_call *c, Tiling<T> s) {
  const int64_t blocks = ceil_div(s.k, kDepth<T>), results = s.m * s.n;
  Workspace space;
  PLAIT_TRY(space.take(c, uint64_t(blocks * results) * sizeof(T)));
  T *sums = space.as<T>();
  s.from_rows = s.from_rows == Source::kByAll ? Source::kByUnit : s.from_rows;
  s.from_columns = s.from_columns == Source::kByAll ? Source::kByUnit : s.from_columns;
  s.high = rounded(s.m, 12);
  s.wide = rounded(s.n, 2 * kPanel<T>);
  const uint64_t nbytes = uint64_t(Buffers<T>::size(s)) * sizeof(T);
  bool failed = false;
  parallel_ranges(c, blocks, 1 + kUnit / 2 / (results * kDepth<T>),
                  [&](int64_t begin, int64_t end) {
                    Workspace memory;
                    if (!memory.try_take(nbytes))
                      return __atomic_store_n(&failed, true, __ATOMIC_RELAXED);
                    for (int64_t b = begin; b < end; b++) {
                      Tiling<T> part = s.at(0, 0, b * kDepth<T>);
                      part.add = false;
                      part.c = sums + b * results;
                      part.ldc = part.transposed ? part.m : part.n;
                      multiply_unit(part, s.m, s.n, least(kDepth<T>, part.k), {},
                                    Buffers<T>(memory.as<T>(), s));
                    }
                  });
  if (failed) return Workspace::out_of_memory(c, nbytes);
  const int64_t width = s.transposed ? s.m : s.n;
  for (int64_t r = 0; r < results; r++) {
    T *to = s.c + r / width * s.ldc + r % width, sum = s.add ? *to + sums[r] : sums[r];
    for (int64_t b = 1; b < blocks; b++) sum += sums[b * results + r];
    *to = sum;
  }
  return PLAIT_OK;
}

// All results of s, whose packed operands are not larger than they may be for one block of k.
template <class T>
plait_status multiply_all(const plait_call *c, Tiling<T> s, const T *packed = nullptr) {
  const bool rows = s.from_rows == Source::kByAll;
  const bool columns = s.from_columns == Source::kByAll && !packed;
  const int64_t across = (rows ? s.m : 0) + (columns ? s.n : 0);
  int64_t depth = s.k;
  if (across && !packed) {
    // long sums of few results are cut into parts, so that what is packed is used while it is near
    const int64_t limit = most(kPackedNear, kPasses * s.m * s.n * int64_t(sizeof(T)));
    depth = least(limit, 2 * kPacked) / across / int64_t(sizeof(T)) / kDepth<T> * kDepth<T>;
    depth = most(depth, kDepth<T>);
  }
  if (depth > s.k) depth = s.k;
  const int64_t stride = depth + 64 / int64_t(sizeof(T));
  Workspace space_rows, space_columns;
  if (rows) PLAIT_TRY(space_rows.take(c, uint64_t(s.m * stride) * sizeof(T)));
  if (columns)
    PLAIT_TRY(space_columns.take(c, uint64_t(rounded(s.n, kPanel<T>) * depth) * sizeof(T)));
  const uint64_t nbytes = uint64_t(Buffers<T>::size(s)) * sizeof(T);
  bool failed = false;
  for (int64_t l = 0; l < s.k; l += depth) {
    Tiling<T> part = s.at(0, 0, l);
    part.add = s.add || l > 0;
    const int64_t d = least(depth, part.k);
    Shared<T> shared{nullptr, packed, stride, d};
    if (across) pack_shared(c, part, d, stride, space_rows.as<T>(), space_columns.as<T>());
    if (rows) shared.rows = space_rows.as<T>();
    if (columns) shared.columns = space_columns.as<T>();
    parallel(c, s.down() * s.across(), [&](int64_t t) {
      Workspace memory;
      if (!memory.try_take(nbytes)) return __atomic_store_n(&failed, true, __ATOMIC_RELAXED);
      multiply_unit_at(part, t, d, shared, Buffers<T>(memory.as<T>(), s));
    });
    if (failed) return Workspace::out_of_memory(c, nbytes);
  }
  return PLAIT_OK;
}

}  // namespace

template <class T>
plait_status gemm_tiled(const plait_call *c, const Product<T> &p) {
  const Tiling<T> s = tiling(p);
  const int64_t units = s.down() * s.across();
  if (s.m * s.n <= kFewResults && units < kFewUnits && s.k >= 4 * kDepth<T> &&
      s.m * s.n * s.k >= 2 * kUnit)
    return multiply_deep(c, s);
  const int64_t limit = kPacked / int64_t(sizeof(T)) / least(s.k, kDepth<T>);
  const int64_t high = ceil_div(limit, s.high) * s.high, wide = ceil_div(limit, s.wide) * s.wide;
  for (int64_t i = 0; i < s.m; i += high)
    for (int64_t j = 0; j < s.n; j += wide) {
      Tiling<T> part = s.at(i, j, 0);
      part.m = least(high, part.m);
      part.n = least(wide, part.n);
      PLAIT_TRY(multiply_all(c, part));
    }
  return PLAIT_OK;
}

template <class T>
plait_status gemm_packed(const plait_call *c, const PackedProduct<T> &p) {
  Tiling<T> s{p.m, p.n, p.k, p.a, {}, false, p.c, p.n, false, {}, Source::kByAll, 0, 0, p.bias};
  const int64_t work = p.m * p.n * p.k;
  // results of many blocks of sums stay in the second-level cache with the operands of a block
  cut(&s, least(work / kUnit, units_wanted(16)), p.m <= kHighAlone ? kHighAlone : kHigh / 2);
  // a wide tile uses a row often enough to pack it for itself
  s.from_rows =
      source_of_rows(s, work < kShared || s.wide >= kWide / 2 ? Source::kByUnit : Source::kByAll);
  return multiply_all(c, s, p.b);
}

// Without memory for a whole tile, smaller ones on the stack are used.
template <class T>
void gemm_tiled_serial(const Product<T> &p) {
  Tiling<T> s = tiling(p);
  for (Source *from : {&s.from_rows, &s.from_columns})
    if (*from == Source::kByAll) *from = Source::kByUnit;
  alignas(64) char stack[80 << 10];
  Workspace space;
  T *memory = reinterpret_cast<T *>(stack);
  s.high = s.m < kHigh ? rounded(s.m, 12) : kHigh;
  s.wide = s.n < kWide ? rounded(s.n, 2 * kPanel<T>) : kWide;
  const uint64_t nbytes = uint64_t(Buffers<T>::size(s)) * sizeof(T);
  if (nbytes > sizeof stack) {
    if (space.try_take(nbytes)) {
      memory = space.as<T>();
    } else {
      s.high = 12;
      s.wide = 2 * kPanel<T>;
    }
  }
  for (int64_t t = 0; t < s.down() * s.across(); t++)
    multiply_unit_at(s, t, s.k, {}, Buffers<T>(memory, s));
}

#define PLAIT_INSTANCE(T)                                                          \
  template plait_status gemm_tiled(const plait_call *, const Product<T> &);        \
  template plait_status gemm_packed(const plait_call *, const PackedProduct<T> &); \
  template void gemm_tiled_serial(const Product<T> &);
PLAIT_INSTANCE(float)
PLAIT_INSTANCE(double)

}  // namespace plait::core
