// Eigenvalues of symmetric (Hermitian) matrices and of general matrices.
#include "linalg/matrix_batches.h"

namespace plait::core::linalg {
namespace {

const char *const kNoConvergence =
    "has eigenvalues that did not converge (%d of them); look for infinities and NaN in it";

template <class T>
int syevd(char job, char triangle, int n, T *a, Real<T> *w, Workspaces &memory) {
  int info = 0, lwork = -1, lrwork = -1, liwork = -1, iask = 0;
  T ask{};
  Real<T> rask{};
  const auto run = [&](T *work, Real<T> *rwork, int *iwork) {
    if constexpr (is_complex<T>)
      fortran(lapack<T>().syevd, &job, &triangle, &n, a, &n, w, work, &lwork, rwork, &lrwork, iwork,
              &liwork, &info, kOne, kOne);
    else
      fortran(lapack<T>().syevd, &job, &triangle, &n, a, &n, w, work, &lwork, iwork, &liwork, &info,
              kOne, kOne);
  };
  run(&ask, &rask, &iask);
  lwork = queried(ask);
  lrwork = queried(rask);
  liwork = iask + 1;
  T *work = memory.take<T>(lwork);
  Real<T> *rwork = memory.take<Real<T>>(lrwork);
  int *iwork = memory.take<int>(liwork);
  if (memory.failed) return kNoMemory;
  run(work, rwork, iwork);
  return info;
}

// linalg_eigh(A, UPLO): (eigenvalues, eigenvectors); symmetric_eigenvalues(A, UPLO, vectors)
template <class T>
plait_status eigh(plait_call *c) {
  const Matrices a(c);
  const int64_t n = a.n;
  Real<T> *values = data<Real<T>>(result(c, 0));
  T *vectors = c->n_in < 3 || integer(c, 2) ? data<T>(result(c, 1)) : nullptr;
  const char triangle = text_is(c, 1, "U") || text_is(c, 1, "u") ? 'U' : 'L';
  return a.each<T>(c, 9.0 * n * n * n, kNoConvergence, [&](int64_t i, T *at, Workspaces &memory) {
    if (!finite(at, n * n)) return int(n);
    const int failed =
        n ? syevd<T>(vectors ? 'V' : 'N', triangle, int(n), at, values + i * n, memory) : 0;
    if (vectors) to_rows(at, n, n, n, vectors + i * n * n);
    return failed;
  });
}
PLAIT_LINALG_KERNEL("linalg_eigh", eigh);
PLAIT_KERNEL("symmetric_eigenvalues", eigh_any);

// linalg_eig(A): (eigenvalues, eigenvectors), both complex; linalg_eigvals(A)
template <class T>
struct ComplexOf {
  using type = T;
};
template <>
struct ComplexOf<float> {
  using type = c64;
};
template <>
struct ComplexOf<double> {
  using type = c128;
};
template <class T>
using Complex = typename ComplexOf<T>::type;

template <class R>
auto complex_number(R re, R im) {
  Complex<R> z;
  __real__ z = re;
  __imag__ z = im;
  return z;
}

// Real LAPACK packs a pair of conjugate vectors into two columns: real parts, imaginary parts.
template <class R>
void unpack_vectors(int64_t n, const R *imaginary, const R *packed, Complex<R> *to) {
  for (int64_t j = 0; j < n; j++) {
    const bool pair = imaginary[j] != R(0) && j + 1 < n;
    for (int64_t i = 0; i < n; i++) {
      const R re = packed[j * n + i], im = pair ? packed[(j + 1) * n + i] : R(0);
      to[i * n + j] = complex_number(re, im);
      if (pair) to[i * n + j + 1] = complex_number(re, -im);
    }
    j += pair;
  }
}

// Right vectors go to `to` (rows) unless that is NULL.
template <class T>
int geev(int n, T *a, Complex<T> *values, Complex<T> *to, Workspaces &memory) {
  char none = 'N', job = to ? 'V' : 'N';
  T *vectors = memory.take<T>(to ? int64_t(n) * n : 1);
  Real<T> *first = memory.take<Real<T>>(2 * int64_t(n)), *second = memory.take<Real<T>>(n);
  if (memory.failed) return kNoMemory;
  const int info = with_workspace<T>(memory, [&](T *work, int *lwork, int *status) {
    if constexpr (is_complex<T>)
      fortran(lapack<T>().geev, &none, &job, &n, a, &n, values, vectors, &n, vectors, &n, work,
              lwork, first, status, kOne, kOne);
    else
      fortran(lapack<T>().geev, &none, &job, &n, a, &n, first, second, vectors, &n, vectors, &n,
              work, lwork, status, kOne, kOne);
  });
  if (memory.failed) return kNoMemory;
  if constexpr (is_complex<T>) {
    if (to) to_rows(vectors, n, n, n, to);
  } else {
    for (int i = 0; i < n; i++) values[i] = complex_number(first[i], second[i]);
    if (to) unpack_vectors<T>(n, second, vectors, to);
  }
  return info;
}

template <class T>
plait_status eig(plait_call *c) {
  const Matrices a(c);
  const int64_t n = a.n;
  Complex<T> *values = data<Complex<T>>(result(c, 0));
  Complex<T> *vectors = c->n_out > 1 ? data<Complex<T>>(result(c, 1)) : nullptr;
  return a.each<T>(c, 25.0 * n * n * n, kNoConvergence, [&](int64_t i, T *at, Workspaces &memory) {
    if (!finite(at, n * n)) return int(n);
    return n ? geev<T>(int(n), at, values + i * n, vectors ? vectors + i * n * n : nullptr, memory)
             : 0;
  });
}
PLAIT_LINALG_KERNEL("linalg_eig", eig);
PLAIT_KERNEL("linalg_eigvals", eig_any);

}  // namespace
}  // namespace plait::core::linalg
