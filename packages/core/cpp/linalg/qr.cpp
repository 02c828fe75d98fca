// QR factors by Householder reflections.
#include "linalg/matrix_batches.h"

namespace plait::core::linalg {
namespace {

template <class T>
int geqrf(int m, int n, T *a, T *tau, Workspaces &memory) {
  int info = 0, lwork = -1;
  T ask{};
  fortran(lapack<T>().geqrf, &m, &n, a, &m, tau, &ask, &lwork, &info);
  lwork = queried(ask);
  T *work = memory.take<T>(lwork);
  if (memory.failed) return kNoMemory;
  fortran(lapack<T>().geqrf, &m, &n, a, &m, tau, work, &lwork, &info);
  return info;
}

// The first n columns of the product of k reflections.
template <class T>
int orgqr(int m, int n, int k, T *a, T *tau, Workspaces &memory) {
  int info = 0, lwork = -1;
  T ask{};
  fortran(lapack<T>().orgqr, &m, &n, &k, a, &m, tau, &ask, &lwork, &info);
  lwork = queried(ask);
  T *work = memory.take<T>(lwork);
  if (memory.failed) return kNoMemory;
  fortran(lapack<T>().orgqr, &m, &n, &k, a, &m, tau, work, &lwork, &info);
  return info;
}

// linalg_qr(A, mode): (Q, R); the shapes of the results say which mode
template <class T>
plait_status qr(plait_call *c) {
  const DLTensor *a = tensor(c, 0), *rt = result(c, 1);
  const Batch batch(a, 2);
  const int64_t m = a->shape[a->ndim - 2], n = a->shape[a->ndim - 1], k = m < n ? m : n;
  const bool with_q = !text_is(c, 1, "r"), whole = text_is(c, 1, "complete");
  const int64_t columns = whole ? m : k, rows = rt->shape[rt->ndim - 2];
  if (!fits(m, n)) return too_large(c);
  T *q = data<T>(result(c, 0)), *r = data<T>(rt);
  const Outcome o =
      each_matrix(c, batch.count, 2.0 * m * n * columns, [&](int64_t i, Workspaces &memory) {
        // columns of A, with memory for the columns of Q
        T *at = memory.take<T>(m * (columns > n ? columns : n)), *tau = memory.take<T>(k);
        if (memory.failed) return kNoMemory;
        part<T>(a, batch, i).copy(at);
        int failed = m && n ? geqrf<T>(int(m), int(n), at, tau, memory) : 0;
        T *to = r + i * rows * n;
        for (int64_t x = 0; x < rows; x++)
          for (int64_t y = 0; y < n; y++) to[x * n + y] = x <= y ? at[y * m + x] : T(0);
        if (failed || !with_q || !columns) return failed;
        failed = orgqr<T>(int(m), int(columns), int(k), at, tau, memory);
        to_rows(at, m, m, columns, q + i * m * columns);
        return failed;
      });
  return o.code ? fail_at(c, o, batch, "A", "was refused by LAPACK (%d)") : PLAIT_OK;
}
PLAIT_LINALG_KERNEL("linalg_qr", qr);

// geqrf(self): (a, tau)
template <class T>
plait_status reflections(plait_call *c) {
  const DLTensor *a = tensor(c, 0);
  const Batch batch(a, 2);
  const int64_t m = a->shape[a->ndim - 2], n = a->shape[a->ndim - 1], k = m < n ? m : n;
  if (!fits(m, n)) return too_large(c);
  T *to = data<T>(result(c, 0)), *taus = data<T>(result(c, 1));
  const Outcome o =
      each_matrix(c, batch.count, 2.0 * m * n * k, [&](int64_t i, Workspaces &memory) {
        T *at = memory.take<T>(m * n);
        if (memory.failed) return kNoMemory;
        part<T>(a, batch, i).copy(at);
        const int failed = k ? geqrf<T>(int(m), int(n), at, taus + i * k, memory) : 0;
        to_rows(at, m, m, n, to + i * m * n);
        return failed;
      });
  return o.code ? fail_at(c, o, batch, "self", "was refused by LAPACK (%d)") : PLAIT_OK;
}
PLAIT_LINALG_KERNEL("geqrf", reflections);

// linalg_householder_product(A, tau)
template <class T>
plait_status product(plait_call *c) {
  const DLTensor *a = tensor(c, 0), *taus = tensor(c, 1);
  const Batch batch(a, 2);
  const int64_t m = a->shape[a->ndim - 2], n = a->shape[a->ndim - 1];
  const int64_t k = taus->shape[taus->ndim - 1];
  if (!fits(m, n)) return too_large(c);
  T *to = data<T>(result(c));
  const Outcome o =
      each_matrix(c, batch.count, 2.0 * m * n * k, [&](int64_t i, Workspaces &memory) {
        T *at = memory.take<T>(m * n), *tau = memory.take<T>(k);
        if (memory.failed) return kNoMemory;
        part<T>(a, batch, i).copy(at);
        column<T>(taus, batch, i).copy(tau);
        const int failed = m && n ? orgqr<T>(int(m), int(n), int(k), at, tau, memory) : 0;
        to_rows(at, m, m, n, to + i * m * n);
        return failed;
      });
  return o.code ? fail_at(c, o, batch, "A", "was refused by LAPACK (%d)") : PLAIT_OK;
}
PLAIT_LINALG_KERNEL("linalg_householder_product", product);

}  // namespace
}  // namespace plait::core::linalg
