// Singular values and vectors.
#include "linalg/matrix_batches.h"

namespace plait::core::linalg {
namespace {

template <class T>
int gesdd(char job, int m, int n, T *a, Real<T> *s, T *u, int ldu, T *vh, int ldvh,
          Workspaces &memory) {
  const int64_t small = m < n ? m : n, large = m < n ? n : m;
  int *iwork = memory.take<int>(8 * small);
  const int64_t reals = job == 'N' ? 7 * small
                                   : small * ((5 * small + 7 > 2 * large + 2 * small + 1)
                                                  ? 5 * small + 7
                                                  : 2 * large + 2 * small + 1);
  Real<T> *rwork = memory.take<Real<T>>(is_complex<T> ? reals : 1);
  if (memory.failed) return kNoMemory;
  return with_workspace<T>(memory, [&](T *work, int *lwork, int *info) {
    if constexpr (is_complex<T>)
      fortran(lapack<T>().gesdd, &job, &m, &n, a, &m, s, u, &ldu, vh, &ldvh, work, lwork, rwork,
              iwork, info, kOne);
    else
      fortran(lapack<T>().gesdd, &job, &m, &n, a, &m, s, u, &ldu, vh, &ldvh, work, lwork, iwork,
              info, kOne);
  });
}

// A matrix without elements: its singular vectors are those of the identity.
template <class T>
void identity(T *to, int64_t rows, int64_t columns) {
  for (int64_t i = 0; i < rows; i++)
    for (int64_t j = 0; j < columns; j++) to[i * columns + j] = T(i == j ? 1 : 0);
}

// The results with these numbers are S, U and Vh.
template <class T>
plait_status decompose(plait_call *c, bool vectors, bool full, int s_at, int u_at) {
  const Matrices a(c);
  const int64_t m = a.m, n = a.n, k = a.k;
  const int64_t nu = full ? m : k, nv = full ? n : k;
  Real<T> *s = data<Real<T>>(result(c, s_at));
  T *u = data<T>(result(c, u_at)), *v = data<T>(result(c, 2));
  const char *const reason =
      "has singular values that did not converge (%d); look for infinities and NaN in it";
  return a.each<T>(c, 10.0 * m * n * k, reason, [&](int64_t i, T *at, Workspaces &memory) {
    if (!k) {
      if (vectors) identity(u + i * m * nu, m, nu);
      if (vectors) identity(v + i * nv * n, nv, n);
      return 0;
    }
    T *ut = memory.take<T>(vectors ? m * nu : 1);
    T *vt = memory.take<T>(vectors ? nv * n : 1);
    if (memory.failed) return kNoMemory;
    if (!finite(at, m * n)) return 1;
    const char job = !vectors ? 'N' : full ? 'A' : 'S';
    const int failed =
        gesdd<T>(job, int(m), int(n), at, s + i * k, ut, int(m), vt, int(nv), memory);
    if (vectors) to_rows(ut, m, m, nu, u + i * m * nu);
    if (vectors) to_rows(vt, nv, nv, n, v + i * nv * n);
    return failed;
  });
}

// linalg_svd(A, full_matrices): (U, S, Vh)
template <class T>
plait_status svd(plait_call *c) {
  return decompose<T>(c, true, integer(c, 1) != 0, 1, 0);
}
// singular_values(A, vectors): (S, U, Vh)
template <class T>
plait_status singular_values(plait_call *c) {
  return decompose<T>(c, integer(c, 1) != 0, false, 0, 1);
}
PLAIT_LINALG_KERNEL("linalg_svd", svd);
PLAIT_LINALG_KERNEL("singular_values", singular_values);

}  // namespace
}  // namespace plait::core::linalg
