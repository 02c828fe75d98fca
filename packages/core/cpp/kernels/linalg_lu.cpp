// What starts with a factorization P A = L U: factors, determinants, inverses, solutions.
#include "kernels/linalg.h"

namespace plait::core::linalg {
namespace {

const char *const kSingular =
    "is singular: the pivot in column %d is 0, so it has no inverse; solve in the least squares "
    "sense with linalg.lstsq or linalg.pinv";

template <class T>
int getrf(int m, int n, T *a, int *pivots) {
  int info = 0, ld = m > 1 ? m : 1;
  fortran(lapack<T>().getrf, &m, &n, a, &ld, pivots, &info);
  return info;
}

// ---- linalg_lu_factor, linalg_lu_factor_ex: (LU, pivots[, info])
template <class T>
plait_status lu_factor(plait_call *c) {
  const DLTensor *a = tensor(c, 0);
  const Batch batch(a, 2);
  const int64_t m = a->shape[a->ndim - 2], n = a->shape[a->ndim - 1], k = m < n ? m : n;
  if (!fits(m, n)) return too_large(c);
  T *lu = data<T>(result(c, 0));
  int32_t *pivots = data<int32_t>(result(c, 1)), *info = infos(c, 2);
  const Outcome o = each_matrix(c, batch.count, double(m) * n * k, [&](int64_t i, Room &room) {
    T *at = room.take<T>(m * n);
    if (room.failed) return kNoMemory;
    part<T>(a, batch, i).copy(at);
    const int failed = k ? getrf<T>(int(m), int(n), at, pivots + i * k) : 0;
    to_rows(at, m, m, n, lu + i * m * n);
    if (info) info[i] = failed;
    return c->n_out > 2 && integer(c, 2) ? failed : failed < 0 ? failed : 0;
  });
  return o.code ? fail_at(c, o, batch, "A", "has a singular factor: U[%d - 1] is 0 on its diagonal")
                : PLAIT_OK;
}
PLAIT_LINALG_KERNEL("linalg_lu_factor", lu_factor);
plait_status lu_factor_ex(plait_call *c) { return lu_factor_any(c); }
PLAIT_KERNEL("linalg_lu_factor_ex", lu_factor_ex);

// ---- lu_unpack: (P, L, U) of what lu_factor made
template <class T>
plait_status unpack(plait_call *c) {
  const DLTensor *lu = tensor(c, 0), *pivots = tensor(c, 1);
  const Batch batch(lu, 2);
  const int64_t m = lu->shape[lu->ndim - 2], n = lu->shape[lu->ndim - 1], k = m < n ? m : n;
  T *p = data<T>(result(c, 0)), *l = data<T>(result(c, 1)), *u = data<T>(result(c, 2));
  const Outcome o = each_matrix(c, batch.count, double(m) * (m + n), [&](int64_t b, Room &room) {
    int64_t *row = room.take<int64_t>(m);
    if (room.failed) return kNoMemory;
    const Part<T> from = part<T>(lu, batch, b);
    const int32_t *pivot = data<int32_t>(pivots) + offset_of(pivots, 1, batch, b);
    for (int64_t i = 0; i < m; i++) row[i] = i;
    for (int64_t i = 0; i < k; i++) {
      const int64_t with = pivot[i * pivots->strides[pivots->ndim - 1]] - 1;
      if (with < 0 || with >= m) return 1;
      const int64_t kept = row[i];
      row[i] = row[with];
      row[with] = kept;
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

// ---- linalg_det and linalg_slogdet
// The product of the diagonal of U and of the signs of the exchanges, as sign and log magnitude.
template <class T>
struct Determinant {
  T sign = T(1), product = T(1);
  double log = 0;
};
template <class T>
Determinant<T> determinant(int64_t n, const T *lu, const int *pivots) {
  Determinant<T> d;
  for (int64_t i = 0; i < n; i++) {
    const T x = lu[i * n + i];
    const double size = magnitude(x);
    d.product *= x;
    d.sign *= size == 0 ? T(0) : x / T(Real<T>(size));
    d.log += size == 0 ? -__builtin_inf() : __builtin_log(size);
    if (pivots[i] == i + 1) continue;
    d.product = -d.product;
    d.sign = -d.sign;
  }
  return d;
}

template <class T, class F>
plait_status determinants(plait_call *c, F &&store) {
  const DLTensor *a = tensor(c, 0);
  const Batch batch(a, 2);
  const int64_t n = a->shape[a->ndim - 1];
  if (!fits(n)) return too_large(c);
  const Outcome o = each_matrix(c, batch.count, double(n) * n * n, [&](int64_t i, Room &room) {
    T *at = room.take<T>(n * n);
    int *pivots = room.take<int>(n);
    if (room.failed) return kNoMemory;
    part<T>(a, batch, i).copy(at);
    if (n) getrf<T>(int(n), int(n), at, pivots);
    store(i, determinant<T>(n, at, pivots));
    return 0;
  });
  return o.code ? fail_at(c, o, batch, "A", "") : PLAIT_OK;
}
template <class T>
plait_status det(plait_call *c) {
  T *out = data<T>(result(c));
  return determinants<T>(c, [&](int64_t i, const Determinant<T> &d) { out[i] = d.product; });
}
template <class T>
plait_status slogdet(plait_call *c) {
  T *sign = data<T>(result(c, 0));
  Real<T> *log = data<Real<T>>(result(c, 1));
  return determinants<T>(c, [&](int64_t i, const Determinant<T> &d) {
    sign[i] = d.sign;
    log[i] = Real<T>(d.log);
  });
}
PLAIT_LINALG_KERNEL("linalg_det", det);
PLAIT_LINALG_KERNEL("linalg_slogdet", slogdet);

// ---- linalg_inv, linalg_inv_ex: (inverse[, info])
template <class T>
int invert(int n, T *a, int *pivots, Room &room) {
  int info = getrf<T>(n, n, a, pivots), lwork = -1;
  if (info) return info;
  T ask{};
  fortran(lapack<T>().getri, &n, a, &n, pivots, &ask, &lwork, &info);
  lwork = queried(ask);
  T *work = room.take<T>(lwork);
  if (room.failed) return kNoMemory;
  fortran(lapack<T>().getri, &n, a, &n, pivots, work, &lwork, &info);
  return info;
}
template <class T>
plait_status inverse(plait_call *c) {
  const DLTensor *a = tensor(c, 0);
  const Batch batch(a, 2);
  const int64_t n = a->shape[a->ndim - 1];
  if (!fits(n)) return too_large(c);
  T *out = data<T>(result(c));
  int32_t *info = infos(c, 1);
  const bool raises = !info || integer(c, 1);
  const Outcome o = each_matrix(c, batch.count, 2.0 * n * n * n, [&](int64_t i, Room &room) {
    T *at = room.take<T>(n * n);
    int *pivots = room.take<int>(n);
    if (room.failed) return kNoMemory;
    part<T>(a, batch, i).copy(at);
    const int failed = n ? invert<T>(int(n), at, pivots, room) : 0;
    to_rows(at, n, n, n, out + i * n * n);
    if (info) info[i] = failed;
    return raises || failed == kNoMemory ? failed : 0;
  });
  return o.code ? fail_at(c, o, batch, c->op->args[0].name, kSingular) : PLAIT_OK;
}
PLAIT_LINALG_KERNEL("linalg_inv", inverse);
plait_status inverse_ex(plait_call *c) { return inverse_any(c); }
PLAIT_KERNEL("linalg_inv_ex", inverse_ex);

// ---- linalg_solve, linalg_solve_ex: (result[, info])
// Whether B is a batch of vectors: the shape function has decided, and the result shows it.
bool vectors(const DLTensor *a, const DLTensor *b, const DLTensor *out) {
  return b->ndim == 1 || (b->ndim + 1 == a->ndim && out->ndim + 1 == a->ndim);
}

template <class T>
plait_status solve(plait_call *c) {
  const DLTensor *a = tensor(c, 0), *b = tensor(c, 1), *out = result(c);
  const bool vector = vectors(a, b, out), flipped = !integer(c, 2);
  const int core = vector ? 1 : 2;
  const Batch batch(out, core);
  const int64_t n = a->shape[a->ndim - 1];
  const int64_t k = vector ? 1 : out->shape[out->ndim - (flipped ? 2 : 1)];
  if (!fits(n, k)) return too_large(c);
  T *to = data<T>(out);
  int32_t *info = infos(c, 1);
  const bool raises = !info || integer(c, 3);
  const Outcome o =
      each_matrix(c, batch.count, double(n) * n * (n + k), [&](int64_t i, Room &room) {
        T *at = room.take<T>(n * n), *x = room.take<T>(n * k);
        int *pivots = room.take<int>(n);
        if (room.failed) return kNoMemory;
        part<T>(a, batch, i).copy(at, flipped);
        if (vector)
          column<T>(b, batch, i).copy(x);
        else
          part<T>(b, batch, i).copy(x, flipped);
        int rows = int(n), columns = int(k), failed = 0;
        if (n && k)
          fortran(lapack<T>().gesv, &rows, &columns, at, &rows, pivots, x, &rows, &failed);
        if (flipped)
          memcpy(to + i * n * k, x,
                 size_t(n * k) * sizeof(T));  // columns of x are rows of the result
        else
          to_rows(x, n, n, k, to + i * n * k);
        if (info) info[i] = failed;
        return raises ? failed : 0;
      });
  return o.code ? fail_at(c, o, batch, "A", kSingular) : PLAIT_OK;
}
PLAIT_LINALG_KERNEL("linalg_solve", solve);
plait_status solve_ex(plait_call *c) { return solve_any(c); }
PLAIT_KERNEL("linalg_solve_ex", solve_ex);

// ---- linalg_lu_solve(LU, pivots, B, left, adjoint)
template <class T>
plait_status lu_solve(plait_call *c) {
  const DLTensor *lu = tensor(c, 0), *pivots = tensor(c, 1), *b = tensor(c, 2), *out = result(c);
  const bool flipped = !integer(c, 3), adjoint = integer(c, 4);
  const Batch batch(out, 2);
  const int64_t n = lu->shape[lu->ndim - 1], k = out->shape[out->ndim - (flipped ? 2 : 1)];
  if (!fits(n, k)) return too_large(c);
  T *to = data<T>(out);
  const Outcome o = each_matrix(c, batch.count, double(n) * n * k, [&](int64_t i, Room &room) {
    T *at = room.take<T>(n * n), *x = room.take<T>(n * k);
    int *pivot = room.take<int>(n);
    if (room.failed) return kNoMemory;
    part<T>(lu, batch, i).copy(at);
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
PLAIT_LINALG_KERNEL("linalg_lu_solve", lu_solve);

}  // namespace
}  // namespace plait::core::linalg
