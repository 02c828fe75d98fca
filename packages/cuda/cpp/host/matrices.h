// Batches of matrices, for functions of operators of linear algebra.
#pragma once
#include "host/dense.h"

namespace plait::cuda {

inline bool has_kernel(Kind k) { return k == F32 || k == F64 || k == C64 || k == C128; }

// Threads for a block that works on n rows.
inline int threads_for(int64_t n) { return n <= 16 ? 32 : n <= 64 ? 128 : 256; }

// A tensor whose last two dimensions are matrices, broadcast to the leading dimensions of `out`,
// and transposed if `flipped`.
struct MatricesView {
  DLTensor t;
  int64_t shape[PLAIT_MAX_DIMS], strides[PLAIT_MAX_DIMS], count = 1;
  MatricesView(const DLTensor *from, const DLTensor *out, bool flipped = false) : t(*from) {
    const int d = out->ndim;
    t.ndim = d, t.shape = shape, t.strides = strides;
    for (int i = 0; i < d - 2; i++) {
      const int at = i - (d - from->ndim);
      const bool moves = at >= 0 && from->shape[at] != 1;
      shape[i] = out->shape[i], strides[i] = moves ? from->strides[at] : 0;
      count *= shape[i];
    }
    const int row = from->ndim - (flipped ? 1 : 2), column = from->ndim - (flipped ? 2 : 1);
    shape[d - 2] = from->shape[row], strides[d - 2] = from->strides[row];
    shape[d - 1] = from->shape[column], strides[d - 1] = from->strides[column];
  }
  int64_t rows() const { return shape[t.ndim - 2]; }
  int64_t columns() const { return shape[t.ndim - 1]; }
};

// Fails for the first matrix of which `info` is not 0: "`A` at batch index (1,) is singular: ...";
// `reason` is the reason, with one %d for the number. It waits for the device.
plait_status check_info(const plait_call *c, const int32_t *info, const DLTensor *a,
                        const char *reason);

// Result i, `info`, of operators that have it, else memory for it.
plait_status info_of(const plait_call *c, int i, int64_t count, DeviceWorkspace *space,
                     int32_t **to);

}  // namespace plait::cuda
