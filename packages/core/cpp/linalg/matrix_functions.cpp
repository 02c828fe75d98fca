// exp of a matrix: scaling, a Pade approximant of order 13, squaring (Higham 2005).
#include "linalg/matrix_batches.h"

namespace plait::core::linalg {
namespace {

constexpr double kPade[14] = {64764752532480000.,
                              32382376266240000.,
                              7771770303897600.,
                              1187353796428800.,
                              129060195264000.,
                              10559470521600.,
                              670442572800.,
                              33522128640.,
                              1323241920.,
                              40840800.,
                              960960.,
                              16380.,
                              182.,
                              1.};

template <class T>
void multiply(int n, const T *a, const T *b, T *to) {
  char plain = 'N';
  T one = T(1), zero = T(0);
  fortran(lapack<T>().gemm, &plain, &plain, &n, &n, &n, &one, a, &n, b, &n, &zero, to, &n, kOne,
          kOne);
}

template <class T>
double norm_one(int64_t n, const T *a) {
  double most = 0;
  for (int64_t j = 0; j < n; j++) {
    double sum = 0;
    for (int64_t i = 0; i < n; i++) sum += magnitude(a[j * n + i]);
    if (!(sum <= most)) most = sum;  // NaN stays
  }
  return most;
}

// to = x a2 + y a4 + z a6 (+ w on the diagonal)
template <class T>
void combine(int64_t n, const T *const power[3], double x, double y, double z, double w, T *to) {
  for (int64_t i = 0; i < n * n; i++)
    to[i] = T(Real<T>(x)) * power[0][i] + T(Real<T>(y)) * power[1][i] + T(Real<T>(z)) * power[2][i];
  for (int64_t i = 0; i < n; i++) to[i * n + i] += T(Real<T>(w));
}

// Replaces a by e^a, in row-major or column-major order.
template <class T>
int exponential(int n, T *a, Workspaces &memory) {
  const int64_t size = int64_t(n) * n;
  T *a2 = memory.take<T>(size), *a4 = memory.take<T>(size), *a6 = memory.take<T>(size);
  T *odd = memory.take<T>(size), *even = memory.take<T>(size), *spare = memory.take<T>(size);
  int *pivots = memory.take<int>(n);
  if (memory.failed) return kNoMemory;
  const double norm = norm_one(n, a);
  if (!__builtin_isfinite(norm)) {
    for (int64_t i = 0; i < size; i++) a[i] = T(Real<T>(__builtin_nan("")));
    return 0;
  }
  int squarings = 0;
  double scale = 1;
  for (; norm * scale > 5.371920351148152; scale /= 2) squarings++;
  for (int64_t i = 0; i < size; i++) a[i] *= T(Real<T>(scale));
  multiply(n, a, a, a2);
  multiply(n, a2, a2, a4);
  multiply(n, a4, a2, a6);
  const T *const power[3] = {a2, a4, a6};
  // after division by the leading coefficient nothing leaves the range of float32
  const double *b = kPade, unit = 1 / kPade[0];
  combine(n, power, b[9] * unit, b[11] * unit, b[13] * unit, 0, spare);
  multiply(n, a6, spare, even);
  combine(n, power, b[3] * unit, b[5] * unit, b[7] * unit, b[1] * unit, spare);
  for (int64_t i = 0; i < size; i++) spare[i] += even[i];
  multiply(n, a, spare, odd);
  combine(n, power, b[8] * unit, b[10] * unit, b[12] * unit, 0, spare);
  multiply(n, a6, spare, even);
  combine(n, power, b[2] * unit, b[4] * unit, b[6] * unit, 1, spare);
  for (int64_t i = 0; i < size; i++) {
    even[i] += spare[i];
    a[i] = even[i] + odd[i];
    even[i] -= odd[i];
  }
  int info = 0;
  fortran(lapack<T>().gesv, &n, &n, even, &n, pivots, a, &n, &info);
  for (T *from = a, *to = spare, *last; squarings > 0; squarings--) {
    multiply(n, from, from, to);
    last = from;
    from = to;
    to = last;
    if (squarings == 1 && from != a) memcpy(a, from, size_t(size) * sizeof(T));
  }
  return info;
}

template <class T>
plait_status matrix_exp(plait_call *c) {
  const Matrices a(c);
  const int64_t n = a.n;
  T *to = data<T>(result(c));
  const char *const reason = "is too large for its exponential (%d)";
  return a.each<T>(c, 20.0 * n * n * n, reason, [&](int64_t i, T *at, Workspaces &memory) {
    const int failed = n ? exponential<T>(int(n), at, memory) : 0;
    to_rows(at, n, n, n, to + i * n * n);
    return failed;
  });
}
PLAIT_LINALG_KERNEL("linalg_matrix_exp", matrix_exp);

}  // namespace
}  // namespace plait::core::linalg
