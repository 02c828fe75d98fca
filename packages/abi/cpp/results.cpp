// The functions that shape functions call: results, views and casts of arguments.
#include <algorithm>

#include "frame.hpp"

namespace plait::abi {
namespace {

Frame *frame_of(plait_call *c) {
  return c->size == sizeof(Frame) ? static_cast<Frame *>(c) : nullptr;
}

plait_status cast_one(plait_call *c, plait_tensor *t, DLDataType dtype, plait_value *out) {
  plait_value in[] = {value(t), value(dtype)}, result[PLAIT_MAX_RESULTS];
  const plait_status s = base_call(op_cast, c->thread, in, 2, result);
  if (s >= 0) *out = result[0];
  return s;
}

}  // namespace

plait_status result_strided(plait_call *c, uint32_t i, DLDataType dtype, int32_t ndim,
                            const int64_t *shape, const int64_t *strides) {
  Frame *f = frame_of(c);
  if (f && f->target[i]) return into_target(f, i, dtype, ndim, shape, strides);
  if (f && __builtin_expect(f->owned | f->reusable, 0))
    if (plait_tensor *t = overwritable(f, dtype, ndim, shape, strides)) {
      plait_retain(t);
      c->out[i] = value(t);
      return PLAIT_OK;
    }
  plait_tensor *t = nullptr;
  const plait_status s = tensor_new(c->thread, dtype, ndim, shape, strides, c->device, &t);
  if (s >= 0) {
    c->out[i] = value(t);
    return s;
  }
  return named(c, s);
}

plait_status result(plait_call *c, uint32_t i, DLDataType dtype, int32_t ndim,
                    const int64_t *shape) {
  return result_strided(c, i, dtype, ndim, shape, nullptr);
}

plait_status view(plait_call *c, uint32_t i, plait_tensor *base, int32_t ndim, const int64_t *shape,
                  const int64_t *strides, int64_t offset) {
  plait_tensor *t = nullptr;
  int64_t bytes = 0;
  if (__builtin_mul_overflow(offset, itemsize(base->dl.dtype), &bytes) || ptrdiff_t(bytes) != bytes)
    return fail(c, PLAIT_SHAPE_ERROR, "a view from element %lld lies outside every storage",
                (long long)offset);
  void *data = base->dl.data;  // the data pointer is checked below
  if (data) data = reinterpret_cast<void *>(reinterpret_cast<uintptr_t>(data) + uint64_t(bytes));
  bool empty = false;
  for (int32_t k = 0; k < ndim; k++) empty |= shape[k] == 0;
  if (empty) data = base->dl.data;  // an offset past the end would be outside of the storage
  const plait_status s =
      tensor_on(c->thread, base->storage, data, base->dl.dtype, ndim, shape, strides, &t);
  if (s < 0) return named(c, s);
  t->flags |= PLAIT_TENSOR_VIEW | (base->flags & PLAIT_TENSOR_DATA);
  if (c->op != op_detach.load(std::memory_order_relaxed)) {
    t->base = base->base ? base->base : base;
    plait_retain(t->base);
    // a layer that watches the base is switched off on this thread, so it does not see this view
    const uint64_t unseen = (base->layers | t->base->layers) & c->thread->excluded;
    t->flags |= unseen ? uint64_t(PLAIT_TENSOR_CUT) : base->flags & PLAIT_TENSOR_CUT;
  }
  Frame *f = frame_of(c);
  if (f && c->op->results[i].kind == PLAIT_KIND_TENSORS)
    f->list.push_back(t);
  else
    c->out[i] = value(t);
  return PLAIT_OK;
}

plait_status cast(plait_call *c, uint32_t i, DLDataType dtype) {
  plait_value *v = c->in + i;
  if (v->tag == PLAIT_TENSOR) {
    if (same(v->u.t->dl.dtype, dtype)) return PLAIT_OK;
    plait_value result;
    if (const plait_status s = cast_one(c, v->u.t, dtype, &result); s < 0) return s;
    if (c->owned >> i & 1) release_value(v);
    *v = result;
    c->owned |= uint64_t(1) << i;
  } else if (v->tag == PLAIT_TENSORS) {
    const auto is_cast = [&](const plait_tensor *t) { return !t || same(t->dl.dtype, dtype); };
    if (std::all_of(v->u.ts, v->u.ts + v->n, is_cast)) return PLAIT_OK;
    plait_value list;
    if (const plait_status s = tensors_value(c->thread, v->u.ts, v->n, &list); s < 0) return s;
    plait_status s = PLAIT_OK;
    for (uint32_t k = 0; k < list.n && s >= 0; k++) {
      plait_tensor **slot = const_cast<plait_tensor **>(list.u.ts) + k;
      plait_value result;
      if (!*slot || same((*slot)->dl.dtype, dtype)) continue;
      if (s = cast_one(c, *slot, dtype, &result); s < 0) break;
      plait_release(*slot);
      *slot = result.u.t;
    }
    if (s < 0) {
      release_value(&list);
      return s;
    }
    if (c->owned >> i & 1) release_value(v);
    *v = list;
    c->owned |= uint64_t(1) << i;
  }
  return PLAIT_OK;
}

}  // namespace plait::abi
