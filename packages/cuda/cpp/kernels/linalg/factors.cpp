// LU and Cholesky factors of batches of matrices, and triangular systems: a block for each matrix,
// or for some columns of a right-hand side.
#include "block/matrix.h"
#if PLAIT_HOST
#include "host/matrices.h"
#endif

namespace plait::cuda {

struct FactorArgs {
  void *a;  // [count][m][n], which the factors replace
  int32_t *pivots, *info;
  int64_t count, m, n;
  int32_t is_upper;
};

struct UnpackArgs {
  const void *factors;  // [count][m][n]
  const int32_t *pivots;
  int32_t *rows;  // [count][m]
  void *p, *l, *u;
  int64_t m, n, k;
  Fault fault;
};

// Solves for x, [count][n][columns], in place; element (i, j) of a matrix is i row + j column after
// its first one.
struct TriangularArgs {
  const void *a;
  void *x;
  int64_t n, columns, row, column;
  int32_t is_lower, is_unit, is_conjugate;
};
constexpr int kSolvedColumns = 32;  // of a block

struct IdentityArgs {
  void *to;            // [count][n][n]
  const void *factor;  // of the same shape: no element of its diagonals may be 0
  int64_t count, n;
  Fault fault;
};

#if PLAIT_KERNELS

// The row of the largest element of column j from row j on.
template <class T>
PLAIT_DEVICE int64_t pivot_row(Block &t, const Global<T> &a, const Shared<RealPart<T>> &sizes,
                               const Shared<int64_t> &rows, int64_t m, int64_t n, int64_t j) {
  using R = RealPart<T>;
  R best = R(-1);
  int64_t at = m;
  for (int64_t i = j + t.thread(); i < m; i += t.threads()) {
    const R size = size_of_pivot(a.load(i * n + j));
    if (size > best) best = size, at = i;
  }
  for (int by = kWarp / 2; by > 0; by /= 2) {
    const R other = t.shuffle_xor(best, by);
    const int64_t row = t.shuffle_xor(at, by);
    if (other > best || (other == best && row < at)) best = other, at = row;
  }
  if (t.lane() == 0) sizes.store(t.warp(), best), rows.store(t.warp(), at);
  t.barrier();
  for (int w = 0; w < t.warps(); w++) {
    const R other = sizes.load(w);
    const int64_t row = rows.load(w);
    if (other > best || (other == best && row < at)) best = other, at = row;
  }
  return at < m ? at : j;  // of nan alone: none is larger
}

template <class T>
PLAIT_DEVICE void lu_factor(Block &t, const FactorArgs &a) {
  const int64_t size = a.m * a.n, k = a.m < a.n ? a.m : a.n;
  const auto sizes = t.template shared<RealPart<T>>(kWarp);
  const auto rows = t.template shared<int64_t>(kWarp);
  const auto at = t.template global<T>(static_cast<T *>(a.a) + t.block() * size);
  int32_t info = 0;
  for (int64_t j = 0; j < k; j++) {
    const int64_t row = pivot_row<T>(t, at, sizes, rows, a.m, a.n, j);
    const T pivot = at.load(row * a.n + j);
    if (pivot == T(0) && info == 0) info = int32_t(j + 1);
    t.barrier();  // all have read the pivot
    if (t.thread() == 0) t.global<int32_t>(a.pivots).store(t.block() * k + j, int32_t(row + 1));
    for (int64_t c = t.thread(); row != j && c < a.n; c += t.threads()) {
      const T one = at.load(j * a.n + c), other = at.load(row * a.n + c);
      at.store(j * a.n + c, other), at.store(row * a.n + c, one);
    }
    t.barrier();
    if (is_not_zero(pivot))
      for (int64_t i = j + 1 + t.thread(); i < a.m; i += t.threads())
        at.store(i * a.n + j, at.load(i * a.n + j) / pivot);
    t.barrier();
    const int64_t wide = a.n - j - 1, rest = (a.m - j - 1) * wide;
    for (int64_t e = t.thread(); e < rest; e += t.threads()) {
      const int64_t i = j + 1 + e / wide, c = j + 1 + e % wide;
      at.store(i * a.n + c, at.load(i * a.n + c) - at.load(i * a.n + j) * at.load(j * a.n + c));
    }
    t.barrier();
  }
  if (t.thread() == 0) t.global<int32_t>(a.info).store(t.block(), info);
}

template <class T>
PLAIT_DEVICE void cholesky_factor(Block &t, const FactorArgs &a) {
  using R = RealPart<T>;
  const int64_t n = a.n;
  const auto all = t.template global<T>(static_cast<T *>(a.a) + t.block() * n * n);
  // the lower factor's element; that of the upper one is its conjugate across the diagonal
  auto get = [&](int64_t i, int64_t j) {
    return a.is_upper ? conjugate_of(all.load(j * n + i)) : all.load(i * n + j);
  };
  auto set = [&](int64_t i, int64_t j, T v) {
    if (a.is_upper)
      all.store(j * n + i, conjugate_of(v));
    else
      all.store(i * n + j, v);
  };
  int32_t info = 0;
  for (int64_t j = 0; j < n && info == 0; j++) {
    const R d = real_of(get(j, j));
    t.barrier();  // all have read it
    if (!(d > R(0))) {
      info = int32_t(j + 1);
      continue;
    }
    const R root = scalar::math::sqrt(d);
    if (t.thread() == 0) set(j, j, T(root));
    for (int64_t i = j + 1 + t.thread(); i < n; i += t.threads()) set(i, j, get(i, j) / T(root));
    t.barrier();
    const int64_t wide = n - j - 1;
    for (int64_t e = t.thread(); e < wide * wide; e += t.threads()) {
      const int64_t i = j + 1 + e / wide, c = j + 1 + e % wide;
      if (c <= i) set(i, c, get(i, c) - get(i, j) * conjugate_of(get(c, j)));
    }
    t.barrier();
  }
  for (int64_t e = t.thread(); e < n * n; e += t.threads())
    if (a.is_upper ? e / n > e % n : e / n < e % n) all.store(e, T(0));
  if (t.thread() == 0) t.global<int32_t>(a.info).store(t.block(), info);
}

template <class T>
PLAIT_DEVICE void triangular_solve(Block &t, const TriangularArgs &a) {
  const int64_t slices = (a.columns + kSolvedColumns - 1) / kSolvedColumns;
  const int64_t matrix = t.block() / slices, first = t.block() % slices * kSolvedColumns;
  const int64_t wide = a.columns - first < kSolvedColumns ? a.columns - first : kSolvedColumns;
  const auto from = t.template global<const T>(static_cast<const T *>(a.a) + matrix * a.n * a.n);
  const auto x = t.template global<T>(static_cast<T *>(a.x) + matrix * a.n * a.columns + first);
  auto get = [&](int64_t i, int64_t j) {
    const T v = from.load(i * a.row + j * a.column);
    return a.is_conjugate ? conjugate_of(v) : v;
  };
  for (int64_t step = 0; step < a.n; step++) {
    const int64_t i = a.is_lower ? step : a.n - 1 - step;
    if (!a.is_unit) {
      for (int64_t c = t.thread(); c < wide; c += t.threads())
        x.store(i * a.columns + c, x.load(i * a.columns + c) / get(i, i));
      t.barrier();
    }
    const int64_t begin = a.is_lower ? i + 1 : 0, count = a.n - 1 - step;
    for (int64_t e = t.thread(); e < count * wide; e += t.threads()) {
      const int64_t r = begin + e / wide, c = e % wide;
      x.store(r * a.columns + c, x.load(r * a.columns + c) - get(r, i) * x.load(i * a.columns + c));
    }
    t.barrier();
  }
}

template <class T>
PLAIT_DEVICE void lu_unpack(Block &t, const UnpackArgs &a) {
  const auto rows = t.global<int32_t>(a.rows + t.block() * a.m);
  const auto pivots = t.global<const int32_t>(a.pivots + t.block() * a.k);
  if (t.thread() == 0) {
    for (int64_t i = 0; i < a.m; i++) rows.store(i, int32_t(i));
    for (int64_t i = 0; i < a.k; i++) {
      int64_t with = pivots.load(i) - 1;
      if (with < 0 || with >= a.m) {
        t.fail(a.fault, kPivotFault, double(with + 1), 1, double(a.m));
        with = i;
      }
      const int32_t moved = rows.load(i);
      rows.store(i, rows.load(with)), rows.store(with, moved);
    }
  }
  t.barrier();
  const auto p = t.template global<T>(static_cast<T *>(a.p) + t.block() * a.m * a.m);
  const auto l = t.template global<T>(static_cast<T *>(a.l) + t.block() * a.m * a.k);
  const auto u = t.template global<T>(static_cast<T *>(a.u) + t.block() * a.k * a.n);
  const auto from =
      t.template global<const T>(static_cast<const T *>(a.factors) + t.block() * a.m * a.n);
  for (int64_t e = t.thread(); e < a.m * a.m; e += t.threads())
    p.store(e, T(rows.load(e % a.m) == e / a.m ? 1 : 0));
  for (int64_t e = t.thread(); e < a.m * a.k; e += t.threads()) {
    const int64_t i = e / a.k, j = e % a.k;
    l.store(e, i == j ? T(1) : j < i ? from.load(i * a.n + j) : T(0));
  }
  for (int64_t e = t.thread(); e < a.k * a.n; e += t.threads())
    u.store(e, e % a.n >= e / a.n ? from.load(e) : T(0));
}

template <class T>
PLAIT_DEVICE void identities(Thread &t, const IdentityArgs &a) {
  const auto to = t.global<T>(a.to);
  const auto factor = t.global<const T>(a.factor);
  for (int64_t e = t.index(); e < a.count * a.n * a.n; e += t.stride()) {
    const int64_t row = e / a.n % a.n;
    const bool is_diagonal = e % a.n == row;
    if (is_diagonal && factor.load(e) == T(0))
      t.fail(a.fault, kSingularFault, double(e / (a.n * a.n)), double(row + 1));
    to.store(e, T(is_diagonal ? 1 : 0));
  }
}
#endif

PLAIT_DEVICE_KERNEL(lu_factor, FactorArgs, 256, MATRIX);
PLAIT_DEVICE_KERNEL(cholesky_factor, FactorArgs, 256, MATRIX);
PLAIT_DEVICE_KERNEL(triangular_solve, TriangularArgs, 256, MATRIX);
PLAIT_DEVICE_KERNEL(lu_unpack, UnpackArgs, 256, MATRIX);
PLAIT_DEVICE_KERNEL(identities, IdentityArgs, 256, MATRIX);

#if PLAIT_HOST
namespace {

// linalg_cholesky(A, upper), linalg_cholesky_ex(A, upper, check_errors) -> L[, info]
plait_status cholesky(plait_call *c) {
  const DLTensor *in = tensor(c, 0), *out = result(c);
  const Kind k = kind(in->dtype);
  if (!has_kernel(k)) return PLAIT_DECLINE;
  const MatricesView view(in, in);
  DeviceWorkspace space;
  FactorArgs a{};
  a.a = out->data, a.count = view.count, a.n = a.m = view.columns();
  a.is_upper = integer(c, 1) != 0;
  PLAIT_TRY(info_of(c, 1, a.count, &space, &a.info));
  if (a.n == 0) return fill_bytes(c, a.info, 0, a.count * 4);
  PLAIT_TRY(copy_dense(c, in, out->data));
  PLAIT_TRY(launch(c, cholesky_factor_kernel, k, a, a.count, threads_for(a.n)));
  if (c->n_out > 1 && !integer(c, 2)) return PLAIT_OK;
  return check_info(c, a.info, in,
                    "is not positive definite: its leading minor of order %d is not; add a "
                    "multiple of the identity, or use linalg.eigh or linalg.lu_factor");
}

// linalg_lu_factor(A, pivot) -> LU, pivots; linalg_lu_factor_ex(A, pivot, check_errors) -> LU,
// pivots, info
plait_status lu(plait_call *c) {
  const DLTensor *in = tensor(c, 0), *out = result(c);
  const Kind k = kind(in->dtype);
  if (!has_kernel(k) || !integer(c, 1, 1)) return PLAIT_DECLINE;
  const MatricesView view(in, in);
  DeviceWorkspace space;
  FactorArgs a{};
  a.a = out->data, a.count = view.count, a.m = view.rows(), a.n = view.columns();
  a.pivots = data<int32_t>(result(c, 1));
  PLAIT_TRY(info_of(c, 2, a.count, &space, &a.info));
  if (a.m == 0 || a.n == 0) return fill_bytes(c, a.info, 0, a.count * 4);
  PLAIT_TRY(copy_dense(c, in, out->data));
  PLAIT_TRY(launch(c, lu_factor_kernel, k, a, a.count, threads_for(a.m), kWarp * 16));
  if (c->n_out < 3 || !integer(c, 2)) return PLAIT_OK;
  return check_info(c, a.info, in, "has a singular factor: U[%d - 1] is 0 on its diagonal");
}

// lu_unpack(LU, pivots) -> P, L, U
plait_status unpack(plait_call *c) {
  const DLTensor *in = tensor(c, 0);
  const Kind k = kind(in->dtype);
  if (!has_kernel(k)) return PLAIT_DECLINE;
  const MatricesView view(in, in);
  DeviceWorkspace factors, pivots, rows;
  UnpackArgs a{};
  a.m = view.rows(), a.n = view.columns(), a.k = a.m < a.n ? a.m : a.n;
  if (a.m == 0 || view.count == 0) return PLAIT_OK;
  const void *numbers;
  PLAIT_TRY(make_dense(c, in, &factors, &a.factors));
  PLAIT_TRY(make_dense(c, tensor(c, 1), &pivots, &numbers));
  PLAIT_TRY(rows.take(c, view.count * a.m * 4));
  a.pivots = static_cast<const int32_t *>(numbers), a.rows = rows.data<int32_t>();
  a.p = result(c)->data, a.l = result(c, 1)->data, a.u = result(c, 2)->data;
  a.fault = fault_of(c, 1);
  return launch(c, lu_unpack_kernel, k, a, view.count, threads_for(a.m));
}

plait_status launch_solve(const plait_call *c, Kind k, const TriangularArgs &a, int64_t count) {
  return launch(c, triangular_solve_kernel, k, a, count * ceil_div(a.columns, kSolvedColumns),
                threads_for(a.n));
}

// linalg_solve_triangular(A, B, upper, left, unitriangular)
plait_status solve_triangular(plait_call *c) {
  const DLTensor *in = tensor(c, 0), *b = tensor(c, 1), *out = result(c);
  const Kind k = kind(in->dtype);
  if (!has_kernel(k)) return PLAIT_DECLINE;
  if (numel(out) == 0) return PLAIT_OK;
  const bool flipped = !integer(c, 3);  // X A = B is A^T X^T = B^T
  const MatricesView matrices(in, out), right(b, out, flipped);
  DeviceWorkspace a_space, x_space;
  TriangularArgs a{};
  PLAIT_TRY(make_dense(c, &matrices.t, &a_space, &a.a));
  a.n = matrices.rows(), a.columns = right.columns();
  a.row = flipped ? 1 : a.n, a.column = flipped ? a.n : 1;
  a.is_lower = (integer(c, 2) != 0) == flipped;
  a.is_unit = integer(c, 4) != 0;
  a.x = out->data;
  if (flipped) {
    PLAIT_TRY(x_space.take(c, numel(out) * size_of(k)));
    a.x = x_space.data();
  }
  PLAIT_TRY(copy_dense(c, &right.t, a.x));
  PLAIT_TRY(launch_solve(c, k, a, right.count));
  if (!flipped) return PLAIT_OK;
  DLTensor made = *out;
  int64_t shape[PLAIT_MAX_DIMS], strides[PLAIT_MAX_DIMS], step = 1;
  made.data = a.x, made.shape = shape, made.strides = strides;
  const int d = out->ndim;
  for (int i = 0; i < d; i++) shape[i] = out->shape[i];
  strides[d - 2] = 1, strides[d - 1] = a.columns;
  step = a.columns * a.n;
  for (int i = d - 3; i >= 0; i--) strides[i] = step, step *= shape[i];
  return copy_dense(c, &made, out->data);
}

// cholesky_inverse(L, upper)
plait_status cholesky_inverse(plait_call *c) {
  const DLTensor *in = tensor(c, 0), *out = result(c);
  const Kind k = kind(in->dtype);
  if (!has_kernel(k)) return PLAIT_DECLINE;
  if (numel(out) == 0) return PLAIT_OK;
  const MatricesView view(in, in);
  DeviceWorkspace space;
  TriangularArgs a{};
  PLAIT_TRY(make_dense(c, in, &space, &a.a));
  a.x = out->data, a.n = a.columns = view.rows();
  const IdentityArgs identity{out->data, a.a, view.count, a.n, fault_of(c)};
  PLAIT_TRY(launch(c, identities_kernel, k, identity, blocks_for(c, numel(out), 256), 256));
  const bool is_upper = integer(c, 1) != 0;
  for (int pass = 0; pass < 2; pass++) {  // the lower factor, then the upper one
    const bool crossed = (pass == 0) == is_upper;
    a.is_lower = pass == 0, a.is_conjugate = crossed;
    a.row = crossed ? 1 : a.n, a.column = crossed ? a.n : 1;
    PLAIT_TRY(launch_solve(c, k, a, view.count));
  }
  return PLAIT_OK;
}

PLAIT_KERNEL("linalg_cholesky", cholesky);
PLAIT_KERNEL("cholesky", cholesky);
PLAIT_KERNEL("linalg_cholesky_ex", cholesky);
PLAIT_KERNEL("linalg_lu_factor", lu);
PLAIT_KERNEL("linalg_lu_factor_ex", lu);
PLAIT_KERNEL("lu_unpack", unpack);
PLAIT_KERNEL("linalg_solve_triangular", solve_triangular);
PLAIT_KERNEL("cholesky_inverse", cholesky_inverse);

}  // namespace
#endif

}  // namespace plait::cuda
