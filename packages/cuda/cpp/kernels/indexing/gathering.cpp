// Reading by indices: gather, index_select, embedding and advanced indexing are one kernel, which
// knows where a position lies in the result, in self and in the index.
#include "block/block.h"
#include "host/walk.h"

namespace plait::cuda {
namespace {

struct GatherArgs {
  char *to;
  const char *from;
  const int64_t *indices;
  int64_t n, step, low, size;  // bytes between neighbours along the indexed dimension
  int32_t is_checked;
  Walk<3> walk;  // of the result, of self and of the indices
  Fault fault;
};
struct OffsetArgs {
  int64_t *offsets;
  const int64_t *indices;
  int64_t n, step, size;
  int32_t is_first;
  Walk<2> walk;
  Fault fault;
};

#if PLAIT_KERNELS
template <class T>
PLAIT_DEVICE void gather_elements(Thread &t, const GatherArgs &a) {
  constexpr int kUnrolled = 4;
  constexpr int64_t item = sizeof(T);
  const auto from = t.global<const T>(a.from);
  const auto to = t.global<T>(a.to);
  const auto indices = t.global<const int64_t>(a.indices);
  const int64_t step = t.stride();
  for (int64_t i = t.index(); i < a.n; i += kUnrolled * step) {
    int64_t at[kUnrolled], source[kUnrolled];
    T v[kUnrolled];
#pragma unroll
    for (int u = 0; u < kUnrolled; u++) {
      if (i + u * step >= a.n) continue;
      int64_t offset[3];
      a.walk.seek(i + u * step, offset);
      const int64_t index = indices.load(offset[2] / 8);
      at[u] = offset[0];
      source[u] = offset[1] + (index < 0 && a.is_checked ? index + a.size : index) * a.step;
      if (a.is_checked && (index < a.low || index >= a.size)) {
        t.fail(a.fault, kIndexFault, double(index), double(a.low), double(a.size));
        source[u] = INT64_MIN;
      }
    }
#pragma unroll
    for (int u = 0; u < kUnrolled; u++)
      if (i + u * step < a.n) v[u] = source[u] == INT64_MIN ? T() : from.load(source[u] / item);
#pragma unroll
    for (int u = 0; u < kUnrolled; u++)
      if (i + u * step < a.n) to.store(at[u] / item, v[u]);
  }
}

template <class T>
PLAIT_DEVICE void add_offsets(Thread &t, const OffsetArgs &a) {
  const auto offsets = t.global<int64_t>(a.offsets);
  const auto indices = t.global<const int64_t>(a.indices);
  for (int64_t i = t.index(); i < a.n; i += t.stride()) {
    int64_t offset[2];
    a.walk.seek(i, offset);
    int64_t index = indices.load(offset[1] / 8);
    if (index < -a.size || index >= a.size) {
      t.fail(a.fault, kIndexFault, double(index), -double(a.size), double(a.size));
      index = 0;
    }
    const int64_t more = (index < 0 ? index + a.size : index) * a.step;
    offsets.store(offset[0] / 8, a.is_first ? more : offsets.load(offset[0] / 8) + more);
  }
}
#endif

#define PLAIT_EACH_OFFSETS(X, ...) X(i64, int64_t, __VA_ARGS__)
PLAIT_DEVICE_KERNEL(gather_elements, GatherArgs, 256, SIZES);
PLAIT_DEVICE_KERNEL(add_offsets, OffsetArgs, 256, OFFSETS);

}  // namespace
}  // namespace plait::cuda

#if PLAIT_HOST
#include "host/indexing.h"

namespace plait::cuda {
namespace {

// Writes the elements of self at the indices of the space to `out`, which has its shape.
plait_status read_indexed(const plait_call *c, IndexSpace *s, const DLTensor *self,
                          const DLTensor *out) {
  const int64_t n = s->numel();
  if (n == 0) return PLAIT_OK;
  s->set_other(out);
  const int item = size_of(kind(self->dtype));
  Plan p;
  p.operands = 3, p.ndim = s->ndim, p.numel = n;
  p.data[0] = data<char>(out), p.data[1] = data<char>(self);
  p.data[2] = reinterpret_cast<char *>(const_cast<int64_t *>(s->indices));
  for (int d = 0; d < s->ndim; d++) {
    p.size[d] = s->shape[d];
    p.stride[0][d] = s->other[d] * item;
    p.stride[1][d] = s->self[d] * item;
    p.stride[2][d] = s->index[d] * 8;
  }
  p.finish();
  GatherArgs a{};
  a.step = s->step * item, a.low = s->low, a.size = s->size, a.is_checked = s->is_checked;
  a.fault = fault_of(c);
  a.to = p.data[0], a.from = p.data[1], a.indices = s->indices;
  // Elements of up to 16 bytes, if the innermost dimension is not indexed: offsets of the indices
  // are then multiples of them too, which is not known of offsets that kernels computed.
  int wide = item;
  const int last = p.ndim - 1;
  if (p.stride[2][last] == 0 && s->is_checked && a.step % 16 == 0) {
    Plan pair = p;
    pair.operands = 2;
    wide = join_elements(&pair, item);
    p.size[last] = pair.size[last], p.numel = pair.numel;
    p.stride[0][last] = pair.stride[0][last], p.stride[1][last] = pair.stride[1][last];
  }
  a.n = p.numel;
  if (!make_walk(p, &a.walk)) return too_many_dimensions(c);
  return launch(c, gather_elements_kernel, instance_of_size(wide), a,
                blocks_for(c, ceil_div(a.n, 4), 256), 256);
}

int64_t dim_of(const plait_call *c, int i, const DLTensor *t) {
  return t->ndim ? wrapped(integer(c, i), t->ndim) : 0;
}

// index_select(self, dim, index)
plait_status index_select(plait_call *c) {
  Operand self, index;
  PLAIT_TRY(self.take(c, tensor(c, 0)));
  PLAIT_TRY(index.take(c, tensor(c, 2)));
  const DLTensor *in = self.tensor();
  IndexSpace s;
  if (in->ndim)
    space_of_slices(in, index.tensor(), dim_of(c, 1, in), &s);
  else
    space_along(in, index.tensor(), 0, &s);
  return read_indexed(c, &s, in, result(c));
}

// gather(self, dim, index)
plait_status gather(plait_call *c) {
  Operand self, index;
  PLAIT_TRY(self.take(c, tensor(c, 0)));
  PLAIT_TRY(index.take(c, tensor(c, 2)));
  const DLTensor *in = self.tensor();
  IndexSpace s;
  space_along(in, index.tensor(), dim_of(c, 1, in), &s);
  return read_indexed(c, &s, in, result(c));
}

// embedding(weight, indices, padding_idx)
plait_status embedding(plait_call *c) {
  Operand weight, index;
  PLAIT_TRY(weight.take(c, tensor(c, 0)));
  PLAIT_TRY(index.take(c, tensor(c, 1)));
  IndexSpace s;
  space_of_rows(weight.tensor(), index.tensor(), &s);
  return read_indexed(c, &s, weight.tensor(), result(c));
}

plait_status index_tensors(plait_call *c) {
  Operand self;
  PLAIT_TRY(self.take(c, tensor(c, 0)));
  TensorIndices indices;
  IndexSpace s;
  PLAIT_TRY(indices.take(c, self.tensor(), c->in[1], &s));
  return read_indexed(c, &s, self.tensor(), result(c));
}

PLAIT_KERNEL("index_select", index_select);
PLAIT_KERNEL("gather", gather);
PLAIT_KERNEL("embedding", embedding);
PLAIT_KERNEL("index_tensors", index_tensors);

}  // namespace

plait_status add_index_offsets(const plait_call *c, const DLTensor *index, const int64_t *shape,
                               int ndim, int64_t size, int64_t step, bool is_first,
                               int64_t *offsets) {
  DLTensor to = *index;
  int64_t strides[PLAIT_MAX_DIMS];
  to.data = offsets, to.ndim = ndim, to.shape = const_cast<int64_t *>(shape);
  to.strides = strides;
  dense_strides(&to, strides);
  Plan p;
  p.add(&to, 8);
  p.add(index, 8);
  if (p.numel == 0) return PLAIT_OK;
  p.finish();
  OffsetArgs a{offsets, data<int64_t>(index), p.numel, step, size, is_first, {}, fault_of(c)};
  if (!make_walk(p, &a.walk)) return too_many_dimensions(c);
  return launch(c, add_offsets_kernel, I64, a, blocks_for(c, a.n, 256), 256);
}

}  // namespace plait::cuda
#endif
