// Writing along one dimension by indices: scatter and scatter_add.
#include "indexing/index_walk.h"
#include "kernel/copy.h"
#include "pointwise/math.h"

namespace plait::core {
namespace {

// scatter(self, dim, index, src): in order, so that the last of several with one index is kept
plait_status scatter(plait_call *c) {
  const DLTensor *in = tensor(c, 0), *index = tensor(c, 2), *source = tensor(c, 3);
  DLTensor *out = result(c);
  const Kind k = kind(in->dtype);
  const int64_t dim = dim_of(c, 1, in);
  PLAIT_TRY(check_indices(c, "index", index, in->ndim ? in->shape[dim] : 1));
  PLAIT_TRY(copy(c, out, in));
  alignas(16) char number[16] = {};
  if (!source) store_number(k, c->in[3], number);
  PLAIT_BY_SIZE(size_of(k), {
    const T value = *reinterpret_cast<const T *>(number);
    parallel_parts(c, index, out, source, dim, size_of(k), false, [&](const IndexWalk &p) {
      if (source) {
        p.each<T>([](T *to, const T *from) { *to = *from; });
      } else {
        p.each<T>([value](T *to, const T *) { *to = value; });
      }
    });
  })
  return PLAIT_OK;
}

// scatter_add(self, dim, index, src)
plait_status scatter_add(plait_call *c) {
  const DLTensor *in = tensor(c, 0), *index = tensor(c, 2), *source = tensor(c, 3);
  DLTensor *out = result(c);
  const Kind k = kind(in->dtype);
  const int64_t dim = dim_of(c, 1, in);
  PLAIT_TRY(check_indices(c, "index", index, in->ndim ? in->shape[dim] : 1));
  PLAIT_TRY(copy(c, out, in));
  const int item = size_of(k);
  const auto run = [&](auto zero) {
    using T = decltype(zero);
    using W = scalar::math::wide<T>;
    parallel_parts(c, index, out, source, dim, item, false, [](const IndexWalk &p) {
      p.each<T>([](T *to, const T *from) { *to = T(W(*to) + W(*from)); });
    });
    return PLAIT_OK;
  };
  if (k == Bool) return run(bool());
  if (is_complex_kind(k)) PLAIT_COMPLEX(k, return run(T()))
  PLAIT_NUMERIC(k, return run(T()))
  return PLAIT_OK;
}

PLAIT_KERNEL("scatter", scatter);
PLAIT_KERNEL("scatter.value", scatter);
PLAIT_KERNEL("scatter_add", scatter_add);

}  // namespace
}  // namespace plait::core
