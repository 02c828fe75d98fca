// Singular values and vectors.
#include "linalg/matrix_batches.h"

namespace plait::core::linalg {
namespace {

template <class T>
int gesdd(char job, int m, int n, T *a, Real<T> *s, T *u, int ldu, T *vh, int ldvh,
          Workspaces &memory) {
  int info = 0, lwork = -1;
  const int64_t small = m < n ? m : n, large = m < n ? n : m;
  T ask{};
  int *iwork = memory.take<int>(8 * small);
  const int64_t reals = job == 'N' ? 7 * small
                                   : small * ((5 * small + 7 > 2 * large + 2 * small + 1)
                                                  ? 5 * small + 7
                                                  : 2 * large + 2 * small + 1);
  Real<T> *rwork = memory.take<Real<T>>(is_complex<T> ? reals : 1);
  if (memory.failed) return kNoMemory;
  const auto run = [&](T *work) {
    if constexpr (is_complex<T>)
      fortran(lapack<T>().gesdd, &job, &m, &n, a, &m, s, u, &ldu, vh, &ldvh, work, &lwork, rwork,
              iwork, &info, kOne);
    else
      fortran(lapack<T>().gesdd, &job, &m, &n, a, &m, s, u, &ldu, vh, &ldvh, work, &lwork, iwork,
              &info, kOne);
  };
  run(&ask);
  lwork = queried(ask);
  T *work = memory.take<T>(lwork);
  if (memory.failed) return kNoMemory;
  run(work);
  return info;
}

// A matrix without elements: its singular vectors are those of the identity.
template <class T>
void identity(T *to, int64_t rows, int64_t columns) {
  for (int64_t i = 0; i < rows; i++)
    for (int64_t j = 0; j < columns; j++) to[i * columns + j] = T(i == j ? 1 : 0);
}

// linalg_svd(A, full_matrices): (U, S, Vh); linalg_svdvals(A)
template <class T>
plait_status svd(plait_call *c) {
  const DLTensor *a = tensor(c, 0);
  const Batch batch(a, 2);
  const int64_t m = a->shape[a->ndim - 2], n = a->shape[a->ndim - 1], k = m < n ? m : n;
  if (!fits(m, n)) return too_large(c);
  const bool vectors = c->n_out > 1, full = vectors && integer(c, 1);
  const int64_t nu = full ? m : k, nv = full ? n : k;
  Real<T> *s = data<Real<T>>(result(c, vectors ? 1 : 0));
  T *u = vectors ? data<T>(result(c, 0)) : nullptr, *v = vectors ? data<T>(result(c, 2)) : nullptr;
  const Outcome o =
      each_matrix(c, batch.count, 10.0 * m * n * k, [&](int64_t i, Workspaces &memory) {
        if (!k) {
          if (vectors) identity(u + i * m * nu, m, nu);
          if (vectors) identity(v + i * nv * n, nv, n);
          return 0;
        }
        T *at = memory.take<T>(m * n), *ut = memory.take<T>(vectors ? m * nu : 1);
        T *vt = memory.take<T>(vectors ? nv * n : 1);
        if (memory.failed) return kNoMemory;
        part<T>(a, batch, i).copy(at);
        if (!finite(at, m * n)) return 1;
        const char job = !vectors ? 'N' : full ? 'A' : 'S';
        const int failed =
            gesdd<T>(job, int(m), int(n), at, s + i * k, ut, int(m), vt, int(nv), memory);
        if (vectors) to_rows(ut, m, m, nu, u + i * m * nu);
        if (vectors) to_rows(vt, nv, nv, n, v + i * nv * n);
        return failed;
      });
  return o.code ? fail_at(c, o, batch, "A",
                          "has singular values that did not converge (%d); look for infinities and "
                          "NaN in it")
                : PLAIT_OK;
}
PLAIT_LINALG_KERNEL("linalg_svd", svd);
plait_status svdvals(plait_call *c) { return svd_any(c); }
PLAIT_KERNEL("linalg_svdvals", svdvals);

}  // namespace
}  // namespace plait::core::linalg
