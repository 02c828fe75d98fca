// Dropout: elements are set to 0 with probability p, the others are scaled by 1 / (1 - p).
#include "block/block.h"
#include "block/philox.h"
#include "host/walk.h"

namespace plait::cuda {
namespace {

struct DropoutArgs {
  const void *from;
  void *to;
  bool *kept;
  int64_t n;
  RandomStream stream;
  uint64_t below;
  double scale;
  int32_t is_dense;
  Walk<3> walk;  // of the result, the mask and the input, in elements
};

#if PLAIT_KERNELS
template <class T>
PLAIT_DEVICE void drop_elements(Thread &t, const DropoutArgs &a) {
  using V = Compute<T>;
  const auto from = t.global<const T>(a.from);
  const auto to = t.global<T>(a.to);
  const auto kept = t.global<bool>(a.kept);
  const V scale = V(a.scale);
  const RandomStream s = stream_of_run(t, a.stream);
  for (int64_t b = t.index(); b < (a.n + 3) / 4; b += t.stride()) {
    const RandomWords w = philox(s.seed, s.offset + uint64_t(b), 0);
    if constexpr (sizeof(T) <= 4) {
      if (a.is_dense && 4 * b + 4 <= a.n) {
        const auto x = from.template load_vector<4>(4 * b);
        Vector<T, 4> y;
        Vector<bool, 4> keep;
#pragma unroll
        for (int k = 0; k < 4; k++) {
          keep.at[k] = w.at[k] < a.below;
          y.at[k] = narrow<T>(keep.at[k] ? widen(x.at[k]) * scale : V(0));
        }
        to.template store_vector<4>(4 * b, y);
        kept.template store_vector<4>(4 * b, keep);
        continue;
      }
    }
    for (int k = 0; k < 4 && 4 * b + k < a.n; k++) {
      int64_t offset[3];
      a.walk.seek(4 * b + k, offset);
      const bool keep = w.at[k] < a.below;
      kept.store(offset[1], keep);
      to.store(offset[0], narrow<T>(keep ? widen(from.load(offset[2])) * scale : V(0)));
    }
  }
}
#endif

PLAIT_DEVICE_KERNEL(drop_elements, DropoutArgs, 256, FLOATING);

}  // namespace
}  // namespace plait::cuda

#if PLAIT_HOST
#include "host/random.h"

namespace plait::cuda {
namespace {

// native_dropout(input, p, *, generator) -> (output, mask)
plait_status native_dropout(plait_call *c) {
  Operand input;
  PLAIT_TRY(input.take(c, tensor(c, 0)));
  const DLTensor *x = input.tensor(), *y = result(c, 0), *kept = result(c, 1);
  const double p = real(c, 1);
  DropoutArgs a{};
  a.n = numel(x);
  PLAIT_TRY(reserve_stream(c, blocks_of_groups(a.n, 4), &a.stream));
  if (a.n == 0) return PLAIT_OK;
  a.from = x->data, a.to = y->data, a.kept = data<bool>(kept);
  a.below = threshold(1 - p), a.scale = p < 1 ? 1 / (1 - p) : 0;
  const uintptr_t all = reinterpret_cast<uintptr_t>(x->data) |
                        reinterpret_cast<uintptr_t>(y->data) |
                        reinterpret_cast<uintptr_t>(kept->data);
  a.is_dense = is_contiguous(x) && is_contiguous(y) && is_contiguous(kept) && all % 16 == 0;
  Plan plan;
  plan.add(y, 1);
  plan.add(kept, 1);
  plan.add(x, 1);
  plan.finish(false);
  if (!make_walk(plan, &a.walk)) return too_many_dimensions(c);
  return launch(c, drop_elements_kernel, kind(x->dtype), a, blocks_for(c, ceil_div(a.n, 4), 256),
                256);
}
PLAIT_KERNEL("native_dropout", native_dropout);

}  // namespace
}  // namespace plait::cuda
#endif
