// Matrix products by wide tiles, on processors that have them. Both operands are packed once, on
// all threads, instead of once for each tile.
#include "kernel/transpose.h"
#include "linalg/gemm.h"
#include "linalg/tile.h"

namespace plait::core {
namespace {

constexpr int64_t kWork = 1 << 20;  // packing pays from this number of multiplications on
constexpr uint64_t kLargest = 64 << 20;  // bytes of packed operands
constexpr int64_t kRows = 192, kBeside = 128;  // largest numbers of rows and columns of a tile
constexpr int64_t kEdge = 48;

// a's rows [begin, end), one after the other with a gap: rows whose distance is a power of two
// would share sets of the cache.
template <class T>
void pack_a(const Product<T> &p, int64_t begin, int64_t end, int64_t width, T *to) {
  if (p.a.columns == 1) {
    for (int64_t i = begin; i < end; i++)
      memcpy(to + i * width, p.a.data + i * p.a.rows, sizeof(T) * size_t(p.k));
    return;
  }
  transpose_block(reinterpret_cast<char *>(to + begin * width), width,
                  reinterpret_cast<const char *>(p.a.data + begin), p.a.columns, p.k, end - begin,
                  sizeof(T));
}

// One tile; columns that do not fill a panel go through a buffer.
template <class T>
void tile(const Product<T> &p, Matrix<T> a, Panels<T> b, int64_t rows, int64_t columns, T *c) {
  const bool add = p.beta != T(0);
  const int64_t whole = columns / kPanel<T> * kPanel<T>, rest = columns - whole;
  multiply_tile(rows, whole, p.k, a, b, c, p.ldc, add);
  if (!rest) return;
  alignas(64) T edge[kEdge * kPanel<T>];
  b.data += whole / kPanel<T> * b.panel;
  for (int64_t i = 0; i < rows; i += kEdge) {
    const int64_t m = rows - i < kEdge ? rows - i : kEdge;
    multiply_tile(m, kPanel<T>, p.k, a.at(i, 0), b, edge, kPanel<T>, false);
    for (int64_t r = 0; r < m; r++)
      for (int64_t j = 0; j < rest; j++) {
        T *to = c + (i + r) * p.ldc + whole + j;
        *to = add ? *to + edge[r * kPanel<T> + j] : edge[r * kPanel<T> + j];
      }
  }
}

}  // namespace

template <class T>
plait_status gemm_tiled(const plait_call *c, const Product<T> &p) {
  const bool plain = p.alpha == T(1) && (p.beta == T(0) || p.beta == T(1));
  const bool laid = (p.a.columns == 1 || p.a.rows == 1) && (p.b.columns == 1 || p.b.rows == 1);
  const bool large = p.m >= 24 && p.n >= 32 && p.k >= 32 && p.m * p.n * p.k >= kWork;
  if (!has_wide_tiles() || !plain || !laid || !large || batch_invariant()) return PLAIT_DECLINE;
  const int64_t panels = ceil_div(p.n, kPanel<T>), width = p.k + kPadding;
  const bool packed = p.a.columns != 1 || p.a.rows * int64_t(sizeof(T)) % 1024 == 0;
  const uint64_t bytes_b = uint64_t(panels * kPanel<T> * p.k) * sizeof(T),
                 bytes_a = packed ? uint64_t(p.m * width) * sizeof(T) : 0;
  if (bytes_a + bytes_b > kLargest) return PLAIT_DECLINE;
  Workspace space_a, space_b;
  PLAIT_TRY(space_b.take(c, bytes_b));
  if (packed) PLAIT_TRY(space_a.take(c, bytes_a));
  T *a = space_a.as<T>(), *b = space_b.as<T>();
  const int64_t jobs_b = ceil_div(panels, 8), jobs_a = packed ? ceil_div(p.m, 64) : 0;
  parallel(c, jobs_b + jobs_a, [&](int64_t job) {
    if (job < jobs_b) {
      const int64_t j = job * 8 * kPanel<T>, rest = p.n - j;
      pack_panels(p.b.at(0, j), p.k, rest < 8 * kPanel<T> ? rest : 8 * kPanel<T>, b + j * p.k);
    } else {
      const int64_t i = (job - jobs_b) * 64;
      pack_a(p, i, i + 64 < p.m ? i + 64 : p.m, width, a);
    }
  });
  const Matrix<T> rows = packed ? Matrix<T>{a, width, 1} : p.a;
  const int64_t down = ceil_div(p.m, kRows), h = ceil_div(ceil_div(p.m, down), 12) * 12;
  const int64_t across = ceil_div(p.n, kBeside);
  parallel(c, down * across, [&](int64_t t) {
    const int64_t i = t / across * h, j = t % across * kBeside;
    if (i >= p.m) return;
    tile(p, rows.at(i, 0), Panels<T>::packed(b + j * p.k, p.k), p.m - i < h ? p.m - i : h,
         p.n - j < kBeside ? p.n - j : kBeside, p.c + i * p.ldc + j);
  });
  return PLAIT_OK;
}

template plait_status gemm_tiled(const plait_call *, const Product<float> &);
template plait_status gemm_tiled(const plait_call *, const Product<double> &);

}  // namespace plait::core
