// Least squares by singular values, or by a QR factorisation that exchanges columns.
#include "linalg/matrix_batches.h"

namespace plait::core::linalg {
namespace {

template <class T>
int gelsd(int m, int n, int k, T *a, T *b, int ldb, Real<T> *s, Real<T> rcond, int *rank,
          Workspaces &memory) {
  int info = 0, lwork = -1, iask = 0;
  T ask{};
  Real<T> rask{};
  const auto run = [&](T *work, Real<T> *rwork, int *iwork) {
    if constexpr (is_complex<T>)
      fortran(lapack<T>().gelsd, &m, &n, &k, a, &m, b, &ldb, s, &rcond, rank, work, &lwork, rwork,
              iwork, &info);
    else
      fortran(lapack<T>().gelsd, &m, &n, &k, a, &m, b, &ldb, s, &rcond, rank, work, &lwork, iwork,
              &info);
  };
  run(&ask, &rask, &iask);
  lwork = queried(ask);
  T *work = memory.take<T>(lwork);
  Real<T> *rwork = memory.take<Real<T>>(is_complex<T> ? queried(rask) : 1);
  int *iwork = memory.take<int>(iask + 1);
  if (memory.failed) return kNoMemory;
  run(work, rwork, iwork);
  return info;
}

template <class T>
int gelsy(int m, int n, int k, T *a, T *b, int ldb, Real<T> rcond, int *rank, Workspaces &memory) {
  int *exchanges = memory.take<int>(n);
  Real<T> *rwork = memory.take<Real<T>>(is_complex<T> ? 2 * n : 1);
  if (memory.failed) return kNoMemory;
  for (int i = 0; i < n; i++) exchanges[i] = 0;  // every column may be exchanged
  return with_workspace<T>(memory, [&](T *work, int *lwork, int *info) {
    if constexpr (is_complex<T>)
      fortran(lapack<T>().gelsy, &m, &n, &k, a, &m, b, &ldb, exchanges, &rcond, rank, work, lwork,
              rwork, info);
    else
      fortran(lapack<T>().gelsy, &m, &n, &k, a, &m, b, &ldb, exchanges, &rcond, rank, work, lwork,
              info);
  });
}

// lstsq_parts(A, B, rcond, values): (solution, residuals, rank, singular values)
template <class T>
plait_status lstsq(plait_call *c) {
  const DLTensor *a = tensor(c, 0), *b = tensor(c, 1), *out = result(c, 0);
  const Batch batch(out, 2);
  const int64_t m = a->shape[a->ndim - 2], n = a->shape[a->ndim - 1], k = b->shape[b->ndim - 1];
  const int64_t small = m < n ? m : n, rows = m < n ? n : m;
  const int64_t columns = k ? k : 1;  // LAPACK needs one, for the rank and the singular values too
  if (!fits(m, n)) return too_large(c);
  T *x = data<T>(out);
  Real<T> *residuals = data<Real<T>>(result(c, 1)), *values = data<Real<T>>(result(c, 3));
  int64_t *ranks = data<int64_t>(result(c, 2));
  const Real<T> rcond = Real<T>(real(c, 2));
  const bool with_values = integer(c, 3, 1);
  if (!with_values) memset(values, 0, uint64_t(batch.count * small) * sizeof(Real<T>));
  const Outcome o =
      each_matrix(c, batch.count, 10.0 * m * n * small, [&](int64_t i, Workspaces &memory) {
        T *at = memory.take<T>(m * n), *bt = memory.take<T>(rows * columns);
        if (memory.failed) return kNoMemory;
        for (int64_t j = 0; j < rows * columns; j++) bt[j] = T(0);
        part<T>(a, batch, i).copy(at);
        const Part<T> from = part<T>(b, batch, i);
        to_columns(from.data, from.row_step, from.column_step, m, k, bt, rows);
        if (!finite(at, m * n) || !finite(bt, rows * k)) return 1;
        int rank = 0, failed = 0;
        if (small && with_values)  // else nothing is fitted: the solution is 0 and B remains
          failed = gelsd<T>(int(m), int(n), int(columns), at, bt, int(rows), values + i * small,
                            rcond, &rank, memory);
        else if (small)
          failed = gelsy<T>(int(m), int(n), int(columns), at, bt, int(rows), rcond, &rank, memory);
        to_rows(bt, rows, n, k, x + i * n * k);
        ranks[i] = rank;
        for (int64_t j = 0; j < k; j++) {
          double sum = 0;
          for (int64_t p = n; p < m; p++) {
            const double size = magnitude(bt[j * rows + p]);
            sum += size * size;
          }
          residuals[i * k + j] = Real<T>(sum);
        }
        return failed;
      });
  return o.code ? fail_at(c, o, batch, "A",
                          "has singular values that did not converge (%d); look for infinities and "
                          "NaN in it and in `B`")
                : PLAIT_OK;
}
PLAIT_LINALG_KERNEL("lstsq_parts", lstsq);

}  // namespace
}  // namespace plait::core::linalg
