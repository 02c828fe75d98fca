// Shared by the kernels of recurrent layers: the rows of steps, blocks of hidden units, and
// products with a weight that is packed once for all steps.
#pragma once
#include "kernel/avx512.h"
#include "kernel/dense.h"
#include "linalg/gemm.h"
#include "linalg/tile.h"
#include "recurrent/step_threads.h"

namespace plait::core {

// The layout of packed sequences: a row of each sequence for the first step, then for the second,
// and so on.
class Steps {
 public:
  plait_status take(const plait_call *c, const plait_value &sizes, bool reverse) {
    sizes_ = sizes.u.is;
    count_ = int64_t(sizes.n);
    reverse_ = reverse;
    PLAIT_TRY(space_.take(c, uint64_t(count_ + 1) * sizeof(int64_t)));
    int64_t *starts = space_.as<int64_t>();
    starts[0] = 0;
    for (int64_t t = 0; t < count_; t++) starts[t + 1] = starts[t] + sizes_[t];
    return PLAIT_OK;
  }
  int64_t count() const { return count_; }
  int64_t batch() const { return count_ ? sizes_[0] : 0; }
  int64_t rows() const { return start(count_); }
  // Whether a sequence's k-th step is its last one.
  bool is_last(int64_t k, int64_t row) const { return k + 1 == count_ || row >= sizes_[at(k + 1)]; }
  // The step that is computed k-th; the first row and the number of rows of step t.
  int64_t at(int64_t k) const { return reverse_ ? count_ - 1 - k : k; }
  int64_t start(int64_t t) const { return space_.as<int64_t>()[t]; }
  int64_t size(int64_t t) const { return sizes_[t]; }

  // Calls f(begin, end, row) for rows of step t whose state before comes from the rows of another
  // step from `row` on, or from the first state if `row` is negative.
  template <class F>
  void before(int64_t t, int64_t begin, int64_t end, F &&f) const {
    const int64_t from = reverse_ ? t + 1 : t - 1;
    int64_t known = from < 0 || from >= count_ ? 0 : sizes_[from];
    if (known > end) known = end;
    if (known > begin) f(begin, known, start(from));
    if (known < begin) known = begin;
    if (known < end) f(known, end, int64_t(-1));
  }
  // The state before a row of step t: a row of `output`, which has the state of every row, or of
  // `first`.
  template <class T>
  const T *row_before(int64_t t, int64_t row, const T *output, const T *first,
                      int64_t width) const {
    const int64_t from = reverse_ ? t + 1 : t - 1;
    const bool known = from >= 0 && from < count_ && row < sizes_[from];
    return known ? output + (start(from) + row) * width : first + row * width;
  }

 private:
  const int64_t *sizes_ = nullptr;
  int64_t count_ = 0;
  bool reverse_ = false;
  Workspace space_;
};

// What a thread computes in a step: the gates of a block of hidden units, for so many sequences at
// a time that their gates stay in the first-level cache. So a thread reads its part of the weight
// only, and the bits do not depend on how the units are divided.
constexpr int64_t kUnits = 32, kSequences = 48;
constexpr int64_t kStepWork = 1 << 17;  // multiplications for one unit of parallel work

struct Block {
  int64_t first, count, wide;  // hidden units; `wide` fills whole panels
};
template <class T>
Block block_of(int64_t i, int64_t units, int64_t width) {
  const int64_t rest = width - i * units, count = rest < units ? rest : units;
  return {i * units, count, ceil_div(count, kPanel<T>) * kPanel<T>};
}

// f(k, block, first sequence, last sequence) for all hidden units of the rows(k) sequences of the
// k-th step, of which no step has more than `most`; `units` is the number of units of a block, and
// `work` the number of multiplications for a unit of one sequence. Few sequences cost as much as
// eight, as reading the weight takes most of the time.
template <class T, class R, class F>
plait_status each_step(const plait_call *c, int64_t steps, int64_t most, int64_t units,
                       int64_t width, int64_t work, R &&rows, F &&f) {
  const int64_t blocks = ceil_div(width, units), groups = ceil_div(most, kSequences);
  const int64_t wanted = ceil_div(kUnits, blocks), parts = groups < wanted ? groups : wanted;
  if (parts == 0) return PLAIT_OK;
  StepThreads threads;
  PLAIT_TRY(threads.take(c, blocks * parts, width * work * (most + 8) / kStepWork));
  threads.run(c, steps, [&](int64_t k, int64_t i) {
    const int64_t n = rows(k), part = i % parts;
    f(k, block_of<T>(i / parts, units, width), part * n / parts, (part + 1) * n / parts);
  });
  return PLAIT_OK;
}

// How far a block's part of a row is fetched before it is used. The processor does not foresee
// where these parts lie: they are short.
enum Cache { kSecond, kFirst };
constexpr int64_t kFetchRows = 4;  // a row is fetched into the first cache so many rows before

// Compilers drop calls of a function that only fetches, as it has no effect.
#define PLAIT_INLINED __attribute__((always_inline))

// Fetches n elements of each of `pieces` pieces that are `apart` elements apart.
template <class T>
PLAIT_INLINE void fetch_units(Cache cache, const T *from, int64_t n, int64_t pieces,
                              int64_t apart) {
  constexpr int64_t line = 64 / int64_t(sizeof(T));
  for (int64_t p = 0; p < pieces; p++, from += apart)
    for (int64_t j = 0; j < n; j += line)
      cache == kFirst ? __builtin_prefetch(from + j, 0, 3) : __builtin_prefetch(from + j, 0, 2);
}

// Elements between rows that are read side by side. Rows whose distance is a multiple of 1024 bytes
// would share sets of the cache.
template <class T>
int64_t spread(int64_t n) {
  const int64_t wide = padded(n);
  return wide * int64_t(sizeof(T)) % 1024 == 0 ? wide + kPadding : wide;
}

// The rows that one step leaves to the next: those that are read, and those that are written.
template <class T>
class Exchange {
 public:
  plait_status take(const plait_call *c, int64_t rows, int64_t columns) {
    row_ = spread<T>(columns);
    size_ = rows * row_;
    return space_.take(c, uint64_t(2 * size_ + 16) * sizeof(T));
  }
  // Rows that are there before the first step.
  void fill(const T *from, int64_t rows, int64_t columns) {
    for (int64_t i = 0; i < 2; i++)
      for (int64_t r = 0; r < rows; r++)
        memcpy(at(i, r), from + r * columns, size_t(columns) * sizeof(T));
  }
  T *at(int64_t step, int64_t row) const {
    return space_.template as<T>() + (step & 1) * size_ + row * row_;
  }
  Matrix<T> rows(int64_t step, int64_t first) const { return {at(step, first), row_, 1}; }

 private:
  int64_t row_ = 0, size_ = 0;
  Workspace space_;
};

// A matrix of `depth` rows and as many columns as each of `gates` has units, packed on all threads:
// the panels of a block's units, gate after gate. A block has `units` units.
template <class T>
class PackedWeight {
 public:
  plait_status take(const plait_call *c, Matrix<T> w, int64_t depth, int64_t gates, int64_t units,
                    int64_t width) {
    depth_ = depth;
    gates_ = gates;
    const int64_t blocks = ceil_div(width, units), each = units * gates * depth;
    PLAIT_TRY(space_.take(c, uint64_t(blocks * each + 16) * sizeof(T)));
    parallel_ranges(c, blocks, kSerial / (each + 1) + 1, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; i++) {
        const Block u = block_of<T>(i, units, width);
        for (int64_t g = 0; g < gates; g++)
          pack_panels(w.at(0, g * width + u.first), depth, u.count, data(u) + g * u.wide * depth);
      }
    });
    return PLAIT_OK;
  }
  Panels<T> panels(const Block &u) const { return Panels<T>::packed(data(u), depth_); }

 private:
  T *data(const Block &u) const { return space_.template as<T>() + u.first * gates_ * depth_; }
  int64_t depth_ = 0, gates_ = 0;
  Workspace space_;
};

// The units of a block of a backward pass. The sums of few sequences are few, and each waits for
// the one before it, so they get more units.
inline int64_t units_back(int64_t batch) { return batch < 4 ? 2 * kUnits : kUnits; }

// The steps of a backward pass, the last first. `gradients` has the rows that the step before it in
// this order left: their product with the weight becomes the gradient of the state in by_h, or is
// added to it. Then f(k, t, row, block, gradient of the block's units) for each row of step t, the
// k-th; fetch(cache, t, row, block) comes before.
template <class T, class P, class F>
plait_status each_step_back(const plait_call *c, const Steps &steps, const Exchange<T> &gradients,
                            const PackedWeight<T> &weight, int64_t width, int64_t gates, T *by_h,
                            bool add, P &&fetch, F &&f) {
  const int64_t count = steps.count();
  const auto rows_of = [&](int64_t k) { return k < 0 || k >= count ? 0 : steps.size(steps.at(k)); };
  const auto most_of = [&](int64_t s) {
    const int64_t k = count - 1 - s, rows = rows_of(k), result = rows_of(k + 1);
    return rows > result ? rows : result;
  };
  return each_step<T>(
      c, count + 1, steps.batch(), units_back(steps.batch()), width, gates * width, most_of,
      [&](int64_t s, Block u, int64_t first, int64_t end) {
        const int64_t k = count - 1 - s, t = k < 0 ? -1 : steps.at(k), rows = rows_of(k),
                      result = rows_of(k + 1), row = u.wide + kPadding;
        const size_t bytes = size_t(u.count) * sizeof(T);
        alignas(64) T tile[kSequences * (kUnits + kPadding)];
        for (; first < end; first += kSequences) {
          const int64_t m = end - first < kSequences ? end - first : kSequences;
          const int64_t products = result < first ? 0 : result - first < m ? result - first : m;
          for (int64_t i = 0; i < m && first + i < rows; i++) fetch(kSecond, t, first + i, u);
          for (int64_t i = 0; i < m; i++)
            memcpy(tile + i * row, by_h + (first + i) * width + u.first, bytes);
          multiply_tile(products, u.wide, gates * width, gradients.rows(k + 1, first),
                        weight.panels(u), tile, row, add);
          for (int64_t i = 0; i < m && first + i < rows; i++) {
            const int64_t ahead = i + kFetchRows;
            if (ahead < m && first + ahead < rows) fetch(kFirst, t, first + ahead, u);
            f(k, t, first + i, u, tile + i * row);
          }
          for (int64_t i = 0; i < m; i++)
            memcpy(by_h + (first + i) * width + u.first, tile + i * row, bytes);
        }
      });
}

// The states before every row, one after the other.
template <class T>
void gather_before(const Steps &steps, const T *output, const T *first, int64_t width, T *to) {
  for (int64_t t = 0; t < steps.count(); t++)
    steps.before(t, 0, steps.size(t), [&](int64_t begin, int64_t end, int64_t row) {
      const T *from = row < 0 ? first + begin * width : output + (row + begin) * width;
      memcpy(to + (steps.start(t) + begin) * width, from,
             size_t((end - begin) * width) * sizeof(T));
    });
}

// The gradient of the weight that states are multiplied with, from the gradients `by_gates` of the
// `gates` products of every row.
template <class T>
plait_status weight_gradient(const plait_call *c, const Steps &steps, const T *by_gates,
                             int64_t gates, const T *output, const T *first, int64_t width,
                             T *weight) {
  Workspace before;
  PLAIT_TRY(before.take(c, uint64_t(steps.rows() * width + 16) * sizeof(T)));
  gather_before(steps, output, first, width, before.as<T>());
  return gemm(c, Product<T>{gates,
                            width,
                            steps.rows(),
                            T(1),
                            {by_gates, 1, gates},
                            {before.as<T>(), width, 1},
                            T(0),
                            weight,
                            width});
}

}  // namespace plait::core
