// QR factors by Householder reflections.
#include <algorithm>
#include <cmath>
#include <type_traits>

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

// Small real matrices: a call of LAPACK takes longer than their arithmetic. The steps and the signs
// are LAPACK's (geqr2, org2r).

constexpr int64_t kSmall = 16;

// Numbers whose squares neither overflow nor vanish beside the largest; true of all float32.
inline bool squares_fit(double x) { return x == 0 || (x > 1e-120 && x < 1e120); }

// a[i] -= tau (v a) v[i] for v = (1, v[1], v[2], ...)
template <class T>
PLAIT_INLINE void reflect(const T *v, T tau, int64_t m, T *a) {
  T sum = a[0];
  for (int64_t i = 1; i < m; i++) sum += v[i] * a[i];
  sum *= tau;
  a[0] -= sum;
  for (int64_t i = 1; i < m; i++) a[i] -= sum * v[i];
}

// As geqrf; false, and `a` as it was, if LAPACK must scale its columns.
template <class T>
bool small_geqrf(int64_t m, int64_t n, T *a, T *tau) {
  double largest = 0;
  for (int64_t i = 0; i < m * n; i++) largest = std::max(largest, std::fabs(double(a[i])));
  if (!squares_fit(largest)) return false;
  for (int64_t k = 0; k < std::min(m, n); k++) {
    T *v = a + k * m + k;
    const int64_t rows = m - k;
    double square = 0;
    for (int64_t i = 1; i < rows; i++) square += double(v[i]) * double(v[i]);
    tau[k] = 0;
    if (square == 0) continue;
    const T alpha = v[0];
    const T length = T(std::sqrt(square + double(alpha) * double(alpha)));
    const T beta = alpha < T(0) ? length : -length, scale = T(1) / (alpha - beta);
    tau[k] = (beta - alpha) / beta;
    for (int64_t i = 1; i < rows; i++) v[i] *= scale;
    v[0] = beta;
    for (int64_t j = k + 1; j < n; j++) reflect(v, tau[k], rows, a + j * m + k);
  }
  return true;
}

// As orgqr.
template <class T>
void small_orgqr(int64_t m, int64_t n, int64_t k, T *a, const T *tau) {
  for (int64_t j = k; j < n; j++)
    for (int64_t i = 0; i < m; i++) a[j * m + i] = T(i == j);
  for (int64_t c = k - 1; c >= 0; c--) {
    T *v = a + c * m + c;
    for (int64_t j = c + 1; j < n; j++) reflect(v, tau[c], m - c, a + j * m + c);
    for (int64_t i = 1; i < m - c; i++) v[i] *= -tau[c];
    v[0] = T(1) - tau[c];
    for (int64_t i = 0; i < c; i++) a[c * m + i] = 0;
  }
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
        bool small = false;
        if constexpr (std::is_floating_point<T>::value)
          small = m <= kSmall && n <= kSmall && small_geqrf(m, n, at, tau);
        int failed = m && n && !small ? geqrf<T>(int(m), int(n), at, tau, memory) : 0;
        T *to = r + i * rows * n;
        for (int64_t x = 0; x < rows; x++)
          for (int64_t y = 0; y < n; y++) to[x * n + y] = x <= y ? at[y * m + x] : T(0);
        if (failed || !with_q || !columns) return failed;
        if constexpr (std::is_floating_point<T>::value)
          if (small) small_orgqr(m, columns, k, at, tau);
        if (!small) failed = orgqr<T>(int(m), int(columns), int(k), at, tau, memory);
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
