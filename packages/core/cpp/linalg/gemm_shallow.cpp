// Products of few columns with few rows whose result leaves the caches, as the gradients of large
// layers by their weights in small batches. Time goes into writing the result, so it is stored past
// the caches, which also saves reading the lines that are overwritten.
#include "kernel/fused.h"
#include "kernel/integers.h"
#include "kernel/past_caches.h"
#include "linalg/gemm.h"
#include "linalg/product_sizes.h"

namespace plait::core {
namespace {

constexpr int64_t kUnit = 1 << 18;  // bytes of the result, for one unit of parallel work
constexpr bool kSelectsShallow =
    any_product([](const ProductSizes &v) { return !v.is_known || v.k <= kFewRows; });
template <class T>
constexpr int64_t kBlockColumns =
    2048 / int64_t(sizeof(T));  // columns of a block, of which K rows stay in a cache

// n results of a row: K products each, in their order. `b` has rows that are `stride` apart.
template <class T, int K>
void one_row(const T *a, const T *b, int64_t stride, int64_t n, T *c) {
  Vec<T> factor[K];
  for (int l = 0; l < K; l++) factor[l] = splat(a[l]);
  auto scalar = [&](int64_t j) {
    T sum = T(0);
    for (int l = 0; l < K; l++) sum = fused(a[l], b[l * stride + j], sum);
    c[j] = sum;
  };
  int64_t j = 0;
  for (; j < n && reinterpret_cast<uintptr_t>(c + j) % 32; j++) scalar(j);
  for (; j + kLanes<T> <= n; j += kLanes<T>) {
    Vec<T> sum = {};
    PLAIT_UNROLL for (int l = 0; l < K; l++) {
      sum = fused(factor[l], load(b + l * stride + j), sum);
    }
    store_past_aligned(c + j, sum);
  }
  for (; j < n; j++) scalar(j);
}

template <class T>
using Row = void (*)(const T *, const T *, int64_t, int64_t, T *);
template <class T>
constexpr Row<T> kRows[kFewRows] = {one_row<T, 1>, one_row<T, 2>, one_row<T, 3>, one_row<T, 4>,
                                    one_row<T, 5>, one_row<T, 6>, one_row<T, 7>, one_row<T, 8>};

}  // namespace

template <class T>
bool gemm_shallow(const plait_call *c, const Product<T> &p) {
  if constexpr (!kSelectsShallow) return false;
  const uint64_t bytes = uint64_t(p.n) * sizeof(T);
  if (p.k > kFewRows || p.beta != T(0) || p.b.columns != 1) return false;
  if (p.n < kBlockColumns<T> || uint64_t(p.m) * bytes < kPastCaches) return false;
  const int64_t blocks = ceil_div(p.n, kBlockColumns<T>), below = kUnit / 2048;
  parallel(c, ceil_div(p.m, below) * blocks, [&](int64_t unit) {
    const int64_t j = unit % blocks * kBlockColumns<T>, n = least(kBlockColumns<T>, p.n - j);
    const int64_t begin = unit / blocks * below, end = least(begin + below, p.m);
    for (int64_t i = begin; i < end; i++) {
      T row[kFewRows];
      for (int64_t l = 0; l < p.k; l++) row[l] = *p.a.at(i, l).data;
      kRows<T>[p.k - 1](row, p.b.data + j, p.b.rows, n, p.c + i *p.ldc + j);
    }
    finish_stores();
  });
  return true;
}

template bool gemm_shallow(const plait_call *, const Product<float> &);
template bool gemm_shallow(const plait_call *, const Product<double> &);

}  // namespace plait::core
