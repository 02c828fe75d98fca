// masked_values(self, mask, count): the elements where the mask is true, of which there are
// `count`; masked_write_(self, mask, source): writes a source there, in order.
#include "kernel/integers.h"
#include "kernel/plan.h"

namespace plait::core {
namespace {

constexpr int64_t kRun = 256;

// Calls f(first element, positions, how many) for runs of `self`'s elements in C order. A position
// is that of a true element of the mask in its run.
template <class F>
void each_run(const DLTensor *self, const DLTensor *mask, int item, F &&f) {
  Plan p;
  p.add(self, item);
  p.add(mask, 1);
  if (p.numel == 0) return;
  p.finish(false);
  int64_t at[PLAIT_MAX_DIMS + 1], result[kRun];
  char *q[kMaxOperands];
  p.seek(0, at, q);
  const int last = p.ndim - 1;
  const int64_t n = p.size[last], step = p.stride[0][last], mask_step = p.stride[1][last];
  for (int64_t done = 0; done < p.numel; done += n, p.next_row(at, q))
    for (int64_t j = 0; j < n; j += kRun) {
      const int64_t m = least(kRun, n - j);
      const char *chosen = q[1] + j * mask_step;
      int64_t count = 0;
      // every position is written, and overwritten unless its element is chosen
      for (int64_t i = 0; i < m; i++) {
        result[count] = i * step;
        count += chosen[i * mask_step] != 0;
      }
      if (count && !f(q[0] + j * step, result, count)) return;
    }
}

plait_status masked_values(plait_call *c) {
  const DLTensor *self = tensor(c, 0);
  DLTensor *out = result(c);
  const int item = size_of(kind(self->dtype));
  PLAIT_BY_SIZE(item, {
    T *to = data<T>(out), *const end = to + numel(out);
    each_run(self, tensor(c, 1), item, [&](const char *from, const int64_t *at, int64_t n) {
      n = least(n, end - to);  // the mask may have changed since its elements were counted
      for (int64_t i = 0; i < n; i++) to[i] = *reinterpret_cast<const T *>(from + at[i]);
      to += n;
      return to < end;
    });
    memset(to, 0, size_t(end - to) * sizeof(T));
  })
  return PLAIT_OK;
}

plait_status masked_write(plait_call *c) {
  const DLTensor *self = tensor(c, 0), *source = tensor(c, 2);
  const int item = size_of(kind(self->dtype));
  const int64_t step = source->strides[0];
  PLAIT_BY_SIZE(item, {
    const T *from = data<T>(source);
    int64_t left = source->shape[0];
    each_run(self, tensor(c, 1), item, [&](char *to, const int64_t *at, int64_t n) {
      n = least(n, left);
      for (int64_t i = 0; i < n; i++) *reinterpret_cast<T *>(to + at[i]) = from[i * step];
      from += n * step;
      left -= n;
      return left > 0;
    });
  })
  return PLAIT_OK;
}

PLAIT_KERNEL("masked_values", masked_values);
PLAIT_KERNEL("masked_write_", masked_write);

}  // namespace
}  // namespace plait::core
