// Shared by the kernels of linear algebra: batches of matrices, copies to and from column-major
// order, and errors that name the matrix.
#pragma once
#include <new>
#include <type_traits>

#include "linalg/lapack.h"

namespace plait::core::linalg {

constexpr int kNoMemory = INT32_MIN;

// The leading dimensions of a result, over which those of the arguments broadcast.
struct Batch {
  const int64_t *shape;
  int ndim;
  int64_t count = 1;
  Batch(const int64_t *s, int n) : shape(s), ndim(n < 0 ? 0 : n) {
    for (int d = 0; d < ndim; d++) count *= shape[d];
  }
  Batch(const DLTensor *t, int core) : Batch(t->shape, t->ndim - core) {}
};

// Elements from the first of `t` to its part at position i of the batch; the part has `core`
// dimensions.
inline int64_t offset_of(const DLTensor *t, int core, const Batch &batch, int64_t i) {
  int64_t offset = 0;
  for (int d = batch.ndim - 1, e = t->ndim - core - 1; d >= 0; d--, e--) {
    const int64_t at = i % batch.shape[d];
    i /= batch.shape[d];
    if (e >= 0 && t->shape[e] != 1) offset += at * t->strides[e];
  }
  return offset;
}

// to[j * ld + i] = from[i * rows + j * columns]
template <class T>
PLAIT_NOINLINE void to_columns(const T *from, int64_t rows, int64_t columns, int64_t m, int64_t n,
                               T *to, int64_t ld) {
  constexpr int64_t tile = 32;  // keeps both sides of a transposition in the cache
  for (int64_t i0 = 0; i0 < m; i0 += tile)
    for (int64_t j0 = 0; j0 < n; j0 += tile) {
      const int64_t i1 = i0 + tile < m ? i0 + tile : m, j1 = j0 + tile < n ? j0 + tile : n;
      for (int64_t j = j0; j < j1; j++)
        for (int64_t i = i0; i < i1; i++) to[j * ld + i] = from[i * rows + j * columns];
    }
}
// Copies a column-major matrix to a rows x columns matrix in C order.
template <class T>
void to_rows(const T *from, int64_t ld, int64_t m, int64_t n, T *to) {
  to_columns(from, ld, int64_t(1), n, m, to, n);
}

// One of the matrices that an argument holds.
template <class T>
struct Part {
  const T *data;
  int64_t rows, columns, row_step, column_step;
  // to column-major order; `flipped`: transposed, not conjugated
  void copy(T *to, bool flipped = false) const {
    if (flipped)
      to_columns(data, column_step, row_step, columns, rows, to, columns);
    else
      to_columns(data, row_step, column_step, rows, columns, to, rows);
  }
};
template <class T>
Part<T> part(const DLTensor *t, const Batch &batch, int64_t i) {
  const int r = t->ndim - 2, k = t->ndim - 1;
  return {data<T>(t) + offset_of(t, 2, batch, i), t->shape[r], t->shape[k], t->strides[r],
          t->strides[k]};
}
// A vector counts as one column.
template <class T>
Part<T> column(const DLTensor *t, const Batch &batch, int64_t i) {
  const int k = t->ndim - 1;
  return {data<T>(t) + offset_of(t, 1, batch, i), t->shape[k], 1, t->strides[k], 1};
}

class Workspaces {  // the buffers for one matrix, and then for the next one
 public:
  // Elements of any value.
  template <class T>
  T *take(int64_t n) {
    const uint64_t bytes = uint64_t(n > 0 ? n : 1) * sizeof(T);
    if (used_ == kMost || (bytes > bytes_[used_] && !replace(used_, bytes))) {
      failed = true;
      return nullptr;
    }
    return space_[used_++].template as<T>();
  }
  void reuse() {
    used_ = 0;
    failed = false;
  }
  // The size of the workspace that a subroutine asked for; 0: it was not asked. The matrices of a
  // call have one size, so that it needs one query.
  int &answer_of(const void *subroutine) {
    int i = 0;
    while (i < kMost - 1 && asked_[i] && asked_[i] != subroutine) i++;
    if (asked_[i] != subroutine) answer_[i] = 0;
    asked_[i] = subroutine;
    return answer_[i];
  }
  bool failed = false;

 private:
  static constexpr int kMost = 10;

  bool replace(int i, uint64_t bytes) {
    space_[i].~Workspace();
    new (&space_[i]) Workspace();
    bytes_[i] = space_[i].try_take(bytes) ? bytes : 0;
    return bytes_[i] > 0;
  }

  Workspace space_[kMost];
  uint64_t bytes_[kMost] = {};
  const void *asked_[kMost] = {};
  int answer_[kMost] = {};
  int used_ = 0;
};

struct Outcome {  // the first matrix that failed, with LAPACK's code; code 0: none failed
  int64_t index = 0;
  int code = 0;
};

// Runs `int f(i, Workspaces &)` for every matrix of a batch; `work` is about the number of flops
// for one.
template <class F>
Outcome each_matrix(const plait_call *c, int64_t count, double work, F &&f) {
  int64_t first = INT64_MAX;  // index and code in one word, so that the smallest index wins
  const int64_t grain = work > 1e5 ? 1 : int64_t(1e5 / (work + 1)) + 1;
  parallel_ranges(c, count, grain, [&](int64_t begin, int64_t end) {
    Workspaces memory;
    for (int64_t i = begin; i < end; i++) {
      memory.reuse();
      const int code = f(i, memory);
      if (code == 0) continue;
      const int64_t packed = i << 32 | uint32_t(code);
      int64_t smallest = __atomic_load_n(&first, __ATOMIC_RELAXED);
      while (packed < smallest &&
             !__atomic_compare_exchange_n(&first, &smallest, packed, false, __ATOMIC_RELAXED,
                                          __ATOMIC_RELAXED)) {
      }
    }
  });
  if (first == INT64_MAX) return {};
  return {first >> 32, int(uint32_t(first))};
}

// Fails for the matrix of an outcome: "`A` at batch index (1, 0) is singular: ..."; `reason` is the
// reason, with one %d for the code.
plait_status fail_at(const plait_call *c, const Outcome &o, const Batch &batch, const char *name,
                     const char *reason);

// Whether LAPACK's int holds the sizes.
inline bool fits(int64_t m, int64_t n = 0) { return m < INT32_MAX && n < INT32_MAX; }
plait_status too_large(const plait_call *c);

// The matrices of a call's first argument, m x n.
struct Matrices {
  explicit Matrices(const plait_call *c)
      : a(tensor(c, 0)),
        batch(a, 2),
        m(a->shape[a->ndim - 2]),
        n(a->shape[a->ndim - 1]),
        k(m < n ? m : n) {}

  // Runs `int f(i, T *at, Workspaces &)` for every matrix with a copy in column-major order, which
  // has room for as many elements as the matrix and `more`. `work` and `reason` are those of
  // each_matrix and fail_at.
  template <class T, class F>
  plait_status each(const plait_call *c, double work, const char *reason, F &&f,
                    int64_t more = 0) const {
    if (!fits(m, n)) return too_large(c);
    const Outcome o = each_matrix(c, batch.count, work, [&](int64_t i, Workspaces &memory) {
      T *at = memory.take<T>(m * n + more);
      if (memory.failed) return kNoMemory;
      part<T>(a, batch, i).copy(at);
      return f(i, at, memory);
    });
    return o.code ? fail_at(c, o, batch, plait_arg_at(c->op, 0)->name, reason) : PLAIT_OK;
  }

  const DLTensor *a;
  const Batch batch;
  const int64_t m, n, k;  // k: the smaller of both
};

constexpr const char *kRefused = "was refused by LAPACK (%d)";

// The result `info` of operators that have it: result i, an int32 for each matrix.
inline int32_t *infos(const plait_call *c, int i) {
  return c->n_out > i ? data<int32_t>(result(c, i)) : nullptr;
}

// The size of a workspace from the first element after a workspace query.
template <class T>
int queried(T first) {
  return int(real_part(first)) + 1;
}

template <class F>
constexpr char kIdentity = 0;  // an address for each type of function

// Calls `run(work, &lwork, &info)` of a subroutine with a workspace, for the first matrix also to
// ask for the size of that. Returns `info`.
template <class T, class F>
int with_workspace(Workspaces &memory, F &&run) {
  int info = 0, &lwork = memory.answer_of(&kIdentity<std::decay_t<F>>);
  if (lwork == 0) {
    int size = -1;
    T ask{};
    run(&ask, &size, &info);
    lwork = queried(ask);
  }
  T *work = memory.take<T>(lwork);
  if (memory.failed) return kNoMemory;
  run(work, &lwork, &info);
  return info;
}

// The same with a workspace of `size` elements; 0: ask for the size.
template <class T, class F>
int with_workspace(Workspaces &memory, int size, F &&run) {
  if (size == 0) return with_workspace<T>(memory, run);
  T *work = memory.take<T>(size);
  if (memory.failed) return kNoMemory;
  int info = 0;
  run(work, &size, &info);
  return info;
}

// Whether all elements are finite: LAPACK may never return from a matrix with others.
template <class T>
bool finite(const T *a, int64_t n) {
  for (int64_t i = 0; i < n; i++)
    if (!__builtin_isfinite(magnitude(a[i]))) return false;
  return true;
}

// P A = L U in place of A.
template <class T>
int getrf(int m, int n, T *a, int *pivots) {
  int info = 0, ld = m > 1 ? m : 1;
  fortran(lapack<T>().getrf, &m, &n, a, &ld, pivots, &info);
  return info;
}

}  // namespace plait::core::linalg
