// Factors of symmetric and Hermitian matrices, A = L D L^T, by Bunch and Kaufman's pivoting.
#include "linalg/matrix_batches.h"

namespace plait::core::linalg {
namespace {

// linalg_ldl_factor, linalg_ldl_factor_ex: (LD, pivots[, info])
template <class T>
int factor(bool hermitian, int n, T *a, int *pivots, Workspaces &memory) {
  void *f = hermitian ? lapack<T>().hetrf : lapack<T>().sytrf;
  const char lower = 'L';
  return with_workspace<T>(memory, [&](T *work, int *lwork, int *info) {
    fortran(f, &lower, &n, a, &n, pivots, work, lwork, info, kOne);
  });
}

template <class T>
plait_status ldl_factor(plait_call *c) {
  const Matrices a(c);
  const int64_t n = a.n;
  T *ld = data<T>(result(c, 0));
  int32_t *pivots = data<int32_t>(result(c, 1)), *info = infos(c, 2);
  const bool hermitian = integer(c, 1), raises = c->n_out > 2 && integer(c, 2);
  const char *const reason = "has a singular factor: D[%d - 1] is 0 on its diagonal";
  return a.each<T>(c, double(n) * n * n, reason, [&](int64_t i, T *at, Workspaces &memory) {
    for (int64_t y = 1; y < n; y++)
      for (int64_t x = 0; x < y; x++) at[y * n + x] = T(0);  // above the diagonal
    const int failed = n ? factor<T>(hermitian, int(n), at, pivots + i * n, memory) : 0;
    to_rows(at, n, n, n, ld + i * n * n);
    if (info) info[i] = failed;
    return raises || failed < 0 ? failed : 0;
  });
}
PLAIT_LINALG_KERNEL("linalg_ldl_factor", ldl_factor);
PLAIT_KERNEL("linalg_ldl_factor_ex", ldl_factor_any);

// Whether LAPACK can have made these pivots: negative ones come in pairs.
bool sound(const int *pivots, int64_t n) {
  for (int64_t i = 0; i < n; i++) {
    const int64_t p = pivots[i] < 0 ? -int64_t(pivots[i]) : pivots[i];
    if (p < 1 || p > n) return false;
    if (pivots[i] > 0) continue;
    if (i + 1 == n || pivots[i + 1] != pivots[i]) return false;
    i++;
  }
  return true;
}

// linalg_ldl_solve(LD, pivots, B, hermitian)
template <class T>
plait_status ldl_solve(plait_call *c) {
  const DLTensor *ld = tensor(c, 0), *pivots = tensor(c, 1), *b = tensor(c, 2), *out = result(c);
  const Batch batch(out, 2);
  const int64_t n = ld->shape[ld->ndim - 1], k = out->shape[out->ndim - 1];
  if (!fits(n, k)) return too_large(c);
  T *to = data<T>(out);
  void *f = integer(c, 3) ? lapack<T>().hetrs : lapack<T>().sytrs;
  const Outcome o =
      each_matrix(c, batch.count, double(n) * n * k, [&](int64_t i, Workspaces &memory) {
        T *at = memory.take<T>(n * n), *x = memory.take<T>(n * k);
        int *pivot = memory.take<int>(n);
        if (memory.failed) return kNoMemory;
        part<T>(ld, batch, i).copy(at);
        part<T>(b, batch, i).copy(x);
        const int32_t *from = data<int32_t>(pivots) + offset_of(pivots, 1, batch, i);
        for (int64_t j = 0; j < n; j++) pivot[j] = from[j * pivots->strides[pivots->ndim - 1]];
        if (!sound(pivot, n)) return 1;
        const char lower = 'L';
        int rows = int(n), columns = int(k), failed = 0;
        if (n && k) fortran(f, &lower, &rows, &columns, at, &rows, pivot, x, &rows, &failed, kOne);
        to_rows(x, n, n, k, to + i * n * k);
        return failed;
      });
  return o.code ? fail_at(c, o, batch, "pivots",
                          "must be what linalg.ldl_factor made: from %d to the rows of LD")
                : PLAIT_OK;
}
PLAIT_LINALG_KERNEL("linalg_ldl_solve", ldl_solve);

}  // namespace
}  // namespace plait::core::linalg
