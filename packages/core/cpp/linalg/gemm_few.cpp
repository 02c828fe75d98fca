// Products of few rows with a large matrix, as decoding has them, and of a large matrix with few
// columns. The large operand, here called `many`, is read once and where it lies. Vectors run along
// its rows, never along k: if these are what is contiguous, small squares are transposed in
// registers. So a result is the same sum in the same order as by tiles.
#include "kernel/fused.h"
#include "kernel/integers.h"
#include "kernel/lanes.h"
#include "linalg/gemm.h"
#include "linalg/product_sizes.h"
#include "linalg/tile.h"

namespace plait::core {
namespace {

constexpr int64_t kUnitBytes = 1 << 17;  // of `many`, for one unit of parallel work
constexpr int64_t kBlocks = 8;  // of a single sum, which are summed up side by side

// Whether a product of the program has so many rows or columns, of the smaller number.
constexpr bool selects_few(int64_t few) {
  return any_product(
      [few](const ProductSizes &v) { return !v.is_known || (v.m < v.n ? v.m : v.n) == few; });
}
constexpr bool kSelectsSingle =
    any_product([](const ProductSizes &v) { return !v.is_known || (v.m == 1 && v.n == 1); });
// Those of few rows with a matrix whose rows are contiguous.
constexpr bool kSelectsColumns =
    any_product([](const ProductSizes &v) { return !v.is_known || (!v.turned && v.m <= 4); });

template <class T>
constexpr int64_t kLine = 64 / int64_t(sizeof(T));  // elements of a line of the cache
template <class T>
constexpr int64_t kBeside = 2048 / int64_t(sizeof(T));  // sums of a row that stay in the cache

// The sum of row i of few and row j of many is c[i * few_step + j * many_step], which is added to
// if `add`. Rows of few are contiguous.
template <class T>
struct FewRows {
  int64_t m, n, k;
  Matrix<T> few, many;  // m x k and n x k
  bool add;
  T *c;
  int64_t few_step, many_step;

  uint64_t bytes() const { return uint64_t(m * k) * sizeof(T); }  // of few
  // makes rows of few contiguous
  void pack(T *to) {
    for (int64_t i = 0; i < m; i++)
      for (int64_t l = 0; l < k; l++) to[i * k + l] = *few.at(i, l).data;
    few = {to, k, 1};
  }
};

template <class T>
FewRows<T> few_rows(const Product<T> &p) {
  if (p.n < p.m) return {p.n, p.m, p.k, p.b.transposed(), p.a, p.beta != T(0), p.c, 1, p.ldc};
  return {p.m, p.n, p.k, p.a, p.b.transposed(), p.beta != T(0), p.c, p.ldc, 1};
}
// rows of few that these functions are made for
template <class T>
int64_t most_rows(const FewRows<T> &f) {
  if (kSelectsColumns && f.many.rows == 1 && f.many.columns != 1) return 4;
  return f.many.columns == 1 ? kFewRows : 0;
}

// kHalf columns of kLanes rows that begin at `low` and, for the second half of them, at `high`.
template <class T>
PLAIT_INLINE void columns_of(const T *low, const T *high, int64_t stride, Vec<T> *column) {
  for (int i = 0; i < kHalf<T>; i++) column[i] = load_halves(low + i * stride, high + i * stride);
  transpose_halves<T>(column);
}

// sum[r] += kHalf products of row r of x with kLanes rows of w.
template <class T, int R>
PLAIT_INLINE void half_step(const T *x, int64_t apart, const T *low, const T *high, int64_t stride,
                            Vec<T> *sum) {
  Vec<T> column[kHalf<T>];
  columns_of<T>(low, high, stride, column);
  PLAIT_UNROLL for (int q = 0; q < kHalf<T>; q++) {
    PLAIT_UNROLL for (int r = 0; r < R; r++) {
      sum[r] = fused(splat(x[r * apart + q]), column[q], sum[r]);
    }
  }
}

// Rows of `many`, of which kLanes are used at once: kHalf from `first` on, and kHalf that begin
// `second` rows behind it. Passed by reference: a copy would read its fields at once, and wait
// until they are in the cache.
template <class T>
struct SomeRows {
  const T *first;
  int64_t stride, second;
};

// Row r of `sums`, which are `width` apart, = the sums of `depth` products of row r of x with G
// times kLanes rows of w. A line of a row is used up before the next rows are read, as those of
// many rows may share a set of the cache.
template <class T, int R, int G>
PLAIT_NOINLINE void chains(const T *x, int64_t apart, const SomeRows<T> &some, int64_t depth,
                           int64_t ahead, T *sums, int64_t width) {
  constexpr int64_t h = kHalf<T>;
  const T *w = some.first;
  const int64_t stride = some.stride, second = some.second * stride;
  Vec<T> sum[G][R] = {};
  int64_t l = 0;
  for (; l + kLine<T> <= depth; l += kLine<T>) {
    PLAIT_UNROLL for (int g = 0; g < G; g++) {
      const T *low = w + 2 * g * h * stride + l, *high = low + second;
      if (ahead) {
        PLAIT_UNROLL for (int64_t i = 0; i < h; i++) {
          __builtin_prefetch(low + i * stride + ahead, 0, 2);
          __builtin_prefetch(high + i * stride + ahead, 0, 2);
        }
      }
      PLAIT_UNROLL for (int64_t s = 0; s < kLine<T>; s += h) {
        half_step<T, R>(x + l + s, apart, low + s, high + s, stride, sum[g]);
      }
    }
  }
  for (; l + h <= depth; l += h) {
    PLAIT_UNROLL for (int g = 0; g < G; g++) {
      const T *low = w + 2 * g * h * stride + l;
      half_step<T, R>(x + l, apart, low, low + second, stride, sum[g]);
    }
  }
  for (; l < depth; l++) {
    PLAIT_UNROLL for (int g = 0; g < G; g++) {
      Vec<T> column;
      const T *low = w + 2 * g * h * stride + l;
      for (int64_t i = 0; i < h; i++) {
        column[i] = low[i * stride];
        column[h + i] = low[second + i * stride];
      }
      PLAIT_UNROLL for (int r = 0; r < R; r++) {
        sum[g][r] = fused(splat(x[r * apart + l]), column, sum[g][r]);
      }
    }
  }
  PLAIT_UNROLL for (int r = 0; r < R; r++) {
    PLAIT_UNROLL for (int g = 0; g < G; g++) { store(sums + r * width + g * kLanes<T>, sum[g][r]); }
  }
}

template <int R>
struct Rows {
  static constexpr int value = R;
};

template <class T, int G>
void chains_of(int64_t m, const T *x, int64_t apart, const SomeRows<T> &w, int64_t depth,
               int64_t ahead, T *sums, int64_t width) {
  const auto run = [&](auto rows) {
    constexpr int R = decltype(rows)::value;
    if constexpr (selects_few(R) && (G == 1 || R <= 4))
      if (m == R) chains<T, R, G>(x, apart, w, depth, ahead, sums, width);
  };
  run(Rows<1>()), run(Rows<2>()), run(Rows<3>()), run(Rows<4>());
  run(Rows<5>()), run(Rows<6>()), run(Rows<7>()), run(Rows<8>());
}

// total = a new sum, or has it added.
template <class T>
PLAIT_INLINE void add_up(T *total, const T *sum, int64_t count, bool add) {
  for (int64_t i = 0; i < count; i++) total[i] = add ? total[i] + sum[i] : sum[i];
}

// Of sums with two halves of rows, the second of which begins in the first.
template <class T>
PLAIT_INLINE void drop_repeated(T *sums, int64_t n, int64_t second) {
  for (int64_t s = kHalf<T>; s < n; s++) sums[s] = sums[s + kHalf<T> - second];
}

// The sums with rows of many from `j` on, G times kLanes or, if G is 1, fewer.
template <class T, int G>
void some_rows(const FewRows<T> &f, int64_t j, int64_t stop) {
  constexpr int64_t w = G * kLanes<T>, h = kHalf<T>;
  const int64_t n = least(w, stop - j), second = n < w && n >= h ? n - h : h;
  const bool one_block = f.k <= kDepth<T>, single = one_block && !f.add;
  if (one_block && n >= h && f.many_step == 1) {
    const int64_t ahead = j + w < stop ? w * f.many.rows : 0;
    const SomeRows<T> some{f.many.at(j, 0).data, f.many.rows, second};
    T *c = f.c + j;
    if (single && n == w)
      return chains_of<T, G>(f.m, f.few.data, f.few.rows, some, f.k, ahead, c, f.few_step);
    alignas(64) T sums[kFewRows * w];
    chains_of<T, G>(f.m, f.few.data, f.few.rows, some, f.k, ahead, sums, w);
    for (int64_t r = 0; r < f.m; r++) {
      if (second < h) drop_repeated(sums + r * w, n, second);
      add_up(c + r * f.few_step, sums + r * w, n, f.add);
    }
    return;
  }
  alignas(64) T total[kFewRows * w], sums[kFewRows * w], copied[G == 1 ? w * kDepth<T> : 1];
  if (f.add)
    for (int64_t r = 0; r < f.m; r++)
      for (int64_t s = 0; s < w; s++)
        total[r * w + s] = s < n ? f.c[r * f.few_step + (j + s) * f.many_step] : T(0);
  for (int64_t l = 0; l < f.k; l += kDepth<T>) {
    const int64_t d = least(kDepth<T>, f.k - l);
    const T *from = f.many.at(j, l).data;
    int64_t stride = f.many.rows;
    const int64_t ahead = l + kDepth<T> < f.k ? kDepth<T> : j + w < stop ? w * stride - l : 0;
    if (G == 1 && n < h) {
      for (int64_t s = 0; s < w; s++)
        memcpy(copied + s * d, from + least(s, n - 1) * stride, size_t(d) * sizeof(T));
      from = copied;
      stride = d;
    }
    chains_of<T, G>(f.m, f.few.at(0, l).data, f.few.rows, {from, stride, second}, d, ahead, sums,
                    w);
    for (int64_t r = 0; r < f.m && second < h; r++) drop_repeated(sums + r * w, n, second);
    if (!single) add_up(total, sums, f.m * w, f.add || l > 0);
  }
  const T *results = single ? sums : total;
  for (int64_t r = 0; r < f.m; r++)
    for (int64_t s = 0; s < n; s++)
      f.c[r * f.few_step + (j + s) * f.many_step] = results[r * w + s];
}

// Rows [begin, end) of many, which are contiguous. The sums of a single row of few wait for each
// other, so its last ones are computed with some that are known already, rather than alone.
template <class T>
void by_rows(const FewRows<T> &f, int64_t begin, int64_t end) {
  const bool repeats = f.m == 1 && !f.add && end - begin >= 2 * kLanes<T>;
  for (int64_t j = begin; j < end;) {
    const bool wide = f.m <= 4 && (repeats || end - j >= 2 * kLanes<T>);
    if (repeats && end - j < 2 * kLanes<T>) j = end - 2 * kLanes<T>;
    wide ? some_rows<T, 2>(f, j, end) : some_rows<T, 1>(f, j, end);
    j += (wide ? 2 : 1) * kLanes<T>;
  }
}

// run[r][j] += the products of L elements of R rows of x with L rows of b, which are `stride`
// elements apart, for n results. `ahead` is how far away the rows are that come next.
template <class T, int R, int L>
PLAIT_INLINE void add_rows(const T *x, int64_t apart, const T *b, int64_t stride, int64_t ahead,
                           int64_t n, T *run) {
  Vec<T> factor[R][L];
  for (int r = 0; r < R; r++)
    for (int q = 0; q < L; q++) factor[r][q] = splat(x[r * apart + q]);
  int64_t j = 0;
  for (; j + kLanes<T> <= n; j += kLanes<T>) {
    if (j % kLine<T> == 0)
      for (int q = 0; q < L; q++) __builtin_prefetch(b + q * stride + j + ahead, 0, 3);
    Vec<T> wide[L];
    PLAIT_UNROLL for (int q = 0; q < L; q++) wide[q] = load(b + q * stride + j);
    PLAIT_UNROLL for (int r = 0; r < R; r++) {
      Vec<T> sum = load(run + r * kBeside<T> + j);
      PLAIT_UNROLL for (int q = 0; q < L; q++) sum = fused(factor[r][q], wide[q], sum);
      store(run + r * kBeside<T> + j, sum);
    }
  }
  for (; j < n; j++)
    for (int r = 0; r < R; r++) {
      T sum = run[r * kBeside<T> + j];
      for (int q = 0; q < L; q++) sum = fused(x[r * apart + q], b[q * stride + j], sum);
      run[r * kBeside<T> + j] = sum;
    }
}

template <class T, int R>
void some_columns(const FewRows<T> &f, int64_t j, int64_t n) {
  constexpr int L = R == 1 ? 8 : R == 2 ? 4 : 2;
  alignas(64) T run[R * kBeside<T>], total[R * kBeside<T>];
  if (f.add)
    for (int r = 0; r < R; r++)
      for (int64_t s = 0; s < n; s++)
        total[r * kBeside<T> + s] = f.c[r * f.few_step + (j + s) * f.many_step];
  const int64_t stride = f.many.columns;
  for (int64_t begin = 0; begin < f.k; begin += kDepth<T>) {
    const int64_t end = least(f.k, begin + kDepth<T>);
    for (int r = 0; r < R; r++)
      for (int64_t s = 0; s < n; s++) run[r * kBeside<T> + s] = T(0);
    int64_t l = begin;
    for (; l + L <= end; l += L)
      add_rows<T, R, L>(f.few.at(0, l).data, f.few.rows, f.many.at(j, l).data, stride,
                        l + 2 * L <= f.k ? L * stride : 0, n, run);
    for (; l < end; l++)
      add_rows<T, R, 1>(f.few.at(0, l).data, f.few.rows, f.many.at(j, l).data, stride, 0, n, run);
    for (int r = 0; r < R; r++)
      add_up(total + r * kBeside<T>, run + r * kBeside<T>, n, f.add || begin > 0);
  }
  for (int r = 0; r < R; r++)
    for (int64_t s = 0; s < n; s++)
      f.c[r * f.few_step + (j + s) * f.many_step] = total[r * kBeside<T> + s];
}

// Rows [begin, end) of many, whose columns are contiguous.
template <class T>
void by_columns(const FewRows<T> &f, int64_t begin, int64_t end) {
  for (int64_t j = begin; j < end; j += kBeside<T>) {
    const int64_t n = least(kBeside<T>, end - j);
    const auto run = [&](auto rows) {
      constexpr int R = decltype(rows)::value;
      if constexpr (kSelectsColumns && selects_few(R))
        if (f.m == R) some_columns<T, R>(f, j, n);
    };
    run(Rows<1>()), run(Rows<2>()), run(Rows<3>()), run(Rows<4>());
  }
}

// B blocks of a single sum side by side: one after the other, each product would wait for the one
// before.
template <class T, int B>
void blocks_of_one(const T *a, int64_t step_a, const T *b, int64_t step_b, int64_t from,
                   int64_t depth, T *sums) {
  T sum[B];
  for (int s = 0; s < B; s++) sum[s] = sums[s];
  for (int64_t l = from; l < depth; l++)
    for (int s = 0; s < B; s++) {
      const int64_t at = s * kDepth<T> + l;
      sum[s] = fused(a[at * step_a], b[at * step_b], sum[s]);
    }
  for (int s = 0; s < B; s++) sums[s] = sum[s];
}

template <class T>
bool is_single(const Product<T> &p) {
  return p.m == 1 && p.n == 1;
}
template <class T>
void one_result(const Product<T> &p) {
  const T *a = p.a.data, *b = p.b.data;
  const int64_t step_a = p.a.columns, step_b = p.b.rows, k = p.k;
  const bool add = p.beta != T(0);
  T total = *p.c;
  for (int64_t l = 0; l < k;) {
    T sums[kBlocks] = {};
    const int64_t whole = least(kBlocks, (k - l) / kDepth<T>);
    const T *x = a + l * step_a, *y = b + l * step_b;
    int64_t blocks = whole;
    switch (whole) {
      case 8: blocks_of_one<T, 8>(x, step_a, y, step_b, 0, kDepth<T>, sums); break;
      case 7:
      case 6:
      case 5:
      case 4:
        blocks_of_one<T, 4>(x, step_a, y, step_b, 0, kDepth<T>, sums);
        blocks = 4;
        break;
      case 3:
      case 2:
        blocks_of_one<T, 2>(x, step_a, y, step_b, 0, kDepth<T>, sums);
        blocks = 2;
        break;
      case 1: {
        const int64_t rest = least(kDepth<T>, k - l - kDepth<T>);
        blocks_of_one<T, 2>(x, step_a, y, step_b, 0, rest, sums);
        blocks_of_one<T, 1>(x, step_a, y, step_b, rest, kDepth<T>, sums);
        blocks = rest > 0 ? 2 : 1;
        break;
      }
      default: blocks_of_one<T, 1>(x, step_a, y, step_b, 0, k - l, sums); blocks = 1;
    }
    for (int64_t s = 0; s < blocks; s++, l += kDepth<T>)
      total = add || l ? total + sums[s] : sums[s];
  }
  *p.c = total;
}

// Whether the build has functions for so many rows of few.
bool has_code(int64_t few) {
  constexpr bool has[kFewRows + 1] = {true,           selects_few(1), selects_few(2),
                                      selects_few(3), selects_few(4), selects_few(5),
                                      selects_few(6), selects_few(7), selects_few(8)};
  return has[few];
}

template <class T>
void range(const FewRows<T> &f, int64_t begin, int64_t end) {
  if (!kSelectsColumns || f.many.columns == 1) return by_rows(f, begin, end);
  if constexpr (kSelectsColumns) by_columns(f, begin, end);
}

// Rows of many for a unit of parallel work, by the sizes alone.
template <class T>
int64_t grain(const FewRows<T> &f) {
  const int64_t rows = most(kUnitBytes / int64_t(sizeof(T)) / f.k, 1);
  if (f.many.columns == 1) return ceil_div(rows, 4 * kLanes<T>) * 4 * kLanes<T>;
  const int64_t some = ceil_div(least(most(rows, f.n / 8), kBeside<T>), 4 * kLine<T>);
  return most(ceil_div(rows, kBeside<T>) * kBeside<T> * (rows > kBeside<T>), some * 4 * kLine<T>);
}

}  // namespace

template <class T>
bool gemm_few(const plait_call *c, const Product<T> &p) {
  if constexpr (kSelectsSingle)
    if (is_single(p)) return one_result(p), true;
  FewRows<T> f = few_rows(p);
  if (f.m > most_rows(f) || !has_code(f.m)) return false;
  const int64_t each = grain(f);
  if (f.n < 4 * each && f.k >= 4 * kDepth<T>) return false;
  Workspace space;
  if (f.few.columns != 1) {
    if (!space.try_take(f.bytes())) return false;
    f.pack(space.as<T>());
  }
  parallel_ranges(c, f.n, each, [&](int64_t begin, int64_t end) { range(f, begin, end); });
  return true;
}

template <class T>
bool gemm_few_serial(const Product<T> &p, const Batch &batch) {
  if constexpr (kSelectsSingle)
    if (is_single(p)) return batch.in_turn(p, one_result<T>), true;
  FewRows<T> f = few_rows(p);
  if (f.m > most_rows(f) || !has_code(f.m)) return false;
  Workspace space;
  const bool packs = f.few.columns != 1;
  if (packs && !space.try_take(f.bytes())) return false;
  const bool swapped = p.n < p.m;
  for (int64_t i = 0; i < batch.count; i++) {
    if (packs) {
      FewRows<T> packed = f;
      packed.pack(space.as<T>());
      range(packed, 0, f.n);
    } else {
      range(f, 0, f.n);
    }
    f.few.data += swapped ? batch.b : batch.a;
    f.many.data += swapped ? batch.a : batch.b;
    f.c += batch.c;
  }
  return true;
}

#define PLAIT_INSTANCE(T)                                         \
  template bool gemm_few(const plait_call *, const Product<T> &); \
  template bool gemm_few_serial(const Product<T> &, const Batch &);
PLAIT_INSTANCE(float)
PLAIT_INSTANCE(double)

}  // namespace plait::core
