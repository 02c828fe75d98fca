// nonzero_rows(self, count): the coordinates of the elements that are not 0, of which there are
// `count`; nonzero_static(self, size, fill_value): of the first `size` of them.
#include "kernel/copy.h"

namespace plait::core {
namespace {

constexpr int64_t kRun = 256;

// Writes the positions of the nonzero bytes among n <= kRun, and returns their number.
int64_t nonzero_positions(const uint8_t *p, int64_t n, int64_t *to) {
  int64_t result = 0;
  // every position is written, and overwritten unless its byte is nonzero
  for (int64_t i = 0; i < n; i++) {
    to[result] = i;
    result += p[i] != 0;
  }
  return result;
}

plait_status write_rows(plait_call *c, int64_t fill) {
  const DLTensor *self = tensor(c, 0);
  DLTensor *out = result(c);
  const int64_t n = numel(self), rows = out->shape[0];
  const int ndim = self->ndim;
  int64_t *to = data<int64_t>(out), *const end = to + rows * ndim;
  // self may have changed since its elements were counted
  for (int64_t *p = to; p < end; p++) *p = fill;
  if (n == 0 || ndim == 0) return PLAIT_OK;
  Workspace space;
  const uint8_t *p = data<uint8_t>(self);
  if (kind(self->dtype) != Bool || !is_contiguous(self)) {
    PLAIT_TRY(space.take(c, uint64_t(n)));
    int64_t strides[PLAIT_MAX_DIMS], step = 1;
    for (int d = ndim - 1; d >= 0; d--) {
      strides[d] = step;
      step *= self->shape[d];
    }
    DLTensor dense = *self;
    dense.dtype = DLDataType{kDLBool, 8, 1};
    dense.strides = strides;
    dense.data = space.as<char>();
    PLAIT_TRY(copy(c, &dense, self));
    p = space.as<uint8_t>();
  }
  const int64_t width = self->shape[ndim - 1];
  int64_t at[PLAIT_MAX_DIMS] = {}, match[kRun];
  for (int64_t row = 0; row < n / width && to < end; row++) {
    for (int64_t j = 0; j < width; j += kRun) {
      const int64_t m = width - j < kRun ? width - j : kRun,
                    count = nonzero_positions(p + row * width + j, m, match);
      for (int64_t i = 0; i < count && to < end; i++) {
        for (int d = 0; d < ndim - 1; d++) *to++ = at[d];
        *to++ = j + match[i];
      }
    }
    for (int d = ndim - 2; d >= 0; d--) {
      if (++at[d] < self->shape[d]) break;
      at[d] = 0;
    }
  }
  return PLAIT_OK;
}

plait_status nonzero_rows(plait_call *c) { return write_rows(c, 0); }
plait_status nonzero_static(plait_call *c) { return write_rows(c, integer(c, 2)); }

PLAIT_KERNEL("nonzero_rows", nonzero_rows);
PLAIT_KERNEL("nonzero_static", nonzero_static);

}  // namespace
}  // namespace plait::core
