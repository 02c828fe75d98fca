// Inverses and solutions of square systems.
#include "linalg/matrix_batches.h"

namespace plait::core::linalg {
namespace {

const char *const kSingular =
    "is singular: the pivot in column %d is 0, so it has no inverse; solve in the least squares "
    "sense with linalg.lstsq or linalg.pinv";

// linalg_inv, linalg_inv_ex: (inverse[, info])

template <class T>
int invert(int n, T *a, int *pivots, Workspaces &memory) {
  if (const int failed = getrf<T>(n, n, a, pivots)) return failed;
  return with_workspace<T>(memory, [&](T *work, int *lwork, int *info) {
    fortran(lapack<T>().getri, &n, a, &n, pivots, work, lwork, info);
  });
}
template <class T>
plait_status inverse(plait_call *c) {
  const Matrices a(c);
  const int64_t n = a.n;
  T *out = data<T>(result(c));
  int32_t *info = infos(c, 1);
  const bool raises = !info || integer(c, 1);
  return a.each<T>(c, 2.0 * n * n * n, kSingular, [&](int64_t i, T *at, Workspaces &memory) {
    int *pivots = memory.take<int>(n);
    if (memory.failed) return kNoMemory;
    const int failed = n ? invert<T>(int(n), at, pivots, memory) : 0;
    to_rows(at, n, n, n, out + i * n * n);
    if (info) info[i] = failed;
    return raises || failed == kNoMemory ? failed : 0;
  });
}
PLAIT_LINALG_KERNEL("linalg_inv", inverse);
PLAIT_KERNEL("linalg_inv_ex", inverse_any);

// linalg_solve_ex: (result, info)

// Whether B is a batch of vectors: the shape function has decided, and the result shows it.
bool vectors(const DLTensor *a, const DLTensor *b, const DLTensor *out) {
  return b->ndim == 1 || (b->ndim + 1 == a->ndim && out->ndim + 1 == a->ndim);
}

template <class T>
plait_status solve(plait_call *c) {
  const DLTensor *a = tensor(c, 0), *b = tensor(c, 1), *out = result(c);
  const bool vector = vectors(a, b, out), flipped = !integer(c, 2);
  const int core = vector ? 1 : 2;
  const Batch batch(out, core);
  const int64_t n = a->shape[a->ndim - 1];
  const int64_t k = vector ? 1 : out->shape[out->ndim - (flipped ? 2 : 1)];
  if (!fits(n, k)) return too_large(c);
  T *to = data<T>(out);
  int32_t *info = infos(c, 1);
  const Outcome o =
      each_matrix(c, batch.count, double(n) * n * (n + k), [&](int64_t i, Workspaces &memory) {
        T *at = memory.take<T>(n * n), *x = memory.take<T>(n * k);
        int *pivots = memory.take<int>(n);
        if (memory.failed) return kNoMemory;
        part<T>(a, batch, i).copy(at);
        if (vector)
          column<T>(b, batch, i).copy(x);
        else
          part<T>(b, batch, i).copy(x, flipped);
        char trans = flipped ? 'T' : 'N';  // X A = B is A^T X^T = B^T
        int rows = int(n), columns = int(k), failed = 0;
        if (n && k) failed = getrf<T>(rows, rows, at, pivots);
        if (n && k && !failed)
          fortran(lapack<T>().getrs, &trans, &rows, &columns, at, &rows, pivots, x, &rows, &failed,
                  kOne);
        if (flipped)
          memcpy(to + i * n * k, x,
                 size_t(n * k) * sizeof(T));  // columns of x are rows of the result
        else
          to_rows(x, n, n, k, to + i * n * k);
        info[i] = failed;
        return integer(c, 3) ? failed : 0;
      });
  return o.code ? fail_at(c, o, batch, "A", kSingular) : PLAIT_OK;
}
PLAIT_LINALG_KERNEL("linalg_solve_ex", solve);

// regular_factors(A): (LU, pivots), each matrix of LU in column-major order
template <class T>
plait_status factor(plait_call *c) {
  const DLTensor *a = tensor(c, 0);
  const Batch batch(a, 2);
  const int64_t n = a->shape[a->ndim - 1];
  if (!fits(n)) return too_large(c);
  T *lu = data<T>(result(c, 0));
  int32_t *pivots = data<int32_t>(result(c, 1));
  const Outcome o = each_matrix(c, batch.count, double(n) * n * n, [&](int64_t i, Workspaces &) {
    part<T>(a, batch, i).copy(lu + i * n * n);
    return n ? getrf<T>(int(n), int(n), lu + i * n * n, pivots + i * n) : 0;
  });
  return o.code ? fail_at(c, o, batch, "A", kSingular) : PLAIT_OK;
}
PLAIT_LINALG_KERNEL("regular_factors", factor);

}  // namespace
}  // namespace plait::core::linalg
