// Products with an operand that is packed once and used many times: filters of convolutions,
// weights of recurrent layers and of inference.
#pragma once
#include "linalg/tile.h"

namespace plait::core {

// The number of elements of a packed k x n matrix. It is the layout of pack_panels, so that
// Panels<T>::packed(to, k) are its panels.
template <class T>
constexpr int64_t packed_size(int64_t k, int64_t n) {
  return k * ceil_div(n, kPanel<T>) * kPanel<T>;
}

// Packs b, a k x n matrix of any strides, on all threads. On one thread pack_panels does.
template <class T>
void pack_operand(const plait_call *c, Matrix<T> b, int64_t k, int64_t n, T *to);

// c = a b, or c += a b where `add`, for an m x k a of any strides and a packed k x n b. Element
// (i, j) of c is c[i * rows + j * columns], and one of these strides is 1. A packed left operand is
// packed as its transpose: c = w x is the product of x.transposed() and the packed w.transposed(),
// with the strides of c exchanged.
template <class T>
struct PackedProduct {
  int64_t m, n, k;
  Matrix<T> a;
  const T *b;
  bool add;
  T *c;
  int64_t rows, columns;
};

// On the calling thread, without memory of its own.
template <class T>
void gemm_packed_serial(const PackedProduct<T> &p);

// On all threads, with the same bits.
template <class T>
void gemm_packed(const plait_call *c, const PackedProduct<T> &p);

}  // namespace plait::core
