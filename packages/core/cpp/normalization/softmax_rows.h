// Sums of exponentials over contiguous rows, shared by softmax and the losses.
#ifndef PLAIT_CORE_SOFTMAX_ROWS_H
#define PLAIT_CORE_SOFTMAX_ROWS_H
#include "pointwise/math.h"
#include "reduction/rows.h"

namespace plait::core {

namespace math = scalar::math;

// out = exp(x - shift)
template <class T>
PLAIT_INLINE void exp_row(const T *x, T shift, int64_t n, T *out) {
#pragma GCC ivdep
  for (int64_t i = 0; i < n; i++) out[i] = math::exp(x[i] - shift);
}
template <class T>
T largest(const T *x, int64_t n) {
  return reduce_contiguous<Max, T, T>(x, n);
}
template <class T>
T total(const T *x, int64_t n) {
  return T(reduce_contiguous<Sum, T>(x, n));
}

constexpr int64_t kShort = 64;

// Short rows are padded with -inf to whole vectors, as exp costs as much for eight elements as for
// one.
template <class T>
struct ShortRow {
  alignas(64) T data[kShort + 16];
  int64_t padded;
  ShortRow(const T *x, int64_t n) : padded((n + 7) & ~int64_t(7)) {
    for (int64_t i = 0; i < n; i++) data[i] = x[i];
    for (int64_t i = n; i < padded; i++) data[i] = -T(math::kInf);
  }
};

// log(sum(exp(x))) in two parts: their sum would lose the second where numbers are large.
template <class T>
struct LogSum {
  T top, rest;  // the largest number, and the logarithm of sum(exp(x - top))
  T value() const {  // a row of -inf gives -inf
    return top == -T(math::kInf) || top == T(math::kInf) ? top : top + rest;
  }
};
template <class T>
LogSum<T> log_sum(const T *x, int64_t n, T *scratch) {
  const T top = largest(x, n);
  if (n <= kShort) {
    ShortRow<T> row(x, n);
    exp_row(row.data, top, row.padded, row.data);
    return {top, math::log(total(row.data, n))};
  }
  exp_row(x, top, n, scratch);
  return {top, math::log(total(scratch, n))};
}

}  // namespace plait::core
#endif  // PLAIT_CORE_SOFTMAX_ROWS_H
