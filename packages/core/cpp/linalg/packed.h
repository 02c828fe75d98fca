// Products with an operand that is packed once and used many times: weights of inference.
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

// c = bias + a b for an m x k a of any strides, a packed k x n b, and a bias of each column, null
// for none.
template <class T>
struct PackedProduct {
  int64_t m, n, k;
  Matrix<T> a;
  const T *b, *bias;
  T *c;
};

// On all threads, with the bits of a product of which c is the bias before.
template <class T>
plait_status gemm_packed(const plait_call *c, const PackedProduct<T> &p);

}  // namespace plait::core
