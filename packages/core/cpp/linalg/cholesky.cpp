// Cholesky factors and triangular systems.
#include "linalg/matrix_batches.h"

namespace plait::core::linalg {
namespace {

const char *const kIndefinite =
    "is not positive definite: its leading minor of order %d is not; add a multiple of the "
    "identity, or use linalg.eigh or linalg.lu_factor";

template <class T>
// the triangle that is not read, in column-major order
void clear_triangle(int64_t n, T *a, bool lower) {
  for (int64_t j = 0; j < n; j++)
    for (int64_t i = lower ? 0 : j + 1; i < (lower ? j : n); i++) a[j * n + i] = T(0);
}

// linalg_cholesky(A, upper), linalg_cholesky_ex(A, upper, check_errors): (L[, info])
template <class T>
plait_status cholesky(plait_call *c) {
  const Matrices a(c);
  const int64_t n = a.n;
  const bool upper = integer(c, 1);
  T *out = data<T>(result(c));
  int32_t *info = infos(c, 1);
  const bool raises = !info || integer(c, 2);
  return a.each<T>(c, double(n) * n * n / 3, kIndefinite, [&](int64_t i, T *at, Workspaces &) {
    char triangle = upper ? 'U' : 'L';
    int rows = int(n), failed = 0;
    if (n) fortran(lapack<T>().potrf, &triangle, &rows, at, &rows, &failed, kOne);
    clear_triangle(n, at, !upper);
    to_rows(at, n, n, n, out + i * n * n);
    if (info) info[i] = failed;
    return raises ? failed : 0;
  });
}
PLAIT_LINALG_KERNEL("linalg_cholesky", cholesky);
PLAIT_KERNEL("cholesky", cholesky_any);
PLAIT_KERNEL("linalg_cholesky_ex", cholesky_any);

// cholesky_solve(B, L, upper)
template <class T>
plait_status cholesky_solve(plait_call *c) {
  const DLTensor *b = tensor(c, 0), *l = tensor(c, 1), *out = result(c);
  const Batch batch(out, 2);
  const int64_t n = l->shape[l->ndim - 1], k = out->shape[out->ndim - 1];
  if (!fits(n, k)) return too_large(c);
  char triangle = integer(c, 2) ? 'U' : 'L';
  T *to = data<T>(out);
  const Outcome o =
      each_matrix(c, batch.count, double(n) * n * k, [&](int64_t i, Workspaces &memory) {
        T *at = memory.take<T>(n * n), *x = memory.take<T>(n * k);
        if (memory.failed) return kNoMemory;
        part<T>(l, batch, i).copy(at);
        part<T>(b, batch, i).copy(x);
        int rows = int(n), columns = int(k), failed = 0;
        if (n && k)
          fortran(lapack<T>().potrs, &triangle, &rows, &columns, at, &rows, x, &rows, &failed,
                  kOne);
        to_rows(x, n, n, k, to + i * n * k);
        return failed;
      });
  return o.code ? fail_at(c, o, batch, "L", kRefused) : PLAIT_OK;
}
PLAIT_LINALG_KERNEL("cholesky_solve", cholesky_solve);

// cholesky_inverse(L, upper)
template <class T>
plait_status cholesky_inverse(plait_call *c) {
  const Matrices l(c);
  const int64_t n = l.n;
  const bool upper = integer(c, 1);
  T *to = data<T>(result(c));
  const char *const reason = "is singular: element %d of its diagonal is 0";
  return l.each<T>(c, double(n) * n * n, reason, [&](int64_t i, T *at, Workspaces &) {
    char triangle = upper ? 'U' : 'L';
    int rows = int(n), failed = 0;
    if (n) fortran(lapack<T>().potri, &triangle, &rows, at, &rows, &failed, kOne);
    for (int64_t j = 0; j < n; j++)  // the other triangle follows from symmetry
      for (int64_t k = 0; k < j; k++) {
        T &high = at[j * n + k], &low = at[k * n + j];
        if (upper)
          low = conjugate(high);
        else
          high = conjugate(low);
      }
    to_rows(at, n, n, n, to + i * n * n);
    return failed;
  });
}
PLAIT_LINALG_KERNEL("cholesky_inverse", cholesky_inverse);

// linalg_solve_triangular(A, B, upper, left, unitriangular)
template <class T>
plait_status solve_triangular(plait_call *c) {
  const DLTensor *a = tensor(c, 0), *b = tensor(c, 1), *out = result(c);
  const Batch batch(out, 2);
  const int64_t m = out->shape[out->ndim - 2], n = out->shape[out->ndim - 1];
  const int64_t k = a->shape[a->ndim - 1];
  if (!fits(m, n)) return too_large(c);
  char triangle = integer(c, 2) ? 'U' : 'L', side = integer(c, 3) ? 'L' : 'R', plain = 'N';
  char diagonal = integer(c, 4) ? 'U' : 'N';
  T *to = data<T>(out);
  const Outcome o =
      each_matrix(c, batch.count, double(k) * m * n, [&](int64_t i, Workspaces &memory) {
        T *at = memory.take<T>(k * k), *x = memory.take<T>(m * n);
        if (memory.failed) return kNoMemory;
        part<T>(a, batch, i).copy(at);
        part<T>(b, batch, i).copy(x);
        int rows = int(m), columns = int(n), ld = int(k);
        T one = T(1);
        if (m && n)
          fortran(lapack<T>().trsm, &side, &triangle, &plain, &diagonal, &rows, &columns, &one, at,
                  &ld, x, &rows, kOne, kOne, kOne, kOne);
        to_rows(x, m, m, n, to + i * m * n);
        return 0;
      });
  return o.code ? fail_at(c, o, batch, "A", "") : PLAIT_OK;
}
PLAIT_LINALG_KERNEL("linalg_solve_triangular", solve_triangular);

}  // namespace
}  // namespace plait::core::linalg
