// Euclidean distances of all pairs of points, from the differences of their coordinates.
#include <limits>

#include "kernel/dense.h"
#include "kernel/vec.h"

namespace plait::core {
namespace {

constexpr int64_t kRows = 4, kVectors = 2;  // of a tile: what fits into 16 registers

template <class T>
constexpr int64_t kColumns = kVectors * kLanes<T>;

// Points side by side: coordinate k of kColumns points, then coordinate k + 1. Points that are
// missing from the last panel are 0.
template <class T>
void pack_panels(const T *points, int64_t count, int64_t size, T *panels) {
  for (int64_t j = 0; j < count; j += kColumns<T>, panels += kColumns<T> * size) {
    const int64_t columns = count - j < kColumns<T> ? count - j : kColumns<T>;
    for (int64_t k = 0; k < size; k++)
      for (int64_t i = 0; i < kColumns<T>; i++)
        panels[k * kColumns<T> + i] = i < columns ? points[(j + i) * size + k] : T(0);
  }
}

// The distance of points whose squares do not fit into the dtype.
template <class T>
PLAIT_NOINLINE T scaled_distance(const T *x, const T *panel, int64_t size) {
  T largest = 0, sum = 0;
  for (int64_t k = 0; k < size; k++) {
    const T d = __builtin_fabs(x[k] - panel[k * kColumns<T>]);
    if (!(d <= largest)) largest = d;  // also NaN
    if (d != d) return d;
  }
  if (largest == 0 || largest - largest != 0) return largest;  // 0 or infinite
  for (int64_t k = 0; k < size; k++) {
    const T d = (x[k] - panel[k * kColumns<T>]) / largest;
    sum = fused(d, d, sum);
  }
  return T(largest * __builtin_sqrt(sum));
}

// Distances of R points, `step` apart, to those of one panel.
template <int64_t R, class T>
PLAIT_INLINE void tile(const T *rows, int64_t step, int64_t size, const T *panel, T *out,
                       int64_t out_step, int64_t columns) {
  const auto fits = [](T square) {
    constexpr T smallest = sizeof(T) == 4 ? T(1e-30) : T(1e-290);
    return square >= smallest && square <= std::numeric_limits<T>::max();
  };
  const T *first = panel;
  Vec<T> sums[R][kVectors] = {};
  for (int64_t k = 0; k < size; k++, panel += kColumns<T>) {
    Vec<T> at[kVectors];
    PLAIT_UNROLL for (int64_t v = 0; v < kVectors; v++) at[v] = load(panel + v * kLanes<T>);
    PLAIT_UNROLL for (int64_t r = 0; r < R; r++) {
      const Vec<T> x = splat(rows[r * step + k]);
      PLAIT_UNROLL for (int64_t v = 0; v < kVectors; v++) {
        const Vec<T> d = x - at[v];
        sums[r][v] = fused(d, d, sums[r][v]);
      }
    }
  }
  PLAIT_UNROLL for (int64_t r = 0; r < R; r++) {
    T squares[kColumns<T>];
    PLAIT_UNROLL for (int64_t v = 0; v < kVectors; v++) store(squares + v * kLanes<T>, sums[r][v]);
    T *to = out + r * out_step;
    bool all_fit = true;
    for (int64_t i = 0; i < columns; i++) {
      to[i] = T(__builtin_sqrt(squares[i]));
      all_fit &= fits(squares[i]);
    }
    if (all_fit) continue;
    for (int64_t i = 0; i < columns; i++)
      if (!fits(squares[i])) to[i] = scaled_distance(rows + r * step, first + i, size);
  }
}

// euclidean_distances(x1, x2)
template <class T>
plait_status distances_as(const plait_call *c) {
  const DLTensor *first = tensor(c, 0), *second = tensor(c, 1);
  const int d = first->ndim;
  const int64_t n = first->shape[d - 2], m = second->shape[d - 2], size = first->shape[d - 1];
  if (numel(result(c)) == 0) return PLAIT_OK;
  const int64_t batches = numel(result(c)) / (n * m), panels = ceil_div(m, kColumns<T>);
  Dense<T> x1, x2;
  PLAIT_TRY(x1.take(c, first));
  PLAIT_TRY(x2.take(c, second));
  DenseResult<T> y;
  PLAIT_TRY(y.take(c, result(c)));
  const int64_t room = panels * kColumns<T> * size;
  Workspace space;
  PLAIT_TRY(space.take(c, uint64_t(room) * sizeof(T)));
  T *packed = space.as<T>();
  const int64_t blocks = ceil_div(n, kRows);
  for (int64_t b = 0; b < batches; b++) {
    const T *rows = x1 + b * n * size;
    T *out = y + b * n * m;
    pack_panels(x2 + b * m * size, m, size, packed);
    parallel_ranges(
        c, blocks, ceil_div(kSerial, kRows * m * (size + 4)), [&](int64_t begin, int64_t end) {
          for (int64_t p = 0; p < panels; p++) {
            const int64_t j = p * kColumns<T>, columns = m - j < kColumns<T> ? m - j : kColumns<T>;
            const T *panel = packed + j * size;
            for (int64_t i = begin * kRows; i < end * kRows && i < n; i += kRows) {
              if (n - i >= kRows) {
                tile<kRows>(rows + i * size, size, size, panel, out + i * m + j, m, columns);
                continue;
              }
              for (int64_t r = i; r < n; r++)
                tile<1>(rows + r * size, size, size, panel, out + r * m + j, m, columns);
            }
          }
        });
  }
  return y.give_back(c);
}

plait_status euclidean_distances(plait_call *c){
    PLAIT_FLOATING(kind(result(c) -> dtype), return distances_as<T>(c))}

PLAIT_KERNEL("euclidean_distances", euclidean_distances);

}  // namespace
}  // namespace plait::core
