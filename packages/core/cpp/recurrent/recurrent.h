// Shared by the kernels of recurrent layers: the rows of steps, and products with a weight that is
// packed once for all steps.
#ifndef PLAIT_CORE_RECURRENT_H
#define PLAIT_CORE_RECURRENT_H
#include "kernel/dense.h"
#include "linalg/gemm.h"
#include "linalg/tile.h"

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

// Sequences are divided into shares, which threads take through all steps without waiting for each
// other. The number of shares depends on the sizes only.
inline int64_t shares(int64_t batch, int64_t work) {
  if (batch < 8 || work < (1 << 20)) return 1;
  return 2 * ceil_div(batch, 32);
}

// f(first sequence, last sequence, memory of `size` elements of each sequence)
template <class T, class F>
plait_status each_share(const plait_call *c, int64_t batch, int64_t work, int64_t size, F &&f) {
  const int64_t n = shares(batch, work), each = ceil_div(batch, n);
  const uint64_t nbytes = uint64_t(each * size + 16) * sizeof(T);
  bool failed = false;
  parallel(c, n, [&](int64_t i) {
    Workspace space;
    if (!space.try_take(nbytes)) return __atomic_store_n(&failed, true, __ATOMIC_RELAXED);
    const int64_t begin = i * batch / n, end = (i + 1) * batch / n;
    if (begin < end) f(begin, end, space.as<T>());
  });
  return failed ? Workspace::out_of_memory(c, nbytes) : PLAIT_OK;
}

// A matrix as panels, packed on all threads.
template <class T>
class PackedWeight {
 public:
  plait_status take(const plait_call *c, Matrix<T> w, int64_t depth, int64_t columns) {
    depth_ = depth;
    const int64_t panels = ceil_div(columns, kPanel<T>);
    PLAIT_TRY(space_.take(c, uint64_t(panels * kPanel<T> * depth + 16) * sizeof(T)));
    parallel_ranges(c, panels, kSerial / (depth + 1) / kPanel<T> + 1,
                    [&](int64_t begin, int64_t end) {
                      const int64_t from = begin * kPanel<T>;
                      const int64_t to = end * kPanel<T> < columns ? end * kPanel<T> : columns;
                      pack_panels(w.at(0, from), depth, to - from, space_.as<T>() + from * depth);
                    });
    return PLAIT_OK;
  }
  Panels<T> panels() const { return Panels<T>::packed(space_.as<T>(), depth_); }

 private:
  int64_t depth_ = 0;
  Workspace space_;
};

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
#endif  // PLAIT_CORE_RECURRENT_H
