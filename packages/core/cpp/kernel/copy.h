// Copies between any two layouts and dtypes.
#pragma once
#include "kernel/kernel.h"

namespace plait::core {

// from broadcasts to to's shape; dtypes may differ; the memory doesn't overlap, or is the same.
plait_status copy(const plait_call *c, const DLTensor *to, const DLTensor *from);

// The same dtype (elements of `item` bytes) with given strides in elements.
void copy_strided(const plait_call *c, char *to, const int64_t *to_strides, const char *from,
                  const int64_t *from_strides, const int64_t *shape, int ndim, int item);

// `value`, rounded to the dtype of `to`, for all elements.
plait_status fill(const plait_call *c, const DLTensor *to, const plait_value &value);
// Fills with a value that may be a 0-d tensor. The shape functions have checked that it fits.
inline plait_status fill_with(const plait_call *c, const DLTensor *to, const plait_value &value) {
  return value.tag == PLAIT_TENSOR ? copy(c, to, &value.u.t->dl) : fill(c, to, value);
}
inline plait_status fill_with(const plait_call *c, const DLTensor *to, int64_t value) {
  plait_value v{PLAIT_INT, 0, {0}};
  v.u.i = value;
  return fill(c, to, v);
}

}  // namespace plait::core
