// A matrix of any strides.
#pragma once
#include "kernel/vec.h"

namespace plait::core {

template <class T>
struct Matrix {  // element (i, j) is data[i * rows + j * columns]
  const T *data;
  int64_t rows, columns;
  Matrix at(int64_t i, int64_t j) const { return {data + i * rows + j * columns, rows, columns}; }
  Matrix transposed() const { return {data, columns, rows}; }
};

}  // namespace plait::core
