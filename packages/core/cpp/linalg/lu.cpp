// LU factorization, P A = L U: the factors, and solutions from them.
#include "linalg/matrix_batches.h"

namespace plait::core::linalg {
namespace {

// linalg_lu_factor, linalg_lu_factor_ex: (LU, pivots[, info])
template <class T>
plait_status lu_factor(plait_call *c) {
  const Matrices a(c);
  const int64_t m = a.m, n = a.n, k = a.k;
  T *lu = data<T>(result(c, 0));
  int32_t *pivots = data<int32_t>(result(c, 1)), *info = infos(c, 2);
  const char *const reason = "has a singular factor: U[%d - 1] is 0 on its diagonal";
  return a.each<T>(c, double(m) * n * k, reason, [&](int64_t i, T *at, Workspaces &) {
    const int failed = k ? getrf<T>(int(m), int(n), at, pivots + i * k) : 0;
    to_rows(at, m, m, n, lu + i * m * n);
    if (info) info[i] = failed;
    return c->n_out > 2 && integer(c, 2) ? failed : failed < 0 ? failed : 0;
  });
}
PLAIT_LINALG_KERNEL("linalg_lu_factor", lu_factor);
PLAIT_KERNEL("linalg_lu_factor_ex", lu_factor_any);

// lu_unpack: (P, L, U) from the result of lu_factor
template <class T>
plait_status unpack(plait_call *c) {
  const DLTensor *lu = tensor(c, 0), *pivots = tensor(c, 1);
  const Batch batch(lu, 2);
  const int64_t m = lu->shape[lu->ndim - 2], n = lu->shape[lu->ndim - 1], k = m < n ? m : n;
  T *p = data<T>(result(c, 0)), *l = data<T>(result(c, 1)), *u = data<T>(result(c, 2));
  const Outcome o =
      each_matrix(c, batch.count, double(m) * (m + n), [&](int64_t b, Workspaces &memory) {
        int64_t *row = memory.take<int64_t>(m);
        if (memory.failed) return kNoMemory;
        const Part<T> from = part<T>(lu, batch, b);
        const int32_t *pivot = data<int32_t>(pivots) + offset_of(pivots, 1, batch, b);
        for (int64_t i = 0; i < m; i++) row[i] = i;
        for (int64_t i = 0; i < k; i++) {
          const int64_t with = pivot[i * pivots->strides[pivots->ndim - 1]] - 1;
          if (with < 0 || with >= m) return 1;
          const int64_t moved = row[i];
          row[i] = row[with];
          row[with] = moved;
        }
        T *to = p + b * m * m;
        for (int64_t i = 0; i < m * m; i++) to[i] = T(0);
        for (int64_t i = 0; i < m; i++) to[row[i] * m + i] = T(1);
        const auto at = [&](int64_t i, int64_t j) {
          return from.data[i * from.row_step + j * from.column_step];
        };
        for (int64_t i = 0; i < m; i++)
          for (int64_t j = 0; j < k; j++)
            l[(b * m + i) * k + j] = i == j ? T(1) : j < i ? at(i, j) : T(0);
        for (int64_t i = 0; i < k; i++)
          for (int64_t j = 0; j < n; j++) u[(b * k + i) * n + j] = j >= i ? at(i, j) : T(0);
        return 0;
      });
  return o.code ? fail_at(c, o, batch, "LU_pivots", "must hold numbers from %d to the rows of LU")
                : PLAIT_OK;
}
PLAIT_LINALG_KERNEL("lu_unpack", unpack);

// linalg_lu_solve(LU, pivots, B, left, adjoint): LU is argument `first`
template <class T, int first>
plait_status lu_solve(plait_call *c) {
  const DLTensor *lu = tensor(c, first), *pivots = tensor(c, first + 1), *b = tensor(c, first + 2);
  const DLTensor *out = result(c);
  const bool flipped = !integer(c, first + 3), adjoint = integer(c, first + 4);
  const Batch batch(out, 2);
  const int64_t n = lu->shape[lu->ndim - 1], k = out->shape[out->ndim - (flipped ? 2 : 1)];
  if (!fits(n, k)) return too_large(c);
  T *to = data<T>(out);
  const Outcome o =
      each_matrix(c, batch.count, double(n) * n * k, [&](int64_t i, Workspaces &memory) {
        const Part<T> factors = part<T>(lu, batch, i);
        const bool in_place = factors.row_step == 1 && factors.column_step == n;
        T *at = in_place ? const_cast<T *>(factors.data) : memory.take<T>(n * n);  // is only read
        T *x = memory.take<T>(n * k);
        int *pivot = memory.take<int>(n);
        if (memory.failed) return kNoMemory;
        if (!in_place) factors.copy(at);
        part<T>(b, batch, i).copy(x, flipped);
        const int32_t *from = data<int32_t>(pivots) + offset_of(pivots, 1, batch, i);
        for (int64_t j = 0; j < n; j++) {
          pivot[j] = from[j * pivots->strides[pivots->ndim - 1]];
          if (pivot[j] < 1 || pivot[j] > n) return 1;
        }
        // X A = B is A^T X^T = B^T; X A^H = B is conj(A) X^T = B^T: conjugated on both sides
        const bool around = flipped && adjoint && is_complex<T>;
        if (around)
          for (int64_t j = 0; j < n * k; j++) x[j] = conjugate(x[j]);
        char trans = flipped ? (adjoint ? 'N' : 'T') : adjoint ? 'C' : 'N';
        int rows = int(n), columns = int(k), failed = 0;
        if (n && k)
          fortran(lapack<T>().getrs, &trans, &rows, &columns, at, &rows, pivot, x, &rows, &failed,
                  kOne);
        if (around)
          for (int64_t j = 0; j < n * k; j++) x[j] = conjugate(x[j]);
        if (flipped)
          memcpy(to + i * n * k, x, size_t(n * k) * sizeof(T));
        else
          to_rows(x, n, n, k, to + i * n * k);
        return failed;
      });
  return o.code ? fail_at(c, o, batch, "pivots", "must hold numbers from %d to the rows of LU")
                : PLAIT_OK;
}
template <class T>
plait_status solve_with_lu(plait_call *c) {
  return lu_solve<T, 0>(c);
}
PLAIT_LINALG_KERNEL("linalg_lu_solve", solve_with_lu);

// solve_by_factors(A, LU, pivots, B, left, adjoint)
template <class T>
plait_status solve_by_factors(plait_call *c) {
  return lu_solve<T, 1>(c);
}
PLAIT_LINALG_KERNEL("solve_by_factors", solve_by_factors);

}  // namespace
}  // namespace plait::core::linalg
