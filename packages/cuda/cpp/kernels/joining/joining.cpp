// cat: many dense tensors by one launch, others one by one.
#include "block/block.h"
#include "host/walk.h"

namespace plait::cuda {
namespace {

constexpr int kJoined = 128;  // tensors of a launch

// Rows of the result consist of a row of each tensor. Lengths are in elements of the kernel.
struct JoinArgs {
  char *to;
  int64_t n;           // of the tensors of this launch
  int64_t row, first;  // length of a row of the result, and where this launch writes in it
  int32_t count, is_large;
  int64_t begin[kJoined + 1];  // of each tensor in the row of this launch
  const char *from[kJoined];
};

#if PLAIT_KERNELS
template <class T>
PLAIT_DEVICE void join_rows(Thread &t, const JoinArgs &a) {
  const auto to = t.global<T>(a.to);
  const int64_t width = a.begin[a.count];
  for (int64_t i = t.index(); i < a.n; i += t.stride()) {
    const int64_t row = a.is_large ? i / width : int64_t(uint32_t(i) / uint32_t(width));
    const int64_t at = i - row * width;
    int low = 0, high = a.count;  // the last tensor that begins at `at` or before
    while (high - low > 1) {
      const int middle = (low + high) / 2;
      (a.begin[middle] <= at ? low : high) = middle;
    }
    const int64_t own = a.begin[low + 1] - a.begin[low];
    const auto from = t.global<const T>(a.from[low]);
    to.store(row * a.row + a.first + at, from.load(row * own + at - a.begin[low]));
  }
}
#endif

PLAIT_DEVICE_KERNEL(join_rows, JoinArgs, 256, SIZES);

}  // namespace
}  // namespace plait::cuda

#if PLAIT_HOST
#include "host/copy.h"

namespace plait::cuda {
namespace {

bool is_skipped(const DLTensor *t) { return t->ndim == 1 && t->shape[0] == 0; }

// The largest element of up to 16 bytes of which rows and addresses are multiples.
int common_item(const plait_call *c, const DLTensor *out, int64_t inner, int64_t dim, int item) {
  uint64_t all = reinterpret_cast<uintptr_t>(out->data);
  for (uint32_t i = 0; i < c->in[0].n; i++) {
    const DLTensor *t = &c->in[0].u.ts[i]->dl;
    if (is_skipped(t)) continue;
    all |= uint64_t(t->shape[dim] * inner * item) | reinterpret_cast<uintptr_t>(t->data);
  }
  int wide = 16;
  while (wide > item && all % uint64_t(wide)) wide /= 2;
  return wide > item ? wide : item;
}

plait_status join_dense(const plait_call *c, const DLTensor *out, int64_t dim) {
  const int item = size_of(kind(out->dtype));
  int64_t outer = 1, inner = 1;
  for (int d = 0; d < out->ndim; d++)
    if (d != dim) (d < dim ? outer : inner) *= out->shape[d];
  const int wide = common_item(c, out, inner, dim, item);
  JoinArgs a{};
  a.to = data<char>(out);
  a.row = out->shape[dim] * inner * item / wide;
  const auto flush = [&]() -> plait_status {
    a.n = outer * a.begin[a.count];
    a.is_large = a.n >= int64_t(1) << 31;
    if (a.n)
      PLAIT_TRY(
          launch(c, join_rows_kernel, instance_of_size(wide), a, blocks_for(c, a.n, 256), 256));
    a.first += a.begin[a.count];
    a.count = 0;
    return PLAIT_OK;
  };
  for (uint32_t i = 0; i < c->in[0].n; i++) {
    const DLTensor *t = &c->in[0].u.ts[i]->dl;
    if (is_skipped(t) || numel(t) == 0) continue;
    a.from[a.count] = data<char>(t);
    a.begin[a.count + 1] = a.begin[a.count] + t->shape[dim] * inner * item / wide;
    if (++a.count == kJoined) PLAIT_TRY(flush());
  }
  return flush();
}

plait_status cat(plait_call *c) {
  const DLTensor *out = result(c);
  const int64_t dim = wrapped(integer(c, 1), out->ndim);
  bool dense = is_contiguous(out);
  for (uint32_t i = 0; i < c->in[0].n; i++) {
    const DLTensor *t = &c->in[0].u.ts[i]->dl;
    dense &= is_contiguous(t) && is_aligned(t) && kind(t->dtype) == kind(out->dtype) &&
             t->device.device_type != kDLCPU;
  }
  if (numel(out) == 0) return PLAIT_OK;
  if (dense) return join_dense(c, out, dim);
  int64_t shape[PLAIT_MAX_DIMS], at = 0;
  memcpy(shape, out->shape, size_t(out->ndim) * sizeof(int64_t));
  const int64_t step = out->strides[dim] * size_of(kind(out->dtype));
  for (uint32_t i = 0; i < c->in[0].n; i++) {
    const DLTensor *t = &c->in[0].u.ts[i]->dl;
    if (is_skipped(t)) continue;  // it can be joined with any other
    DLTensor slice = *out;
    slice.shape = shape;
    shape[dim] = t->shape[dim];
    slice.data = data<char>(out) + at * step;
    PLAIT_TRY(copy_tensor(c, &slice, t));
    at += t->shape[dim];
  }
  return PLAIT_OK;
}

PLAIT_KERNEL("cat", cat);

}  // namespace
}  // namespace plait::cuda
#endif
