// What kernels of linear algebra share: a block for each matrix, in row-major order in global
// memory.
#pragma once
#include "block/block.h"

#define PLAIT_EACH_MATRIX(X, ...) \
  PLAIT_EACH_WIDE(X, __VA_ARGS__) \
  PLAIT_EACH_COMPLEX(X, __VA_ARGS__)

#if PLAIT_KERNELS
namespace plait::cuda {

template <class T>
using RealPart = typename scalar::math::RealOf<T>::type;

template <class T>
PLAIT_DEVICE RealPart<T> real_of(T x) {
  if constexpr (scalar::math::is_complex<T>) {
    return x.re;
  } else {
    return x;
  }
}
template <class T>
PLAIT_DEVICE T conjugate_of(T x) {
  if constexpr (scalar::math::is_complex<T>) {
    return {x.re, -x.im};
  } else {
    return x;
  }
}
template <class T>
PLAIT_DEVICE RealPart<T> squared(T x) {
  if constexpr (scalar::math::is_complex<T>) {
    return x.re * x.re + x.im * x.im;
  } else {
    return x * x;
  }
}
// By which pivots are compared, as LAPACK does.
template <class T>
PLAIT_DEVICE RealPart<T> size_of_pivot(T x) {
  if constexpr (scalar::math::is_complex<T>) {
    return scalar::math::abs(x.re) + scalar::math::abs(x.im);
  } else {
    return scalar::math::abs(x);
  }
}
template <class T>
PLAIT_DEVICE bool is_not_zero(T x) {
  return !(x == T(0));
}

// The sum of the values of all threads of a block, on each of them. `some` has room for a value of
// each warp; all threads pass two barriers.
template <class T>
PLAIT_DEVICE T sum_of_block(Block &t, const Shared<T> &some, T v) {
  for (int by = kWarp / 2; by > 0; by /= 2) v = v + t.shuffle_xor(v, by);
  if (t.lane() == 0) some.store(t.warp(), v);
  t.barrier();
  T sum = some.load(0);
  for (int i = 1; i < t.warps(); i++) sum = sum + some.load(i);
  t.barrier();
  return sum;
}

}  // namespace plait::cuda
#endif
