// Products of a matrix and a vector, which read each element of the matrix once. BLAS sums up whole
// rows in one run, whose error grows with their length. Here sums are cut into runs, whose sums are
// added up in pairs.
#include "linalg/gemm.h"

namespace plait::core {
namespace {

// elements of a run; each lane of the vectors sums up a part of it
constexpr int64_t kDot = 4 * kRun;

// Adds up the sums of equal runs in pairs: level[i] has the sum of 2^i of them if bit i of their
// number is set.
template <class T>
class Pairwise {
 public:
  void add(T sum) {
    int i = 0;
    for (; count_ >> i & 1; i++) sum += level_[i];
    level_[i] = sum;
    count_++;
  }
  T total() const {
    T sum = T(0);
    for (int i = 0; count_ >> i; i++)
      if (count_ >> i & 1) sum += level_[i];
    return sum;
  }

 private:
  T level_[48];
  uint64_t count_ = 0;
};

// R contiguous rows of a, times x.
template <class T, int R>
PLAIT_INLINE void dots(const T *a, int64_t rows, const T *x, int64_t n, T *sums) {
  constexpr int64_t w = kLanes<T>;
  constexpr int V = R == 1 ? 4 : 2;
  Vec<T> acc[R][V] = {};
  int64_t l = 0;
  for (; l + V * w <= n; l += V * w)
    for (int v = 0; v < V; v++) {
      const Vec<T> factor = load(x + l + v * w);
      for (int r = 0; r < R; r++) acc[r][v] += load(a + r * rows + l + v * w) * factor;
    }
  for (int r = 0; r < R; r++) {
    Vec<T> sum = acc[r][0] + acc[r][1];
    if constexpr (V == 4) sum += acc[r][2] + acc[r][3];
    T rest = T(0);
    for (int64_t i = l; i < n; i++) rest += a[r * rows + i] * x[i];
    sums[r] = sum_of<T>(sum) + rest;
  }
}

template <class T>
void put(T *to, T sum, T alpha, T beta) {
  *to = beta == T(0) ? alpha * sum : beta * *to + alpha * sum;
}

template <class T, int R>
void some_rows(const Product<T> &p, int64_t i, const T *x) {
  Pairwise<T> sums[R];
  for (int64_t l = 0; l < p.k; l += kDot) {
    T run[R];
    dots<T, R>(p.a.at(i, l).data, p.a.rows, x + l, p.k - l < kDot ? p.k - l : kDot, run);
    for (int r = 0; r < R; r++) sums[r].add(run[r]);
  }
  for (int r = 0; r < R; r++) put(p.c + (i + r) * p.ldc, sums[r].total(), p.alpha, p.beta);
}

// Rows of any strides.
template <class T>
T dot_strided(const T *a, int64_t step_a, const T *b, int64_t step_b, int64_t n) {
  Pairwise<T> sums;
  for (int64_t l = 0; l < n; l += kDot) {
    const int64_t end = n - l < kDot ? n : l + kDot;
    T sum[4] = {};
    int64_t i = l;
    for (; i + 4 <= end; i += 4)
      for (int v = 0; v < 4; v++) sum[v] += a[(i + v) * step_a] * b[(i + v) * step_b];
    for (; i < end; i++) sum[0] += a[i * step_a] * b[i * step_b];
    sums.add((sum[0] + sum[1]) + (sum[2] + sum[3]));
  }
  return sums.total();
}

constexpr int64_t kBeside = 1024;  // results whose sums stay in the first-level cache

// to[j] += the products of R elements of x with R columns of a, for n results.
template <class T, int R>
PLAIT_INLINE void add_columns(const T *a, int64_t columns, const T *x, int64_t step, int64_t n,
                              T *to) {
  T factor[R];
  for (int r = 0; r < R; r++) factor[r] = x[r * step];
  int64_t j = 0;
  for (; j + kLanes<T> <= n; j += kLanes<T>) {
    Vec<T> sum = load(to + j);
    for (int r = 0; r < R; r++) sum += splat(factor[r]) * load(a + r * columns + j);
    store(to + j, sum);
  }
  for (; j < n; j++)
    for (int r = 0; r < R; r++) to[j] += factor[r] * a[r * columns + j];
}

// A matrix with contiguous columns.
template <class T>
void by_columns(const Product<T> &p) {
  alignas(64) T run[kBeside], total[kBeside];
  for (int64_t i = 0; i < p.m; i += kBeside) {
    const int64_t n = p.m - i < kBeside ? p.m - i : kBeside;
    for (int64_t j = 0; j < n; j++) total[j] = T(0);
    in_runs(p.k, [&](int64_t begin, int64_t depth) {
      for (int64_t j = 0; j < n; j++) run[j] = T(0);
      const T *a = p.a.at(i, begin).data, *x = p.b.at(begin, 0).data;
      int64_t l = 0;
      for (; l + 8 <= depth; l += 8)
        add_columns<T, 8>(a + l * p.a.columns, p.a.columns, x + l * p.b.rows, p.b.rows, n, run);
      for (; l < depth; l++)
        add_columns<T, 1>(a + l * p.a.columns, p.a.columns, x + l * p.b.rows, p.b.rows, n, run);
      for (int64_t j = 0; j < n; j++) total[j] += run[j];
    });
    for (int64_t j = 0; j < n; j++) put(p.c + (i + j) * p.ldc, total[j], p.alpha, p.beta);
  }
}

}  // namespace

template <class T>
bool gemv(const Product<T> &p) {
  if (p.a.columns == 1 && p.b.rows == 1) {
    int64_t i = 0;
    for (; i + 4 <= p.m; i += 4) some_rows<T, 4>(p, i, p.b.data);
    for (; i < p.m; i++) some_rows<T, 1>(p, i, p.b.data);
    return true;
  }
  if (p.m == 1) {
    const T sum = dot_strided(p.a.data, p.a.columns, p.b.data, p.b.rows, p.k);
    return put(p.c, sum, p.alpha, p.beta), true;
  }
  if (p.a.rows != 1) return false;
  return by_columns(p), true;
}

template bool gemv(const Product<float> &);
template bool gemv(const Product<double> &);

}  // namespace plait::core
