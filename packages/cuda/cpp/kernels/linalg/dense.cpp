// Copies of operands in row-major order, for kernels that read no other.
#include "block/block.h"
#include "host/walk.h"
#if PLAIT_HOST
#include "host/dense.h"
#endif

namespace plait::cuda {

struct DenseArgs {
  const char *from;
  void *to;
  int64_t n;
  Walk<1> walk;
};

#if PLAIT_KERNELS
template <class T>
PLAIT_DEVICE void dense_copy(Thread &t, const DenseArgs &a) {
  const auto to = t.global<T>(a.to);
  for (int64_t i = t.index(); i < a.n; i += t.stride()) {
    int64_t offset[1];
    a.walk.seek(i, offset);
    to.store(i, t.global<const T>(a.from + offset[0]).load(0));
  }
}
#endif
PLAIT_DEVICE_KERNEL(dense_copy, DenseArgs, 256, SIZES);

#if PLAIT_HOST
plait_status copy_dense(const plait_call *c, const DLTensor *x, void *to) {
  const int64_t n = numel(x);
  const int size = size_of(kind(x->dtype));
  if (n == 0) return PLAIT_OK;
  if (is_contiguous(x)) return copy_bytes(c, to, x->data, n * size);
  DenseArgs a{};
  a.from = static_cast<const char *>(x->data), a.to = to, a.n = n;
  a.walk.is_large = n >= (int64_t(1) << 31);
  for (int d = x->ndim - 1; d >= 0; d--) {
    if (x->shape[d] == 1) continue;
    const int at = a.walk.dims;
    if (at > 0 && x->strides[d] * size == a.walk.stride[at - 1][0] * a.walk.size[at - 1] &&
        a.walk.size[at - 1] * x->shape[d] < (int64_t(1) << 31)) {
      a.walk.size[at - 1] *= x->shape[d];
      a.walk.by[at - 1] = divider(a.walk.size[at - 1]);
      continue;
    }
    if (at == kWalkDims)
      return PLAIT_FAIL(c, PLAIT_NOT_IMPLEMENTED,
                        "an operand of more than %d dimensions that cannot be merged has no kernel",
                        kWalkDims);
    a.walk.size[at] = x->shape[d];
    a.walk.by[at] = divider(x->shape[d]);
    a.walk.stride[at][0] = x->strides[d] * size;
    a.walk.dims++;
  }
  return launch(c, dense_copy_kernel, instance_of_size(size), a, blocks_for(c, n, 256), 256);
}

plait_status make_dense(const plait_call *c, const DLTensor *x, DeviceWorkspace *space,
                        const void **out) {
  *out = x->data;
  const int64_t n = numel(x);
  if (n == 0 || is_contiguous(x)) return PLAIT_OK;
  PLAIT_TRY(space->take(c, n * size_of(kind(x->dtype))));
  *out = space->data();
  return copy_dense(c, x, space->data());
}
#endif

}  // namespace plait::cuda
