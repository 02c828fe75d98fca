// Products of matrices for functions of operators: mm, linear, convolutions and others.
#pragma once
#include "host/launch.h"

namespace plait::cuda {

// A matrix of each batch. Strides are in elements.
struct MatrixOperand {
  const void *data = nullptr;
  int64_t row = 0, column = 0, batch = 0;
};

// c = alpha a b + beta addend for an m x k `a` and a k x n `b` of each batch. `addend.data` NULL:
// there is none. The rows of c are `c_row` elements apart, its columns adjacent.
struct MatrixProduct {
  Kind kind;
  int64_t batch, m, n, k;
  MatrixOperand a{}, b{};
  void *c = nullptr;
  int64_t c_row = 0, c_batch = 0;
  MatrixOperand addend{};
  plait_value alpha{PLAIT_INT, 0, {1}}, beta{PLAIT_INT, 0, {1}};
};

plait_status product(const plait_call *c, const MatrixProduct &p);

}  // namespace plait::cuda
