// cat: every input is copied into its slice of the result.
#include "kernel/copy.h"

namespace plait::core {
namespace {

plait_status cat(plait_call *c) {
  const DLTensor *out = result(c);
  const int64_t dim = wrapped(integer(c, 1), out->ndim);
  int64_t shape[PLAIT_MAX_DIMS], at = 0;
  memcpy(shape, out->shape, size_t(out->ndim) * sizeof(int64_t));
  const int64_t step = out->strides[dim] * size_of(kind(out->dtype));
  for (uint32_t i = 0; i < c->in[0].n; i++) {
    const DLTensor *t = &c->in[0].u.ts[i]->dl;
    // a tensor of shape (0,) can be joined with any other, as in PyTorch
    if (t->ndim == 1 && t->shape[0] == 0) continue;
    DLTensor slice = *out;
    slice.shape = shape;
    shape[dim] = t->shape[dim];
    slice.data = data<char>(out) + at * step;
    PLAIT_TRY(copy(c, &slice, t));
    at += t->shape[dim];
  }
  return PLAIT_OK;
}

PLAIT_KERNEL("cat", cat);

}  // namespace
}  // namespace plait::core
