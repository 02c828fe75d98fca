// The tensors that a call writes to: targets of the in-place and out= forms, and arguments marked !
#include <algorithm>

#include "frame.hpp"

namespace plait::abi {
namespace {

bool same_elements(const plait_tensor *a, const plait_tensor *b) {
  if (a->dl.data != b->dl.data || a->dl.ndim != b->dl.ndim || !same(a->dl.dtype, b->dl.dtype))
    return false;
  for (int32_t i = 0; i < a->dl.ndim; i++)
    if (a->dl.shape[i] != b->dl.shape[i] ||
        (a->dl.shape[i] > 1 && a->dl.strides[i] != b->dl.strides[i]))
      return false;
  return true;
}

bool overlap(const plait_tensor *a, const plait_tensor *b) {
  // addresses of two devices have nothing to do with each other
  if (a->dl.device.device_type == PLAIT_META || !same(a->dl.device, b->dl.device)) return false;
  const Extent x = extent(a), y = extent(b);
  return x.begin < y.end && y.begin < x.end;
}

plait_status copy_into(plait_thread *thread, plait_tensor *target, plait_tensor *source) {
  plait_value in[] = {value(target), value(source)}, out[PLAIT_MAX_RESULTS];
  const plait_status s = base_call(op_copy, thread, in, 2, out);
  if (s >= 0) release_value(out);
  return s;
}

int dtype_rank(DType d) {
  switch (d.code) {
    case kDLBool: return 0;
    case kDLInt:
    case kDLUInt: return 1;
    case kDLComplex: return 3;
    default: return 2;
  }
}

// Whether the target has the strides that a new result would have (NULL: C order).
bool laid_out(const plait_tensor *target, const int64_t *strides) {
  if (!strides) return is_contiguous(target);
  for (int32_t i = 0; i < target->dl.ndim; i++)
    if (target->dl.shape[i] > 1 && target->dl.strides[i] != strides[i]) return false;
  return true;
}

// Whether the result of the call may be exactly its argument `i`. Kernels of others, which may
// clear the result before they read, get one that shares no memory with an argument.
bool may_be_result(const Frame *f, uint16_t i) {
  if (f->op->flags & PLAIT_OP_POINTWISE) return true;
  if (i != 0 || !(f->op->flags & PLAIT_OP_OVERWRITES)) return false;
  for (const plait_entry *e = backend_entry(f->op, f->device.device_type); e; e = e->prev)
    if (!e->who || !(e->who->flags & PLAIT_PLUGIN_OVERWRITES)) return false;
  return true;
}

// Whether the kernel may write to `target` itself: only if it is like a new result.
bool direct(const Frame *f, const plait_tensor *target, DLDataType dtype, const int64_t *strides) {
  const bool pointwise = f->op->flags & PLAIT_OP_POINTWISE;
  if (!same(target->dl.dtype, dtype) || (!pointwise && !laid_out(target, strides))) return false;
  bool clean = true;
  each_tensor(f->in, f->n_in, [&](const plait_tensor *t, const plait_value *at) {
    if (overlap(t, target) && !(may_be_result(f, uint16_t(at - f->in)) && same_elements(t, target)))
      clean = false;
  });
  return clean;
}

// Whether only the caller has a reference to the tensor and to its bytes.
bool unshared(const plait_tensor *t) {
  const auto sole = [](const plait_object &o) {
    return __atomic_load_n(&o.refs, __ATOMIC_ACQUIRE) == 1;
  };
  return sole(t->o) && sole(t->storage->o) && !t->base && !t->layers && !t->flags &&
         !t->storage->flags && std::all_of(t->slot, t->slot + 4, [](void *p) { return !p; });
}

// Whether the target's memory has room for the shape in C order, from its first element on.
bool has_room(const plait_tensor *target, int32_t ndim, const int64_t *shape) {
  int64_t end = itemsize(target->dl.dtype);
  for (int32_t i = 0; i < ndim; i++)
    if (__builtin_mul_overflow(end, shape[i], &end)) return false;
  const auto *first = static_cast<const char *>(target->dl.data);
  const auto *begin = static_cast<const char *>(target->storage->data);
  return first && !__builtin_add_overflow(end, int64_t(first - begin), &end) &&
         end <= int64_t(target->storage->nbytes);
}

plait_status resize_out(plait_thread *thread, plait_tensor *target, int32_t ndim,
                        const int64_t *shape) {
  plait_tensor *fresh = nullptr;
  const DLTensor &dl = target->dl;
  plait_status s =
      has_room(target, ndim, shape)
          ? tensor_on(thread, target->storage, dl.data, dl.dtype, ndim, shape, nullptr, &fresh)
          : tensor_new(thread, dl.dtype, ndim, shape, nullptr, dl.device, &fresh);
  if (s >= 0) s = tensor_repoint(thread, target, fresh);
  plait_release(fresh);
  return s;
}

}  // namespace

plait_status writable(const plait_call *c, const plait_tensor *t, const char *name) {
  if (__atomic_load_n(&t->storage->flags, __ATOMIC_RELAXED) & PLAIT_STORAGE_READONLY)
    return fail(c, PLAIT_VALUE_ERROR,
                "`%s` is read-only and would be written; copy it first with clone()", name);
  for (int32_t i = 0; i < t->dl.ndim; i++)
    if (t->dl.strides[i] == 0 && t->dl.shape[i] > 1 && numel(t) > 0)
      return fail(c, PLAIT_VALUE_ERROR,
                  "`%s` of shape %s would be written but is expanded: several elements share one "
                  "place; clone() it first",
                  name, shape_text(t).c_str());
  return PLAIT_OK;
}

namespace {

// The errors of `accept`, and whether the target takes on another shape.
plait_status check_target(const plait_call *c, const plait_tensor *target, DLDataType dtype,
                          int32_t ndim, const int64_t *shape, bool *resizes) {
  const char *name = c->form == PLAIT_INPLACE ? c->op->args[0].name : "out";
  bool fits = target->dl.ndim == ndim;
  for (int32_t k = 0; fits && k < ndim; k++) fits = target->dl.shape[k] == shape[k];
  // an array of another library keeps its shape
  const bool resizable = numel(target) == 0 || !(target->storage->flags & PLAIT_STORAGE_EXTERNAL);
  *resizes = !fits && c->form == PLAIT_OUT && resizable;
  if (!fits && !*resizes)
    return fail(c, PLAIT_SHAPE_ERROR,
                "the result has shape %s, which does not fit `%s` of shape %s",
                text(shape, ndim).c_str(), name, shape_text(target).c_str());
  if (dtype_rank(dtype) > dtype_rank(target->dl.dtype))
    return fail(c, PLAIT_DTYPE_ERROR, "the result is %s, which can't be cast to `%s` of %s",
                plait::name(dtype), name, plait::name(target->dl.dtype));
  return PLAIT_OK;
}

bool is_input(const Frame *f, const plait_tensor *target) {
  bool found = false;
  each_tensor(f->in, f->n_in,
              [&](const plait_tensor *t, const plait_value *) { found |= t == target; });
  return found;
}

}  // namespace

plait_status accept(const plait_call *c, plait_tensor *target, DLDataType dtype, int32_t ndim,
                    const int64_t *shape) {
  bool resizes = false;
  const plait_status s = check_target(c, target, dtype, ndim, shape, &resizes);
  return s >= 0 && resizes ? resize_out(c->thread, target, ndim, shape) : s;
}

plait_status into_target(Frame *f, uint32_t i, DLDataType dtype, int32_t ndim, const int64_t *shape,
                         const int64_t *strides) {
  plait_tensor *target = f->target[i];
  bool resizes = false;
  plait_status s = check_target(f, target, dtype, ndim, shape, &resizes);
  if (s < 0) return s;
  // an input keeps its shape until the kernel has read it; `deliver` resizes it
  const bool later = resizes && is_input(f, target);
  if (resizes && !later) s = resize_out(f->thread, target, ndim, shape);
  if (s < 0) return s;
  if (!later && direct(f, target, dtype, strides)) {
    plait_retain(target);
    f->out[i] = value(target);
    return PLAIT_OK;
  }
  plait_tensor *t = nullptr;
  s = tensor_new(f->thread, dtype, ndim, shape, strides, f->device, &t);
  if (s >= 0) f->out[i] = value(t);
  return s;
}

// Smaller memory is had sooner than it is known that it may be used again.
constexpr uint64_t kLeastReuse = 16 << 10;

plait_tensor *overwritable(const Frame *f, DLDataType dtype, int32_t ndim, const int64_t *shape,
                           const int64_t *strides) {
  const uint64_t spare = (f->owned | f->reusable) & ((uint64_t(1) << f->n_in) - 1);
  for (uint16_t i = 0; i < f->n_in; i++) {
    plait_tensor *t = f->in[i].tag == PLAIT_TENSOR ? f->in[i].u.t : nullptr;
    if (!(spare >> i & 1) || !t || t->storage->nbytes < kLeastReuse || !t->dl.data) continue;
    if (!may_be_result(f, i) || t->dl.ndim != ndim) continue;
    if (!std::equal(shape, shape + ndim, t->dl.shape) || !laid_out(t, strides)) continue;
    if (!same(t->dl.device, f->device) || !unshared(t) || !direct(f, t, dtype, strides)) continue;
    restore_version(t->storage, t->storage->version);
    return t;
  }
  return nullptr;
}

plait_status deliver(Frame *f, plait_call *c) {
  for (uint16_t i = 0; i < f->n_out; i++) {
    plait_tensor *result = f->out[i].tag == PLAIT_TENSOR ? f->out[i].u.t : nullptr;
    if (!result) return fail(c, PLAIT_ERROR, "the kernel gave no result %u", i);
    if (result == f->target[i]) continue;
    const DLTensor &dl = result->dl;
    plait_status s = accept(c, f->target[i], dl.dtype, dl.ndim, dl.shape);
    if (s >= 0) s = copy_into(c->thread, f->target[i], result);
    if (s < 0) return s;
  }
  return PLAIT_OK;
}

plait_status prepare_writes(Frame *f, uint64_t *written) {
  const plait_op *op = f->op;
  const bool in_order = op == op_copy || op->flags & PLAIT_OP_POINTWISE;  // each element alone
  for (uint16_t i = 0; i < op->n_args; i++) {
    if (!(op->args[i].flags & PLAIT_ARG_WRITES)) continue;
    plait_status s = PLAIT_OK;
    *written |= uint64_t(1) << i;
    each_tensor(f->in + i, 1, [&](const plait_tensor *t, const plait_value *) {
      if (s >= 0) s = writable(f, t, op->args[i].name);
    });
    if (s < 0) return s;
    if (f->in[i].tag != PLAIT_TENSOR) continue;
    for (uint16_t k = 0; k < op->n_args; k++) {  // a source that overlaps is copied first
      if (k == i || f->in[k].tag != PLAIT_TENSOR || (op->args[k].flags & PLAIT_ARG_WRITES))
        continue;
      if (!overlap(f->in[k].u.t, f->in[i].u.t)) continue;
      if (in_order && same_elements(f->in[k].u.t, f->in[i].u.t)) continue;
      plait_value out[PLAIT_MAX_RESULTS];
      if (s = base_call(op_clone, f->thread, f->in + k, 1, out); s < 0) return s;
      if (f->owned >> k & 1) release_value(f->in + k);
      f->in[k] = out[0];
      f->owned |= uint64_t(1) << k;
    }
  }
  for (uint16_t i = 0; i < op->n_results;
       i++) {  // results that are the argument that is written to
    const plait_arg &r = op->results[i];
    if (!(r.flags & PLAIT_ARG_WRITES) || r.alias_arg < 0 || f->in[r.alias_arg].tag != PLAIT_TENSOR)
      continue;
    plait_retain(f->in[r.alias_arg].u.t);
    f->out[i] = f->in[r.alias_arg];
  }
  return PLAIT_OK;
}

}  // namespace plait::abi
