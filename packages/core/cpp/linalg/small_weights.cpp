#include "linalg/small_weights.h"

#include "kernel/copy.h"
#include "kernel/half.h"
#include "kernel/integers.h"
#include "kernel/transpose.h"
#include "kernel/vec.h"
#include "linalg/gemm.h"
#include "linalg/tile.h"

namespace plait::core {
namespace {

constexpr int64_t kDot = 4 * kRun;  // products of a run, of which a lane of vectors sums up a part
// The most rows of a unit of work, and its rows if there are few units; its panels.
constexpr int64_t kMostHigh = 512, kHigh = 96, kBeside = 4;
constexpr int64_t kUnits = 16;  // so many units are worth their widening
constexpr int64_t kDeep = 64;  // elements of a row that are widened before they are transposed

constexpr int64_t kRowsAhead = 8, kShortRow = 2048;  // bytes of a row that is prefetched

struct Int8 {
  typedef int8_t type;
  static PLAIT_INLINE Vec<float> eight(const int8_t *from) {
#if defined(__AVX2__)
    const __m128i some = _mm_loadl_epi64(reinterpret_cast<const __m128i *>(from));
    return Vec<float>(_mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(some)));
#else
    return __builtin_convertvector(widened<int8_t, Vec<int32_t> >(from), Vec<float>);
#endif
  }
  static PLAIT_INLINE float one(int8_t x) { return float(x); }
};

// ---- few rows --------------------------------------------------------------------------------

// The products of R rows of weights and M rows of a: sums[i * R + r].
template <class W, int R, int M>
PLAIT_INLINE void dots(const typename W::type *w, int64_t w_row, const float *a, int64_t a_row,
                       int64_t k, float *sums) {
  constexpr int V = M == 1 ? 4 : 1;
  Vec<float> acc[R][M][V] = {};
  int64_t l = 0;
  for (; l + V * 8 <= k; l += V * 8)
    for (int v = 0; v < V; v++) {
      Vec<float> factor[M];
      for (int i = 0; i < M; i++) factor[i] = load(a + i * a_row + l + v * 8);
      for (int r = 0; r < R; r++) {
        const Vec<float> weights = W::eight(w + r * w_row + l + v * 8);
        for (int i = 0; i < M; i++) acc[r][i][v] = fused(weights, factor[i], acc[r][i][v]);
      }
    }
  for (int r = 0; r < R; r++)
    for (int i = 0; i < M; i++) {
      float rest = 0;
      for (int64_t j = l; j < k; j++)
        rest = fused(W::one(w[r * w_row + j]), a[i * a_row + j], rest);
      Vec<float> sum = acc[r][i][0];
      if constexpr (V == 4) sum = (sum + acc[r][i][1]) + (acc[r][i][2] + acc[r][i][3]);
      sums[i * R + r] = sum_of<float>(sum) + rest;
    }
}

struct Float {  // weights that were widened before
  typedef float type;
  static PLAIT_INLINE Vec<float> eight(const float *from) { return load(from); }
  static PLAIT_INLINE float one(float x) { return x; }
};

// Adds the products of R rows of weights and all rows of a to sums[i * R + r].
template <class W, int R, int M>
PLAIT_NOINLINE void add_dots(const SmallProduct &p, const typename W::type *w, int64_t w_row,
                             int64_t l, int64_t depth, int64_t i, float *sums) {
  float run[R * M];
  dots<W, R, M>(w, w_row, p.a + i * p.a_row + l, p.a_row, depth, run);
  for (int s = 0; s < R * M; s++) sums[i * R + s] += run[s];
}
template <class W, int R>
void add_all_dots(const SmallProduct &p, const typename W::type *w, int64_t w_row, int64_t l,
                  int64_t depth, float *sums) {
  for (int64_t i = 0; i < p.m;) {
    const int64_t left = p.m - i, some = left == 4 ? 2 : left < 3 ? left : 3;
    (some == 3   ? add_dots<W, R, 3>
     : some == 2 ? add_dots<W, R, 2>
                 : add_dots<W, R, 1>)(p, w, w_row, l, depth, i, sums);
    i += some;
  }
}

// Asks for a run of R rows of weights that are read a few rows later. Where rows are short the
// processor, which follows streams, begins anew too often to do it.
template <class W, int R>
PLAIT_INLINE void ask_for(const typename W::type *w, int64_t w_row, int64_t depth) {
  constexpr int64_t line = 64 / sizeof(typename W::type);
  for (int r = 0; r < R; r++)
    for (int64_t l = 0; l < depth; l += line) __builtin_prefetch(w + r * w_row + l, 0, 2);
}

// The results of R rows of weights. These are widened once if several groups of rows use them.
template <class W, int R>
void all_rows(const SmallProduct &p, int64_t j, bool ask) {
  const typename W::type *w = static_cast<const typename W::type *>(p.w) + j * p.w_row;
  alignas(64) float sums[kRowsInPlace * R] = {}, wide[R * kDot];
  for (int64_t l = 0; l < p.k; l += kDot) {
    const int64_t depth = p.k - l < kDot ? p.k - l : kDot;
    if (ask) ask_for<W, R>(w + l + kRowsAhead * p.w_row, p.w_row, depth);
    if (p.m <= 3) {
      add_all_dots<W, R>(p, w + l, p.w_row, l, depth, sums);
    } else {
      for (int r = 0; r < R; r++) widen_run<W>(wide + r * kDot, w + r * p.w_row + l, depth);
      add_all_dots<Float, R>(p, wide, kDot, l, depth, sums);
    }
  }
  for (int64_t i = 0; i < p.m; i++) finish_row(p, i, j, R, sums + i * R);
}

// One row of weights after the other for one row of a: a stream that the processor fetches ahead.
// Else some rows at a time, which stay in the first-level cache for all rows of a; short ones are
// prefetched, and are two where that hides the time of memory better than four.
template <class W>
void multiply_few(const plait_call *c, const SmallProduct &p) {
  const bool short_rows = p.w_row * int64_t(sizeof(typename W::type)) <= kShortRow;
  const int64_t grain = (kWeightsInPlace / (p.k + 1) + 4) / 4 * 4;
  parallel_ranges(c, p.n, grain, [&](int64_t begin, int64_t end) {
    int64_t j = begin;
    if (p.m > 3 || (p.m > 1 && !short_rows))
      for (; j + 4 <= end; j += 4) all_rows<W, 4>(p, j, short_rows);
    else if (p.m > 1)
      for (; j + 2 <= end; j += 2) all_rows<W, 2>(p, j, true);
    for (; j < end; j++) all_rows<W, 1>(p, j, false);
  });
}

// ---- many rows -------------------------------------------------------------------------------

// A panel of the columns j, j + 1, ... of `depth` rows of the transposed weights from l on,
// widened.
template <class W>
void widen_panel(const SmallProduct &p, int64_t j, int64_t l, int64_t depth, float *to) {
  constexpr int64_t w = kPanel<float>;
  const typename W::type *from =
      static_cast<const typename W::type *>(p.w) + j * p.w_row + l * p.w_column;
  const int64_t columns = p.n - j < w ? p.n - j : w;
  alignas(64) float rows[w * kDeep];
  for (int64_t d = 0; d < depth; d += kDeep) {
    const int64_t some = depth - d < kDeep ? depth - d : kDeep;
    for (int64_t i = 0; i < w; i++) {
      if (i < columns)
        widen_run<W>(rows + i * kDeep, from + i * p.w_row + d, some);
      else
        memset(rows + i * kDeep, 0, kDeep * sizeof(float));
    }
    transpose_block(reinterpret_cast<char *>(to + d * w), w, reinterpret_cast<const char *>(rows),
                    kDeep, w, some, sizeof(float));
  }
}

// The same for some adjacent panels of weights whose columns have adjacent elements: row by row.
template <class W>
void widen_rows(const SmallProduct &p, int64_t j, int64_t panels, int64_t l, int64_t depth,
                float *to) {
  constexpr int64_t w = kPanel<float>;
  const typename W::type *from = static_cast<const typename W::type *>(p.w) + j + l * p.w_column;
  const int64_t whole = least(panels, (p.n - j) / w), rest = p.n - j - whole * w;
  for (int64_t d = 0; d < depth; d++, from += p.w_column, to += w) {
    for (int64_t q = 0; q < whole; q++)
      for (int64_t i = 0; i < w; i += 8) store(to + q * w * depth + i, W::eight(from + q * w + i));
    for (int64_t i = 0; whole < panels && i < w; i++)
      to[whole * w * depth + i] = i < rest ? W::one(from[whole * w + i]) : 0;
  }
}

// Memory of a unit of work: panels, which stay in the second-level cache, and sums.
struct UnitMemory {
  alignas(64) float panels[kBeside * kPanel<float> * kDepth<float>];
  alignas(64) float sums[kMostHigh * kBeside * kPanel<float>];
};

// The results of m rows and some panels from column j on.
template <class W>
void multiply_unit(const SmallProduct &p, int64_t i, int64_t m, int64_t j, UnitMemory *memory) {
  constexpr int64_t w = kPanel<float>;
  const int64_t wide = p.n - j < kBeside * w ? p.n - j : kBeside * w, panels = ceil_div(wide, w);
  int64_t l = 0;
  do {  // the blocks of multiply_tile
    const int64_t depth = p.k - l < kDepth<float> ? p.k - l : kDepth<float>;
    if (p.w_column != 1) widen_rows<W>(p, j, panels, l, depth, memory->panels);
    for (int64_t q = 0; p.w_column == 1 && q < panels; q++)
      widen_panel<W>(p, j + q * w, l, depth, memory->panels + q * w * depth);
    multiply_tile(m, panels * w, depth, Matrix<float>{p.a + i * p.a_row + l, p.a_row, 1},
                  Panels<float>::packed(memory->panels, depth), memory->sums, panels * w, l > 0);
    l += depth;
  } while (l < p.k);
  for (int64_t r = 0; r < m; r++) finish_row(p, i + r, j, wide, memory->sums + r * panels * w);
}

template <class W>
plait_status multiply_many(const plait_call *c, const SmallProduct &p) {
  const int64_t across = ceil_div(p.n, kBeside * kPanel<float>);
  const int64_t required = least(ceil_div(kUnits, across), ceil_div(p.m, kHigh));
  const int64_t down = most(ceil_div(p.m, kMostHigh), required), high = ceil_div(p.m, down);
  bool failed = false;
  parallel(c, down * across, [&](int64_t t) {
    const int64_t i = t % down * high, j = t / down * kBeside * kPanel<float>;
    Workspace space;
    if (!space.try_take(sizeof(UnitMemory)))
      return __atomic_store_n(&failed, true, __ATOMIC_RELAXED);
    if (i < p.m) multiply_unit<W>(p, i, p.m - i < high ? p.m - i : high, j, space.as<UnitMemory>());
  });
  return failed ? Workspace::out_of_memory(c, sizeof(UnitMemory)) : PLAIT_OK;
}

template <class W>
plait_status multiply_as(const plait_call *c, const SmallProduct &p) {
  // tiles sum up a row in the same order whatever the other rows are
  if (p.m > kRowsInPlace || p.w_column != 1 || batch_invariant()) return multiply_many<W>(c, p);
  multiply_few<W>(c, p);
  return PLAIT_OK;
}

}  // namespace

plait_status multiply_small(const plait_call *c, const SmallProduct &p) {
  if (p.m == 0 || p.n == 0) return PLAIT_OK;
  switch (p.w_kind) {
    case BF16: return multiply_as<Bfloat>(c, p);
    case F16: return multiply_as<Half>(c, p);
    case I8: return multiply_as<Int8>(c, p);
    default: return PLAIT_DECLINE;
  }
}

PLAIT_NOINLINE void finish_row(const SmallProduct &p, int64_t row, int64_t j, int64_t n,
                               const float *sums) {
  constexpr int64_t kSome = 64;
  for (int64_t from = 0; from < n; from += kSome) {
    const int64_t many = n - from < kSome ? n - from : kSome, at = row * p.n + j + from;
    float values[kSome];
    for (int64_t i = 0; i < many; i++) values[i] = sums[from + i];
    if (p.scale)
      for (int64_t i = 0; i < many; i++) values[i] *= p.scale[j + from + i];
    if (p.bias)
      for (int64_t i = 0; i < many; i++) values[i] += p.bias[j + from + i];
    if (p.out_kind == F32)
      memcpy(static_cast<float *>(p.out) + at, values, size_t(many) * sizeof(float));
    else
      narrow(p.out_kind, static_cast<uint16_t *>(p.out) + at, values, many);
  }
}

plait_status FloatRows::take(const plait_call *c, const DLTensor *t) {
  const int last = t->ndim - 1;
  const int64_t k = t->shape[last];
  for (int d = 0; d < last; d++) count *= t->shape[d];
  row = k;
  if (kind(t->dtype) == F32 && is_contiguous(t)) {
    data = core::data<float>(t);
    return PLAIT_OK;
  }
  row += k % 512 == 0 ? 16 : 0;  // rows apart by a multiple of 2048 bytes share sets of caches
  PLAIT_TRY(space_.take(c, uint64_t(count * row) * sizeof(float)));
  int64_t strides[PLAIT_MAX_DIMS], step = row;
  strides[last] = 1;
  for (int d = last - 1; d >= 0; d--) {
    strides[d] = step;
    step *= t->shape[d];
  }
  DLTensor wide = *t;
  wide.dtype = DLDataType{kDLFloat, 32, 1};
  wide.strides = strides;
  wide.byte_offset = 0;
  wide.data = space_.as<char>();
  data = space_.as<float>();
  return copy(c, &wide, t);
}

plait_status DenseRows::take(const plait_call *c, const DLTensor *t, bool either) {
  row = t->strides[0];
  data = t->data;
  if (t->strides[1] == 1 || t->shape[1] <= 1) return PLAIT_OK;
  if (either && (row == 1 || t->shape[0] <= 1)) {
    row = 1;
    column = t->strides[1];
    return PLAIT_OK;
  }
  PLAIT_TRY(space_.take(c, uint64_t(numel(t) * size_of(kind(t->dtype)))));
  int64_t strides[2] = {t->shape[1], 1};
  DLTensor dense = *t;
  dense.strides = strides;
  dense.byte_offset = 0;
  dense.data = space_.as<char>();
  data = dense.data;
  row = t->shape[1];
  return copy(c, &dense, t);
}

// ---- products of halves ----------------------------------------------------------------------

namespace {

// out = a wᵀ + bias, where `a` has any number of leading dimensions, and `bias` may be NULL.
plait_status multiply_halves(const plait_call *c, const DLTensor *a, const DLTensor *w,
                             const DLTensor *bias, const DLTensor *out) {
  const Kind dtype = kind(out->dtype);
  FloatRows rows, added;
  DenseRows weights;
  PLAIT_TRY(rows.take(c, a));
  PLAIT_TRY(weights.take(c, w, true));
  if (bias) PLAIT_TRY(added.take(c, bias));
  return multiply_small(
      c, SmallProduct{rows.count, w->shape[0], w->shape[1], rows.data, rows.row, weights.data,
                      weights.row, weights.column, dtype, nullptr, added.data, out->data, dtype});
}

plait_status linear_of_halves(plait_call *c) {
  if (!is_half(kind(result(c)->dtype)) || tensor(c, 0)->ndim == 0) return PLAIT_DECLINE;
  return multiply_halves(c, tensor(c, 0), tensor(c, 1), tensor(c, 2), result(c));
}

// A matrix with its dimensions exchanged.
struct Turned {
  DLTensor t;
  int64_t shape[2], strides[2];
  explicit Turned(const DLTensor *of)
      : t(*of), shape{of->shape[1], of->shape[0]}, strides{of->strides[1], of->strides[0]} {
    t.shape = shape;
    t.strides = strides;
  }
  Turned(const Turned &) = delete;
  Turned &operator=(const Turned &) = delete;
};

// A product a b with one column reads a as the weights.
plait_status mm_of_halves(plait_call *c) {
  const DLTensor *a = tensor(c, 0), *b = tensor(c, 1);
  if (!is_half(kind(result(c)->dtype))) return PLAIT_DECLINE;
  const Turned turned(b);
  return b->shape[1] == 1 ? multiply_halves(c, &turned.t, a, nullptr, result(c))
                          : multiply_halves(c, a, &turned.t, nullptr, result(c));
}

plait_status mv_of_halves(plait_call *c) {
  if (!is_half(kind(result(c)->dtype))) return PLAIT_DECLINE;
  return multiply_halves(c, tensor(c, 1), tensor(c, 0), nullptr, result(c));
}

// With a vector that is added to all rows; other terms and factors are left to the fallback.
plait_status addmm_of_halves(plait_call *c) {
  const DLTensor *self = tensor(c, 0);
  const bool row = self->ndim == 1 && self->shape[0] == tensor(c, 2)->shape[1];
  if (!is_half(kind(result(c)->dtype)) || !row || real(c, 3) != 1 || real(c, 4) != 1)
    return PLAIT_DECLINE;
  const Turned b(tensor(c, 2));
  return multiply_halves(c, tensor(c, 1), &b.t, self, result(c));
}

PLAIT_KERNEL_SPECIAL("linear", linear_of_halves);
PLAIT_KERNEL_SPECIAL("mm", mm_of_halves);
PLAIT_KERNEL_SPECIAL("mv", mv_of_halves);
PLAIT_KERNEL_SPECIAL("addmm", addmm_of_halves);

}  // namespace
}  // namespace plait::core
