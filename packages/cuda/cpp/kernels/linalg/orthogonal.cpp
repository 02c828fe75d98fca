// QR factors by Householder reflections, eigenvalues of Hermitian matrices by Jacobi's rotations,
// and singular values by one-sided ones (Hestenes 1958): a block for each matrix. Rotations of a
// step are of disjoint pairs, so that they run at the same time.
#include "block/matrix.h"
#if PLAIT_HOST
#include "host/matrices.h"
#endif

namespace plait::cuda {

struct ReflectorArgs {
  void *a, *tau, *r;  // [count][m][n], [count][k], [count][rows][n]
  int64_t m, n, k, rows;
};
struct ReflectedArgs {
  const void *a, *tau;
  void *q;  // [count][m][columns]
  int64_t m, n, k, columns;  // k reflections
};

struct EigenArgs {
  const void *from;  // [count][n][n]
  void *a, *v;       // workspaces of the same shape
  void *rotations;   // [count][(n + 1) / 2][3]: phases, then cosines and sines
  void *values, *vectors;
  int32_t *info;
  int64_t n;
  int32_t is_upper;
};

struct SingularArgs {
  const void *from;  // [count][rows][columns]
  void *w, *v;       // [count][n][m], [count][n][n]: columns lie in memory
  void *norms;       // [count][n], of the columns of w
  int32_t *ranks;    // [count][n], of the columns in descending order
  void *values;      // [count][n]
  void *sorted;      // [count][m][n]: the columns of w in that order
  void *right;       // [count][n][n]: the columns of v in that order, or NULL
  int32_t *info;
  int64_t m, n;  // m >= n
  int32_t is_flipped;  // the matrix is the adjoint of `from`
};
// Left vectors from reflections: columns of q times the phases of the diagonal of r.
struct PhaseArgs {
  const void *q, *r;  // [count][m][columns], [count][n][n]
  void *to;           // [count][m][columns], or its adjoint
  int64_t count, m, columns, n;
  int32_t is_adjoint;
};
struct AdjointArgs {
  const void *from;  // [count][n][n]
  void *to;
  int64_t count, n;
};

constexpr int kMostSweeps = 60;

#if PLAIT_KERNELS

template <class T>
PLAIT_DEVICE T scaled_by(T x, RealPart<T> by) {
  if constexpr (scalar::math::is_complex<T>) {
    return {x.re * by, x.im * by};
  } else {
    return x * by;
  }
}
template <class T>
PLAIT_DEVICE T sum_of_warp(Block &t, T v) {
  for (int by = kWarp / 2; by > 0; by /= 2) v = v + t.shuffle_xor(v, by);
  return v;
}
template <class T>
PLAIT_DEVICE bool is_finite(T x) {
  const RealPart<T> size = size_of_pivot(x);
  return size - size == RealPart<T>(0);
}

// a -= factor v (v^H a) for columns [first, end) of rows [j, m): a warp for each column. v is 1 and
// then column j of `from` below its diagonal.
template <class T, class From>
PLAIT_DEVICE void reflect(Block &t, const Global<T> &a, int64_t wide, const From &from, int64_t n,
                          int64_t m, int64_t j, T factor, int64_t first, int64_t end) {
  for (int64_t c = first + t.warp(); c < end; c += t.warps()) {
    T sum = T(0);
    for (int64_t i = j + t.lane(); i < m; i += kWarp) {
      const T v = i == j ? T(1) : from.load(i * n + j);
      sum = sum + conjugate_of(v) * a.load(i * wide + c);
    }
    sum = factor * sum_of_warp(t, sum);
    for (int64_t i = j + t.lane(); i < m; i += kWarp) {
      const T v = i == j ? T(1) : from.load(i * n + j);
      a.store(i * wide + c, a.load(i * wide + c) - v * sum);
    }
  }
}

template <class T>
PLAIT_DEVICE void reflectors(Block &t, const ReflectorArgs &g) {
  using R = RealPart<T>;
  const auto some = t.template shared<R>(kWarp);
  const auto a = t.template global<T>(static_cast<T *>(g.a) + t.block() * g.m * g.n);
  const auto taus = t.template global<T>(static_cast<T *>(g.tau) + t.block() * g.k);
  for (int64_t j = 0; j < g.k; j++) {
    // scaled by the largest element, so that squares do not overflow
    R largest = R(0);
    for (int64_t i = j + t.thread(); i < g.m; i += t.threads()) {
      const R size = size_of_pivot(a.load(i * g.n + j));
      largest = size > largest || size != size ? size : largest;
    }
    for (int by = kWarp / 2; by > 0; by /= 2) {
      const R other = t.shuffle_xor(largest, by);
      largest = other > largest || other != other ? other : largest;
    }
    if (t.lane() == 0) some.store(t.warp(), largest);
    t.barrier();
    for (int w = 0; w < t.warps(); w++) {
      const R other = some.load(w);
      largest = other > largest || other != other ? other : largest;
    }
    t.barrier();
    const R scale = largest == R(0) ? R(1) : largest;
    R below = R(0);
    for (int64_t i = j + 1 + t.thread(); i < g.m; i += t.threads())
      below += squared(scaled_by(a.load(i * g.n + j), R(1) / scale));
    below = sum_of_block(t, some, below);
    const T alpha = a.load(j * g.n + j);
    t.barrier();  // all have read it
    T tau = T(0);
    if (below != R(0) || conjugate_of(alpha) != alpha) {
      const R size = scale * scalar::math::sqrt(below + squared(scaled_by(alpha, R(1) / scale)));
      const R beta = real_of(alpha) >= R(0) ? -size : size;
      tau = scaled_by(T(beta) - alpha, R(1) / beta);
      const T divisor = alpha - T(beta);
      for (int64_t i = j + 1 + t.thread(); i < g.m; i += t.threads())
        a.store(i * g.n + j, a.load(i * g.n + j) / divisor);
      if (t.thread() == 0) a.store(j * g.n + j, T(beta));
      t.barrier();
      reflect<T>(t, a, g.n, a, g.n, g.m, j, conjugate_of(tau), j + 1, g.n);
    }
    if (t.thread() == 0) taus.store(j, tau);
    t.barrier();
  }
  if (!g.r) return;
  const auto r = t.template global<T>(static_cast<T *>(g.r) + t.block() * g.rows * g.n);
  for (int64_t e = t.thread(); e < g.rows * g.n; e += t.threads())
    r.store(e, e / g.n <= e % g.n && e / g.n < g.m ? a.load(e) : T(0));
}

template <class T>
PLAIT_DEVICE void reflected(Block &t, const ReflectedArgs &g) {
  const auto a = t.template global<const T>(static_cast<const T *>(g.a) + t.block() * g.m * g.n);
  const auto taus = t.template global<const T>(static_cast<const T *>(g.tau) + t.block() * g.k);
  const auto q = t.template global<T>(static_cast<T *>(g.q) + t.block() * g.m * g.columns);
  for (int64_t e = t.thread(); e < g.m * g.columns; e += t.threads())
    q.store(e, T(e / g.columns == e % g.columns ? 1 : 0));
  t.barrier();
  for (int64_t j = g.k - 1; j >= 0; j--) {
    reflect<T>(t, q, g.columns, a, g.n, g.m, j, taus.load(j), 0, g.columns);
    t.barrier();
  }
}

// The rotation that makes the product of two columns 0: p' = c p - s p* q, q' = s p + c p* q, where
// p* is the conjugate phase.
template <class T>
struct Rotation {
  RealPart<T> c, s;
  T phase;  // of the product, conjugated
};
template <class T>
PLAIT_DEVICE Rotation<T> rotation_of(RealPart<T> first, RealPart<T> second, T product,
                                     RealPart<T> size) {
  using R = RealPart<T>;
  const R ratio = (second - first) / (R(2) * size);
  const R root = scalar::math::sqrt(R(1) + ratio * ratio);
  const R tangent = (ratio >= R(0) ? R(1) : R(-1)) / (scalar::math::abs(ratio) + root);
  const R c = R(1) / scalar::math::sqrt(R(1) + tangent * tangent);
  return {c, tangent * c, scaled_by(conjugate_of(product), R(1) / size)};
}

// Pair `i` of step `step` of a tournament of n players, of whom an odd number has a bye.
struct Pair {
  int64_t p, q;
};
PLAIT_DEVICE Pair pair_of(int64_t n, int64_t step, int64_t i) {
  const int64_t even = n + n % 2, ring = even - 1;
  int64_t p = i == 0 ? even - 1 : (step + i) % ring, q = (step + ring - i) % ring;
  if (p > q) {
    const int64_t other = p;
    p = q, q = other;
  }
  return {p, q};
}

template <class R>
PLAIT_DEVICE R precision_of() {
  return sizeof(R) == 4 ? R(5.9604645e-8) : R(1.1102230246251565e-16);
}

template <class T>
PLAIT_DEVICE void rotate_pairs(Block &t, const Global<T> &a, const Global<T> &v,
                               const Global<RealPart<T>> &angles, const Global<T> &phases,
                               int64_t n, int64_t step) {
  using R = RealPart<T>;
  const int64_t pairs = (n + 1) / 2;
  for (int64_t e = t.thread(); e < pairs; e += t.threads()) {
    const Pair x = pair_of(n, step, e);
    Rotation<T> r{R(1), R(0), T(1)};
    if (x.q < n) {
      const T product = a.load(x.p * n + x.q);
      const R size = scalar::math::sqrt(squared(product));
      if (size > R(0))
        r = rotation_of<T>(real_of(a.load(x.p * n + x.p)), real_of(a.load(x.q * n + x.q)), product,
                           size);
    }
    angles.store(2 * e, r.c), angles.store(2 * e + 1, r.s), phases.store(e, r.phase);
  }
  t.barrier();
  for (int side = 0; side < 2; side++) {  // columns of a and v, then rows of a
    const int64_t matrices = side == 0 ? 2 : 1;
    for (int64_t e = t.thread(); e < matrices * pairs * n; e += t.threads()) {
      const int64_t i = e % n, pair = e / n % pairs;
      const Pair x = pair_of(n, step, pair);
      const R c = angles.load(2 * pair), s = angles.load(2 * pair + 1);
      if (x.q >= n || s == R(0)) continue;
      const auto &to = e / n / pairs == 0 ? a : v;
      const T phase = side == 0 ? phases.load(pair) : conjugate_of(phases.load(pair));
      const int64_t p = side == 0 ? i * n + x.p : x.p * n + i;
      const int64_t q = side == 0 ? i * n + x.q : x.q * n + i;
      const T one = to.load(p), other = phase * to.load(q);
      to.store(p, scaled_by(one, c) - scaled_by(other, s));
      to.store(q, scaled_by(one, s) + scaled_by(other, c));
    }
    t.barrier();
  }
}

template <class T>
PLAIT_DEVICE void hermitian_eigen(Block &t, const EigenArgs &g) {
  using R = RealPart<T>;
  const int64_t n = g.n, size = n * n, pairs = (n + 1) / 2;
  const auto some = t.template shared<R>(kWarp);
  const auto from = t.template global<const T>(static_cast<const T *>(g.from) + t.block() * size);
  const auto a = t.template global<T>(static_cast<T *>(g.a) + t.block() * size);
  const auto v = t.template global<T>(static_cast<T *>(g.v) + t.block() * size);
  T *const room = static_cast<T *>(g.rotations) + t.block() * pairs * 3;
  const auto phases = t.template global<T>(room);
  const auto angles = t.template global<R>(reinterpret_cast<R *>(room + pairs));
  R bad = R(0);
  for (int64_t e = t.thread(); e < size; e += t.threads()) {
    const int64_t i = e / n, j = e % n;
    const bool named = g.is_upper ? i <= j : i >= j;
    const T x = named ? from.load(e) : conjugate_of(from.load(j * n + i));
    if (!is_finite(from.load(e))) bad = R(1);
    a.store(e, i == j ? T(real_of(x)) : x);
    v.store(e, T(i == j ? 1 : 0));
  }
  bad = sum_of_block(t, some, bad);
  bool is_done = bad > R(0);
  for (int sweep = 0; sweep < kMostSweeps && !is_done; sweep++) {
    R off = R(0), all = R(0);
    for (int64_t e = t.thread(); e < size; e += t.threads()) {
      const R s = squared(a.load(e));
      all += s;
      if (e / n != e % n) off += s;
    }
    off = sum_of_block(t, some, off), all = sum_of_block(t, some, all);
    const R least = precision_of<R>();
    is_done = off <= R(8 * n) * least * least * all;  // what rounding leaves
    for (int64_t step = 0; !is_done && step < n + n % 2 - 1; step++)
      rotate_pairs<T>(t, a, v, angles, phases, n, step);
  }
  if (t.thread() == 0)
    t.template global<int32_t>(g.info).store(t.block(), is_done && bad == R(0) ? 0 : int32_t(n));
  const auto values = t.template global<R>(static_cast<R *>(g.values) + t.block() * n);
  for (int64_t e = t.thread(); e < n * n; e += t.threads()) {
    const int64_t row = e / n, i = e % n;
    if (!g.vectors && row > 0) continue;
    const R own = real_of(a.load(i * n + i));
    int64_t rank = 0;  // where it is in ascending order
    for (int64_t j = 0; j < n; j++) {
      const R other = real_of(a.load(j * n + j));
      rank += other < own || (other == own && j < i);
    }
    if (bad > R(0)) rank = i;
    if (row == 0) values.store(rank, own);
    if (g.vectors)
      t.template global<T>(static_cast<T *>(g.vectors) + t.block() * size)
          .store(row * n + rank, v.load(row * n + i));
  }
}

// Makes the columns of w orthogonal: a warp for each pair.
template <class T>
PLAIT_DEVICE bool orthogonalize(Block &t, const Global<T> &w, const Global<T> &v, int64_t m,
                                int64_t n, int64_t step) {
  using R = RealPart<T>;
  bool has_rotated = false;
  for (int64_t pair = t.warp(); pair < (n + 1) / 2; pair += t.warps()) {
    const Pair x = pair_of(n, step, pair);
    if (x.q >= n) continue;
    R first = R(0), second = R(0);
    T product = T(0);
    for (int64_t i = t.lane(); i < m; i += kWarp) {
      const T p = w.load(x.p * m + i), q = w.load(x.q * m + i);
      first += squared(p), second += squared(q), product = product + conjugate_of(p) * q;
    }
    first = sum_of_warp(t, first), second = sum_of_warp(t, second);
    product = sum_of_warp(t, product);
    const R size = scalar::math::sqrt(squared(product));
    const R bound =
        precision_of<R>() * R(4) * scalar::math::sqrt(first) * scalar::math::sqrt(second);
    if (!(size > bound) || size == R(0)) continue;
    has_rotated = true;
    const Rotation<T> r = rotation_of<T>(first, second, product, size);
    for (int64_t i = t.lane(); i < m + n; i += kWarp) {
      const auto &to = i < m ? w : v;
      const int64_t wide = i < m ? m : n, at = i < m ? i : i - m;
      const T one = to.load(x.p * wide + at), other = r.phase * to.load(x.q * wide + at);
      to.store(x.p * wide + at, scaled_by(one, r.c) - scaled_by(other, r.s));
      to.store(x.q * wide + at, scaled_by(one, r.s) + scaled_by(other, r.c));
    }
  }
  t.barrier();
  return has_rotated;
}

template <class T>
PLAIT_DEVICE void singular(Block &t, const SingularArgs &g) {
  using R = RealPart<T>;
  const int64_t m = g.m, n = g.n;
  const auto some = t.template shared<R>(kWarp);
  const auto from = t.template global<const T>(static_cast<const T *>(g.from) + t.block() * m * n);
  const auto w = t.template global<T>(static_cast<T *>(g.w) + t.block() * m * n);
  const auto v = t.template global<T>(static_cast<T *>(g.v) + t.block() * n * n);
  R bad = R(0);
  for (int64_t e = t.thread(); e < m * n; e += t.threads()) {
    const int64_t j = e / m, i = e % m;
    const T x = g.is_flipped ? conjugate_of(from.load(j * m + i)) : from.load(i * n + j);
    if (!is_finite(x)) bad = R(1);
    w.store(e, x);
  }
  for (int64_t e = t.thread(); e < n * n; e += t.threads()) v.store(e, T(e / n == e % n ? 1 : 0));
  bad = sum_of_block(t, some, bad);
  bool is_done = bad > R(0);
  for (int sweep = 0; sweep < kMostSweeps && !is_done; sweep++) {
    R rotated = R(0);
    for (int64_t step = 0; step < n + n % 2 - 1; step++)
      if (orthogonalize<T>(t, w, v, m, n, step)) rotated = R(1);
    is_done = sum_of_block(t, some, rotated) == R(0);
  }
  if (t.thread() == 0)
    t.template global<int32_t>(g.info).store(t.block(), is_done && bad == R(0) ? 0 : 1);
  const auto norms = t.template global<R>(static_cast<R *>(g.norms) + t.block() * n);
  const auto ranks = t.template global<int32_t>(g.ranks + t.block() * n);
  for (int64_t j = t.warp(); j < n; j += t.warps()) {
    R sum = R(0);
    for (int64_t i = t.lane(); i < m; i += kWarp) sum += squared(w.load(j * m + i));
    sum = sum_of_warp(t, sum);
    if (t.lane() == 0) norms.store(j, scalar::math::sqrt(sum));
  }
  t.barrier();
  const auto values = t.template global<R>(static_cast<R *>(g.values) + t.block() * n);
  for (int64_t j = t.thread(); j < n; j += t.threads()) {
    const R own = norms.load(j);
    int64_t rank = 0;  // where it is in descending order
    for (int64_t i = 0; i < n; i++) {
      const R other = norms.load(i);
      rank += other > own || (other == own && i < j);
    }
    if (bad > R(0)) rank = j;
    ranks.store(j, int32_t(rank));
    values.store(rank, own);
  }
  t.barrier();
  if (!g.right) return;
  const auto sorted = t.template global<T>(static_cast<T *>(g.sorted) + t.block() * m * n);
  const auto right = t.template global<T>(static_cast<T *>(g.right) + t.block() * n * n);
  for (int64_t e = t.thread(); e < n * m; e += t.threads())
    sorted.store(e % m * n + ranks.load(e / m), w.load(e));
  for (int64_t e = t.thread(); e < n * n; e += t.threads())
    right.store(e % n * n + ranks.load(e / n), v.load(e));
}

template <class T>
PLAIT_DEVICE void with_phases(Thread &t, const PhaseArgs &g) {
  using R = RealPart<T>;
  const auto q = t.global<const T>(g.q), r = t.global<const T>(g.r);
  const auto to = t.global<T>(g.to);
  for (int64_t e = t.index(); e < g.count * g.m * g.columns; e += t.stride()) {
    const int64_t j = e % g.columns, i = e / g.columns % g.m, z = e / g.columns / g.m;
    T v = q.load(e);
    if (j < g.n) {
      const T d = r.load((z * g.n + j) * g.n + j);
      const R size = scalar::math::sqrt(squared(d));
      if (size > R(0)) v = v * scaled_by(d, R(1) / size);
    }
    if (g.is_adjoint)
      to.store((z * g.columns + j) * g.m + i, conjugate_of(v));
    else
      to.store(e, v);
  }
}

template <class T>
PLAIT_DEVICE void adjoint(Thread &t, const AdjointArgs &g) {
  const auto from = t.global<const T>(g.from);
  const auto to = t.global<T>(g.to);
  for (int64_t e = t.index(); e < g.count * g.n * g.n; e += t.stride()) {
    const int64_t j = e % g.n, i = e / g.n % g.n, z = e / g.n / g.n;
    to.store((z * g.n + j) * g.n + i, conjugate_of(from.load(e)));
  }
}
#endif

PLAIT_DEVICE_KERNEL(reflectors, ReflectorArgs, 256, MATRIX);
PLAIT_DEVICE_KERNEL(reflected, ReflectedArgs, 256, MATRIX);
PLAIT_DEVICE_KERNEL(hermitian_eigen, EigenArgs, 256, MATRIX);
PLAIT_DEVICE_KERNEL(singular, SingularArgs, 256, MATRIX);
PLAIT_DEVICE_KERNEL(with_phases, PhaseArgs, 256, MATRIX);
PLAIT_DEVICE_KERNEL(adjoint, AdjointArgs, 256, MATRIX);

#if PLAIT_HOST
namespace {

constexpr int64_t kSome = kWarp * 8;  // bytes of a number of each warp

// QR factors by reflections, in place of `a`, [count][m][n]; `tau` is [count][min(m, n)]. `r`, if
// not NULL, is [count][rows][n].
plait_status launch_reflectors(const plait_call *c, Kind k, void *a, void *tau, void *r,
                               int64_t rows, int64_t count, int64_t m, int64_t n) {
  if (m == 0 || n == 0) return PLAIT_OK;
  const ReflectorArgs args{a, tau, r, m, n, m < n ? m : n, rows};
  return launch(c, reflectors_kernel, k, args, count, threads_for(m), kSome);
}
// The first `columns` columns of the product of `some` of the reflections of `a`, [count][m][n].
plait_status launch_reflected(const plait_call *c, Kind k, const void *a, const void *tau, void *q,
                              int64_t columns, int64_t some, int64_t count, int64_t m, int64_t n) {
  if (m == 0 || columns == 0) return PLAIT_OK;
  const ReflectedArgs args{a, tau, q, m, n, some, columns};
  return launch(c, reflected_kernel, k, args, count, threads_for(m));
}

// linalg_qr(A, mode) -> Q, R
plait_status qr(plait_call *c) {
  const DLTensor *in = tensor(c, 0), *q = result(c), *r = result(c, 1);
  const Kind k = kind(in->dtype);
  if (!has_kernel(k)) return PLAIT_DECLINE;
  const MatricesView view(in, in);
  const int64_t m = view.rows(), n = view.columns(), least = m < n ? m : n;
  DeviceWorkspace a, tau;
  PLAIT_TRY(a.take(c, numel(in) * size_of(k)));
  PLAIT_TRY(tau.take(c, view.count * least * size_of(k)));
  PLAIT_TRY(copy_dense(c, in, a.data()));
  PLAIT_TRY(launch_reflectors(c, k, a.data(), tau.data(), r->data, r->shape[r->ndim - 2],
                              view.count, m, n));
  if (text_is(c, 1, "r")) return PLAIT_OK;
  const int64_t columns = q->shape[q->ndim - 1];
  return launch_reflected(c, k, a.data(), tau.data(), q->data, columns, least, view.count, m, n);
}

// geqrf(self) -> a, tau
plait_status geqrf(plait_call *c) {
  const DLTensor *in = tensor(c, 0), *out = result(c);
  const Kind k = kind(in->dtype);
  if (!has_kernel(k)) return PLAIT_DECLINE;
  const MatricesView view(in, in);
  PLAIT_TRY(copy_dense(c, in, out->data));
  return launch_reflectors(c, k, out->data, result(c, 1)->data, nullptr, 0, view.count, view.rows(),
                           view.columns());
}

// linalg_eigh(A, UPLO) -> eigenvalues, eigenvectors; symmetric_eigenvalues(A, UPLO, vectors)
plait_status eigh(plait_call *c) {
  const DLTensor *in = tensor(c, 0);
  const Kind k = kind(in->dtype);
  if (!has_kernel(k)) return PLAIT_DECLINE;
  if (numel(in) == 0) return PLAIT_OK;
  const MatricesView view(in, in);
  const int64_t n = view.rows(), bytes = numel(in) * size_of(k);
  DeviceWorkspace from, a, v, rotations, info;
  EigenArgs g{};
  PLAIT_TRY(make_dense(c, in, &from, &g.from));
  PLAIT_TRY(a.take(c, bytes));
  PLAIT_TRY(v.take(c, bytes));
  PLAIT_TRY(rotations.take(c, view.count * ((n + 1) / 2) * 3 * size_of(k)));
  PLAIT_TRY(info.take(c, view.count * 4));
  g.a = a.data(), g.v = v.data(), g.rotations = rotations.data(), g.info = info.data<int32_t>();
  g.values = result(c)->data,
  g.vectors = c->n_in < 3 || integer(c, 2) ? result(c, 1)->data : nullptr;
  g.n = n, g.is_upper = text_is(c, 1, "U") || text_is(c, 1, "u");
  PLAIT_TRY(launch(c, hermitian_eigen_kernel, k, g, view.count, threads_for(n), kSome));
  return check_info(
      c, g.info, in,
      "has eigenvalues that did not converge (%d of them); look for infinities and NaN in it");
}

// The vectors of a call that has them, from the workspaces of `g`; U is the result `u_at`.
plait_status singular_vectors(const plait_call *c, Kind k, const SingularArgs &g, int64_t count,
                              int u_at) {
  const int64_t size = size_of(k);
  DLTensor *u = result(c, u_at), *vh = result(c, 2);
  const int64_t columns = g.is_flipped ? vh->shape[vh->ndim - 2] : u->shape[u->ndim - 1];
  DeviceWorkspace tau, q, r;
  PLAIT_TRY(tau.take(c, count * g.n * size));
  PLAIT_TRY(q.take(c, count * g.m * columns * size));
  PLAIT_TRY(r.take(c, count * g.n * g.n * size));
  PLAIT_TRY(launch_reflectors(c, k, g.sorted, tau.data(), r.data(), g.n, count, g.m, g.n));
  PLAIT_TRY(launch_reflected(c, k, g.sorted, tau.data(), q.data(), columns, g.n, count, g.m, g.n));
  const PhaseArgs phases{q.data(), r.data(),    (g.is_flipped ? vh : u)->data, count, g.m, columns,
                         g.n,      g.is_flipped};
  PLAIT_TRY(
      launch(c, with_phases_kernel, k, phases, blocks_for(c, count * g.m * columns, 256), 256));
  if (g.is_flipped) return copy_bytes(c, u->data, g.right, count * g.n * g.n * size);
  const AdjointArgs right{g.right, vh->data, count, g.n};
  return launch(c, adjoint_kernel, k, right, blocks_for(c, count * g.n * g.n, 256), 256);
}

// The results with these numbers are S, U and Vh.
plait_status singular_decomposition(plait_call *c, bool has_vectors, int s_at, int u_at) {
  const DLTensor *in = tensor(c, 0);
  const Kind k = kind(in->dtype);
  if (!has_kernel(k)) return PLAIT_DECLINE;
  const MatricesView view(in, in);
  const int64_t rows = view.rows(), columns = view.columns(), size = size_of(k);
  if (view.count == 0) return PLAIT_OK;
  if (rows == 0 || columns == 0) {  // its vectors are those of the identity
    if (!has_vectors) return PLAIT_OK;
    const DLTensor *u = result(c, u_at), *vh = result(c, 2);
    PLAIT_TRY(launch_reflected(c, k, nullptr, nullptr, u->data, u->shape[u->ndim - 1], 0,
                               view.count, rows, columns));
    return launch_reflected(c, k, nullptr, nullptr, vh->data, columns, 0, view.count,
                            vh->shape[vh->ndim - 2], columns);
  }
  SingularArgs g{};
  g.is_flipped = rows < columns;
  g.m = g.is_flipped ? columns : rows, g.n = g.is_flipped ? rows : columns;
  const int64_t whole = view.count * g.m * g.n * size, square = view.count * g.n * g.n * size;
  DeviceWorkspace from, w, v, sorted, right, norms, ranks, info;
  PLAIT_TRY(make_dense(c, in, &from, &g.from));
  PLAIT_TRY(w.take(c, whole));
  PLAIT_TRY(v.take(c, square));
  PLAIT_TRY(norms.take(c, view.count * g.n * size));
  PLAIT_TRY(ranks.take(c, view.count * g.n * 4));
  PLAIT_TRY(info.take(c, view.count * 4));
  if (has_vectors) {
    PLAIT_TRY(sorted.take(c, whole));
    PLAIT_TRY(right.take(c, square));
  }
  g.w = w.data(), g.v = v.data(), g.norms = norms.data(), g.ranks = ranks.data<int32_t>();
  g.sorted = sorted.data(), g.right = right.data(), g.info = info.data<int32_t>();
  g.values = result(c, s_at)->data;
  PLAIT_TRY(launch(c, singular_kernel, k, g, view.count, threads_for(g.m), kSome));
  PLAIT_TRY(check_info(
      c, g.info, in,
      "has singular values that did not converge (%d); look for infinities and NaN in it"));
  return has_vectors ? singular_vectors(c, k, g, view.count, u_at) : PLAIT_OK;
}

// linalg_svd(A, full_matrices) -> U, S, Vh
plait_status svd(plait_call *c) { return singular_decomposition(c, true, 1, 0); }
// singular_values(A, vectors) -> S, U, Vh
plait_status singular_values(plait_call *c) {
  return singular_decomposition(c, integer(c, 1) != 0, 0, 1);
}

PLAIT_KERNEL("linalg_qr", qr);
PLAIT_KERNEL("geqrf", geqrf);
PLAIT_KERNEL("linalg_eigh", eigh);
PLAIT_KERNEL("symmetric_eigenvalues", eigh);
PLAIT_KERNEL("linalg_svd", svd);
PLAIT_KERNEL("singular_values", singular_values);

}  // namespace
#endif

}  // namespace plait::cuda
