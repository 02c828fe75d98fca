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
      to[i] =
          sizeof(T) == 4 ? T(__builtin_sqrtf(float(squares[i]))) : T(__builtin_sqrt(squares[i]));
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

// The gradient. Sums of kBlock coordinates stay in registers; many coordinates are a product of
// matrices, so the kernel leaves them to the decomposition.

constexpr int64_t kBlock = 8, kThin = 32;

// The elements of one row, or of a vector's rows, `step` apart.
template <class T>
PLAIT_INLINE Vec<T> some(const T *p, int64_t step, int64_t n) {
  if (step == 1 && n >= kLanes<T>) return load(p);
  T own[kLanes<T>] = {};
  for (int64_t i = 0; i < n && i < kLanes<T>; i++) own[i] = p[i * step];
  return load(own);
}

template <class T>
PLAIT_INLINE Vec<T> slope(Vec<T> grad, Vec<T> distance) {
  return distance == Vec<T>{} ? Vec<T>{} : grad / distance;
}

// A matrix and how far its rows and columns are apart.
template <class T>
struct Entries {
  const T *data;
  int64_t row, column;
  const T *at(int64_t i, int64_t j) const { return data + i * row + j * column; }
};

// Row i: its sums over m points, which lie in panels of as many as a vector has.
template <class T>
void pull_row(const Entries<T> &g, const Entries<T> &d, int64_t i, const T *x, const T *panels,
              int64_t m, T *to) {
  Vec<T> sums[kBlock] = {};
  for (int64_t j = 0; j < m; j += kLanes<T>, panels += kLanes<T> * kBlock) {
    const Vec<T> f = slope<T>(some(g.at(i, j), g.column, m - j), some(d.at(i, j), d.column, m - j));
    PLAIT_UNROLL for (int64_t k = 0; k < kBlock; k++) sums[k] =
        fused(f, splat(x[k]) - load(panels + k * kLanes<T>), sums[k]);
  }
  for (int64_t k = 0; k < kBlock; k++) to[k] = sum_of<T>(sums[k]);
}

// As many rows as a vector has, from i on, whose points are one panel: for columns whose entries
// lie side by side.
template <class T>
void pull_rows(const Entries<T> &g, const Entries<T> &d, int64_t i, int64_t rows, const T *panel,
               const T *points, int64_t m, T *to) {
  Vec<T> sums[kBlock] = {};
  for (int64_t j = 0; j < m; j++, points += kBlock) {
    const Vec<T> f = slope<T>(some(g.at(i, j), g.row, rows), some(d.at(i, j), d.row, rows));
    PLAIT_UNROLL for (int64_t k = 0; k < kBlock; k++) sums[k] =
        fused(f, load(panel + k * kLanes<T>) - splat(points[k]), sums[k]);
  }
  for (int64_t k = 0; k < kBlock; k++) store(to + k * kLanes<T>, sums[k]);
}

// `width` coordinates from `first` on: of each point kBlock side by side, or by panels. Those that
// are missing are 0.
template <class T>
void pack_points(const T *points, int64_t count, int64_t size, int64_t first, bool panels, T *to) {
  const int64_t lanes = panels ? kLanes<T> : 1;
  const int64_t width = size - first < kBlock ? size - first : kBlock;
  for (int64_t j = 0; j < ceil_div(count, lanes) * lanes; j++) {
    T *own = to + j / lanes * lanes * kBlock + j % lanes;
    for (int64_t k = 0; k < kBlock; k++)
      own[k * lanes] = j < count && k < width ? points[j * size + first + k] : T(0);
  }
}

// distances_backward(grad, distances, x1, x2)
template <class T>
plait_status pull_as(const plait_call *c) {
  const DLTensor *x1 = tensor(c, 2), *x2 = tensor(c, 3);
  const int d = x1->ndim;
  const int64_t n = x1->shape[d - 2], m = x2->shape[d - 2], size = x1->shape[d - 1];
  T *out = data<T>(result(c));
  if (numel(result(c)) == 0) return PLAIT_OK;
  if (size > kThin || !is_contiguous(result(c))) return PLAIT_DECLINE;
  const int64_t batches = numel(result(c)) / (n * size);
  Dense<T> points[2], entries[2];
  Entries<T> own[2];
  for (int i = 0; i < 2; i++) {
    PLAIT_TRY(points[i].take(c, tensor(c, 2 + i)));
    const DLTensor *t = tensor(c, i);
    own[i] = {data<T>(t), t->strides[d - 2], t->strides[d - 1]};
    if (d == 2) continue;
    PLAIT_TRY(entries[i].take(c, t));
    own[i] = {entries[i], m, 1};
  }
  constexpr int64_t w = kLanes<T>;
  const bool by_rows = own[1].row != 1 || own[1].column == 1;
  const int64_t room = (ceil_div(n, w) + ceil_div(m, w)) * w * kBlock;
  Workspace space;
  PLAIT_TRY(space.take(c, uint64_t(room) * sizeof(T)));
  T *rows = space.as<T>(), *others = rows + ceil_div(n, w) * w * kBlock;
  for (int64_t b = 0; b < batches; b++, out += n * size) {
    for (int64_t first = 0; first < size; first += kBlock) {
      const int64_t width = size - first < kBlock ? size - first : kBlock;
      pack_points<T>(points[0] + b * n * size, n, size, first, !by_rows, rows);
      pack_points<T>(points[1] + b * m * size, m, size, first, by_rows, others);
      const Entries<T> g = {own[0].data + b * n * m, own[0].row, own[0].column},
                       e = {own[1].data + b * n * m, own[1].row, own[1].column};
      parallel_ranges(c, ceil_div(n, w), ceil_div(kSerial, w * (m + 1) * kBlock),
                      [&](int64_t begin, int64_t end) {
                        T sums[w * kBlock];
                        for (int64_t i = begin * w; i < end * w && i < n; i += w) {
                          const int64_t count = n - i < w ? n - i : w;
                          if (!by_rows)
                            pull_rows(g, e, i, count, rows + i * kBlock, others, m, sums);
                          for (int64_t r = 0; r < count; r++) {
                            T *to = out + (i + r) * size + first;
                            if (by_rows)
                              pull_row(g, e, i + r, rows + (i + r) * kBlock, others, m, sums);
                            for (int64_t k = 0; k < width; k++)
                              to[k] = by_rows ? sums[k] : sums[k * w + r];
                          }
                        }
                      });
    }
  }
  return PLAIT_OK;
}

plait_status distances_backward(plait_call *c){
    PLAIT_FLOATING(kind(result(c) -> dtype), return pull_as<T>(c))}

PLAIT_KERNEL("distances_backward", distances_backward);

}  // namespace
}  // namespace plait::core
