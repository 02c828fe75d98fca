// QR factors by Householder reflections.
#include "linalg/matrix_batches.h"

namespace plait::core::linalg {
namespace {

// Up to so many columns LAPACK works on one column at a time, and needs no query.
constexpr int kUnblocked = 32;

template <class T>
int geqrf(int m, int n, T *a, T *tau, Workspaces &memory) {
  return with_workspace<T>(memory, n <= kUnblocked ? n : 0, [&](T *work, int *lwork, int *info) {
    fortran(lapack<T>().geqrf, &m, &n, a, &m, tau, work, lwork, info);
  });
}

// The first n columns of the product of k reflections.
template <class T>
int orgqr(int m, int n, int k, T *a, T *tau, Workspaces &memory) {
  return with_workspace<T>(memory, n <= kUnblocked ? n : 0, [&](T *work, int *lwork, int *info) {
    fortran(lapack<T>().orgqr, &m, &n, &k, a, &m, tau, work, lwork, info);
  });
}

// linalg_qr(A, mode): (Q, R); the shapes of the results say which mode
template <class T>
plait_status qr(plait_call *c) {
  const Matrices a(c);
  const DLTensor *rt = result(c, 1);
  const int64_t m = a.m, n = a.n, k = a.k;
  const bool with_q = !text_is(c, 1, "r"), whole = text_is(c, 1, "complete");
  const int64_t columns = whole ? m : k, rows = rt->shape[rt->ndim - 2];
  const int64_t more = columns > n ? m * (columns - n) : 0;  // memory for the columns of Q
  T *q = data<T>(result(c, 0)), *r = data<T>(rt);
  return a.each<T>(
      c, 2.0 * m * n * columns, kRefused,
      [&](int64_t i, T *at, Workspaces &memory) {
        T *tau = memory.take<T>(k);
        if (memory.failed) return kNoMemory;
        int failed = m && n ? geqrf<T>(int(m), int(n), at, tau, memory) : 0;
        T *to = r + i * rows * n;
        for (int64_t x = 0; x < rows; x++)
          for (int64_t y = 0; y < n; y++) to[x * n + y] = x <= y ? at[y * m + x] : T(0);
        if (failed || !with_q || !columns) return failed;
        failed = orgqr<T>(int(m), int(columns), int(k), at, tau, memory);
        to_rows(at, m, m, columns, q + i * m * columns);
        return failed;
      },
      more);
}
PLAIT_LINALG_KERNEL("linalg_qr", qr);

// geqrf(self): (a, tau)
template <class T>
plait_status reflections(plait_call *c) {
  const Matrices a(c);
  const int64_t m = a.m, n = a.n, k = a.k;
  T *to = data<T>(result(c, 0)), *taus = data<T>(result(c, 1));
  return a.each<T>(c, 2.0 * m * n * k, kRefused, [&](int64_t i, T *at, Workspaces &memory) {
    const int failed = k ? geqrf<T>(int(m), int(n), at, taus + i * k, memory) : 0;
    to_rows(at, m, m, n, to + i * m * n);
    return failed;
  });
}
PLAIT_LINALG_KERNEL("geqrf", reflections);

// linalg_householder_product(A, tau)
template <class T>
plait_status product(plait_call *c) {
  const Matrices a(c);
  const DLTensor *taus = tensor(c, 1);
  const int64_t m = a.m, n = a.n, k = taus->shape[taus->ndim - 1];
  T *to = data<T>(result(c));
  return a.each<T>(c, 2.0 * m * n * k, kRefused, [&](int64_t i, T *at, Workspaces &memory) {
    T *tau = memory.take<T>(k);
    if (memory.failed) return kNoMemory;
    column<T>(taus, a.batch, i).copy(tau);
    const int failed = m && n ? orgqr<T>(int(m), int(n), int(k), at, tau, memory) : 0;
    to_rows(at, m, m, n, to + i * m * n);
    return failed;
  });
}
PLAIT_LINALG_KERNEL("linalg_householder_product", product);

}  // namespace
}  // namespace plait::core::linalg
