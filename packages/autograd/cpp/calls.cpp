// The operators that the engine itself calls.
#include <algorithm>
#include <vector>

#include "engine.hpp"

namespace plait::autograd {

Engine engine;

namespace {

LazyOperator op_add("add"), op_alias("alias"), op_clone("clone"), op_cast("cast"), op_copy("copy_"),
    op_empty("empty"), op_zeros("zeros"), op_ones("ones"), op_sum("sum"), op_reshape("reshape"),
    op_arange("arange"), op_as_strided("as_strided"), op_index_add("index_add"),
    op_scatter("scatter"), op_expand("expand"), op_as_real("view_as_real"),
    op_as_complex("view_as_complex");

Tensor run(plait_thread *thread, LazyOperator &op, const plait_value *in, size_t n) {
  plait_value out[PLAIT_MAX_RESULTS];
  call(thread, op.get(thread), in, n, out);
  return Tensor::steal(out[0].u.t);
}

Tensor as_real(plait_thread *thread, const Tensor &t) {
  const plait_value in[] = {value(t)};
  return run(thread, op_as_real, in, 1);
}
Tensor as_complex(plait_thread *thread, const Tensor &t) {
  const plait_value in[] = {value(t)};
  return run(thread, op_as_complex, in, 1);
}

Tensor filled(plait_thread *thread, LazyOperator &op, DType dtype, DLDevice device,
              const int64_t *shape, int32_t ndim) {
  const plait_value in[] = {ints(shape, size_t(ndim)), value(dtype), value(device)};
  return run(thread, op, in, 3);
}

}  // namespace

const plait_op *LazyOperator::get(plait_thread *thread) {
  const plait_op *op = op_.load(std::memory_order_acquire);
  if (op) return op;
  op = engine.runtime->op(name_);
  if (!op)
    raise(thread, PLAIT_NOT_IMPLEMENTED, "backward",
          "the operator `%s` must be defined (plait-ops)", name_);
  op_.store(op, std::memory_order_release);
  return op;
}

Tensor add(plait_thread *thread, const Tensor &a, const Tensor &b) {
  const plait_value in[] = {value(a), value(b)};
  return run(thread, op_add, in, 2);
}

Tensor alias(plait_thread *thread, const Tensor &t) {
  const plait_value in[] = {value(t)};
  return run(thread, op_alias, in, 1);
}

void add_into(plait_thread *thread, const Tensor &target, const Tensor &b) {
  const plait_value in[] = {value(target), value(b)};
  plait_value out[PLAIT_MAX_RESULTS];
  plait_retain(target.get());
  out[0] = value(target);
  try {  // `call` throws without releasing the target of the in-place form
    call(thread, op_add.get(thread), in, 2, out, PLAIT_INPLACE);
  } catch (...) {
    plait_release(target.get());
    throw;
  }
  engine.runtime->release_value(out);
}

Tensor clone(plait_thread *thread, const Tensor &t) {
  const plait_value in[] = {value(t)};
  return run(thread, op_clone, in, 1);
}

Tensor cast(plait_thread *thread, const Tensor &t, DType dtype) {
  const plait_value in[] = {value(t), value(dtype)};
  return run(thread, op_cast, in, 2);
}

void copy_into(plait_thread *thread, const Tensor &target, const Tensor &source) {
  const plait_value in[] = {value(target), value(source)};
  run(thread, op_copy, in, 2);
}

Tensor empty(plait_thread *thread, DType dtype, DLDevice device, const int64_t *shape,
             int32_t ndim) {
  return filled(thread, op_empty, dtype, device, shape, ndim);
}
Tensor zeros(plait_thread *thread, DType dtype, DLDevice device, const int64_t *shape,
             int32_t ndim) {
  return filled(thread, op_zeros, dtype, device, shape, ndim);
}
Tensor ones(plait_thread *thread, DType dtype, DLDevice device, const int64_t *shape,
            int32_t ndim) {
  return filled(thread, op_ones, dtype, device, shape, ndim);
}

// Sums over broadcast dimensions; the caller has checked that `shape` broadcasts to the tensor's.
Tensor sum_to(plait_thread *thread, const Tensor &t, const int64_t *shape, int32_t ndim) {
  int64_t dims[PLAIT_MAX_DIMS];
  size_t n = 0;
  const int32_t lead = t.ndim() - ndim;
  for (int32_t i = 0; i < t.ndim(); i++)
    if (i < lead || (shape[i - lead] == 1 && t.size(i) != 1)) dims[n++] = i;
  if (!n) return t;
  const plait_value in[] = {value(t), ints(dims, n), value(true)};
  const Tensor summed = run(thread, op_sum, in, 3);
  if (!lead) return summed;
  const plait_value reshaped[] = {value(summed), ints(shape, size_t(ndim))};
  return run(thread, op_reshape, reshaped, 2);
}

Tensor reshape(plait_thread *thread, const Tensor &t, const int64_t *shape, size_t ndim) {
  const plait_value in[] = {value(t), ints(shape, ndim)};
  return run(thread, op_reshape, in, 2);
}

Tensor flat(plait_thread *thread, const Tensor &t) {
  const int64_t all = -1;
  return reshape(thread, t, &all, 1);
}

Tensor expand(plait_thread *thread, const Tensor &t, const int64_t *shape, int32_t ndim) {
  const plait_value in[] = {value(t), ints(shape, size_t(ndim))};
  return run(thread, op_expand, in, 2);
}

namespace {

Tensor window(plait_thread *thread, const Tensor &memory, int32_t ndim, const int64_t *shape,
              const int64_t *strides, int64_t offset) {
  const plait_value in[] = {value(memory), ints(shape, size_t(ndim)), ints(strides, size_t(ndim)),
                            value(offset)};
  return run(thread, op_as_strided, in, 4);
}

// The numbers in a memory of so many elements of those in a view, as a list.
Tensor positions(plait_thread *thread, const Tensor &memory, int32_t ndim, const int64_t *shape,
                 const int64_t *strides, int64_t offset) {
  const plait_value range[] = {value(memory.numel()), value(dtype::int64), value(memory.device())};
  return flat(thread,
              window(thread, run(thread, op_arange, range, 3), ndim, shape, strides, offset));
}

// A view in the dtype that it and its memory have in common: that of the parts of complex numbers
// if one of them is complex.
class CommonWindow {
 public:
  CommonWindow(const Tensor &memory, const Window &w)
      : complex_memory_(memory.dtype().code == kDLComplex && !same(memory.dtype(), w.dtype)),
        complex_view_(w.dtype.code == kDLComplex && !same(memory.dtype(), w.dtype)),
        shape(w.shape, w.shape + w.ndim),
        strides(w.strides, w.strides + w.ndim),
        offset(w.offset) {
    if (!complex_view_) return;
    for (int64_t &stride : strides) stride *= 2;
    offset *= 2;
    shape.push_back(2);
    strides.push_back(1);
  }
  Tensor memory(plait_thread *thread, const Tensor &t) const {
    return complex_memory_ ? as_real(thread, t) : t;
  }
  Tensor original(plait_thread *thread, const Tensor &memory) const {
    const int64_t pairs[] = {-1, 2};
    return complex_memory_ ? as_complex(thread, reshape(thread, memory, pairs, 2)) : memory;
  }
  Tensor to_view(plait_thread *thread, const Tensor &t) const {
    return complex_view_ ? as_complex(thread, t) : t;
  }
  Tensor from_view(plait_thread *thread, const Tensor &t) const {
    return complex_view_ ? as_real(thread, t) : t;
  }
  int32_t ndim() const { return int32_t(shape.size()); }

 private:
  bool complex_memory_, complex_view_;

 public:
  std::vector<int64_t> shape, strides;
  int64_t offset;
};

}  // namespace

Tensor strided(plait_thread *thread, const Tensor &memory, const Window &w) {
  const CommonWindow c(memory, w);
  return c.to_view(thread, window(thread, c.memory(thread, memory), c.ndim(), c.shape.data(),
                                  c.strides.data(), c.offset));
}

Tensor with_strided(plait_thread *thread, const Tensor &memory, const Window &w,
                    const Tensor &values) {
  const CommonWindow c(memory, w);
  const Tensor parts = flat(thread, c.memory(thread, memory));
  const Tensor at = positions(thread, parts, c.ndim(), c.shape.data(), c.strides.data(), c.offset),
               source = flat(thread, c.from_view(thread, values));
  const plait_value in[] = {value(parts), value(0), value(at), value(source)};
  return c.original(thread, run(thread, op_scatter, in, 4));
}

Tensor add_at(plait_thread *thread, const Tensor &memory, int32_t ndim, const int64_t *shape,
              const int64_t *strides, int64_t offset, const Tensor &values) {
  const Tensor at = positions(thread, memory, ndim, shape, strides, offset),
               added = flat(thread, values);
  const plait_value in[] = {value(memory), value(0), value(at), value(added)};
  return run(thread, op_index_add, in, 4);
}

bool exclusive(const plait_tensor *t) {
  return __atomic_load_n(&t->o.refs, __ATOMIC_ACQUIRE) == 1 && has_sole_owner(t->storage) &&
         !(t->storage->flags &
           (PLAIT_STORAGE_EXTERNAL | PLAIT_STORAGE_READONLY | PLAIT_STORAGE_EXPORTED)) &&
         !t->slot[1];
}

bool distinct(int32_t ndim, const int64_t *shape, const int64_t *strides) {
  int32_t order[PLAIT_MAX_DIMS];
  int32_t n = 0;
  for (int32_t i = 0; i < ndim; i++) {
    if (shape[i] == 0) return true;
    if (shape[i] > 1) order[n++] = i;
  }
  const auto step = [&](int32_t i) { return strides[i] < 0 ? -strides[i] : strides[i]; };
  std::sort(order, order + n, [&](int32_t a, int32_t b) { return step(a) < step(b); });
  int64_t span = 0;
  for (int32_t k = 0; k < n; k++) {
    if (step(order[k]) <= span) return false;
    span += step(order[k]) * (shape[order[k]] - 1);
  }
  return true;
}

}  // namespace plait::autograd
