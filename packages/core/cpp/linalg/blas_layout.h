// How BLAS gets a matrix of any strides: as it lies, by a leading dimension, or packed.
#pragma once
#include "kernel/copy.h"
#include "linalg/blas.h"
#include "linalg/matrix.h"

namespace plait::core {

// The leading dimension of the matrix or of its transpose. 0: neither.
struct BlasLayout {
  int64_t ld;
  int trans;
};

template <class T>
BlasLayout blas_layout(const Matrix<T> &a, int64_t rows, int64_t columns) {
  const bool one_row = rows <= 1, one_column = columns <= 1;
  if (a.columns == 1 || one_column) {
    const int64_t ld = one_row ? (columns > 1 ? columns : 1) : a.rows;
    if (ld >= columns && ld >= 1 && ld <= INT32_MAX) return {ld, kNoTrans};
  }
  if (a.rows == 1 || one_row) {
    const int64_t ld = one_column ? (rows > 1 ? rows : 1) : a.columns;
    if (ld >= rows && ld >= 1 && ld <= INT32_MAX) return {ld, kTrans};
  }
  return {0, 0};
}

// Copies a matrix that BLAS doesn't take into rows that lie one after the other.
template <class T>
plait_status pack(const plait_call *c, Matrix<T> *a, int64_t rows, int64_t columns,
                  Workspace *space) {
  if (blas_layout(*a, rows, columns).ld) return PLAIT_OK;
  PLAIT_TRY(space->take(c, uint64_t(rows * columns) * sizeof(T)));
  const int64_t shape[2] = {rows, columns}, dense[2] = {columns, 1},
                from[2] = {a->rows, a->columns};
  copy_strided(c, space->as<char>(), dense, reinterpret_cast<const char *>(a->data), from, shape, 2,
               sizeof(T));
  *a = {space->as<T>(), columns, 1};
  return PLAIT_OK;
}

}  // namespace plait::core
