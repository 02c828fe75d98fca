// Determinants, from the LU factors.
#include "linalg/matrix_batches.h"

namespace plait::core::linalg {
namespace {

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
  const Matrices a(c);
  const int64_t n = a.n;
  return a.each<T>(c, double(n) * n * n, "", [&](int64_t i, T *at, Workspaces &memory) {
    int *pivots = memory.take<int>(n);
    if (memory.failed) return kNoMemory;
    if (n) getrf<T>(int(n), int(n), at, pivots);
    store(i, determinant<T>(n, at, pivots));
    return 0;
  });
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

}  // namespace
}  // namespace plait::core::linalg
