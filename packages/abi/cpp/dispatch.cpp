// One operator call: layers from the top, then validation by the shape function, then the kernels
// of the device.
#include "runtime.hpp"

namespace plait::abi {
namespace {

// The call as shape functions and kernels see it. `plait_call::size` tells a Frame from a bare
// plait_call.
struct Frame : plait_call {
  plait_value in_[PLAIT_MAX_ARGS];
  plait_value out_[PLAIT_MAX_RESULTS];
  plait_tensor *target[PLAIT_MAX_RESULTS];  // of the in-place and out= forms: where results must
                                            // end up (borrowed)
  std::vector<plait_tensor *> list;  // of a Tensor[] result that is growing
};
Frame *frame_of(plait_call *c) {
  return c->size == sizeof(Frame) ? static_cast<Frame *>(c) : nullptr;
}

const char *arg_name(const plait_call *c, const plait_value *v) {
  return c->op->args[v - c->in].name;
}

template <class F>
void each_tensor(const plait_value *values, uint32_t n, F &&f) {
  for (uint32_t i = 0; i < n; i++) {
    if (values[i].tag == PLAIT_TENSOR) {
      f(values[i].u.t, values + i);
    } else if (values[i].tag == PLAIT_TENSORS) {
      for (uint32_t k = 0; k < values[i].n; k++)
        if (values[i].u.ts[k]) f(values[i].u.ts[k], values + i);
    }
  }
}

const plait_entry *backend_entry(const plait_op *op, DLDeviceType type) {
  return uint64_t(type) < op->n_backend ? __atomic_load_n(&op->backend, __ATOMIC_ACQUIRE)[type]
                                        : nullptr;
}

// ---- where a call runs
// ---------------------------------------------------------------------------------------------
plait_status different_devices(const plait_call *c, const plait_tensor *a, const plait_tensor *b,
                               const plait_value *at) {
  return fail(c, PLAIT_VALUE_ERROR,
              "all tensors must be on one device; `%s` is on %s, an earlier one on %s",
              arg_name(c, at), device_text(a->dl.device).c_str(),
              device_text(b->dl.device).c_str());
}

// Targets of out= are where the call runs; a call without another tensor or device runs where they
// are.
plait_status place_out(plait_call *c, bool chosen) {
  for (uint32_t i = 0; i < c->n_out; i++) {
    if (c->out[i].tag != PLAIT_TENSOR) continue;
    const DLDevice d = c->out[i].u.t->dl.device;
    if (!chosen) c->device = d, chosen = true;
    if (d.device_type == c->device.device_type && d.device_id == c->device.device_id) continue;
    return fail(c, PLAIT_VALUE_ERROR, "`out` must be on %s, where the call runs; it is on %s",
                device_text(c->device).c_str(), device_text(d).c_str());
  }
  return PLAIT_OK;
}

plait_status place(plait_call *c, uint64_t *layers) {
  const plait_tensor *first = nullptr;
  plait_status s = PLAIT_OK;
  uint64_t mask = 0;
  // a view of a base that was written since must be seen by the layers that see the base
  const auto layers_of = [](const plait_tensor *t) {
    return t->layers | ((t->flags & PLAIT_TENSOR_VIEW) && t->base ? t->base->layers : 0);
  };
  const auto look = [&](const plait_tensor *t, const plait_value *at) {
    mask |= layers_of(t);
    if (!first) {
      first = t;
    } else if (t->dl.device.device_type != first->dl.device.device_type ||
               t->dl.device.device_id != first->dl.device.device_id) {
      if (c->op->flags & PLAIT_OP_ANY_DEVICE) return;
      // a 0-d tensor of the CPU stands for a number everywhere
      if (t->dl.ndim == 0 && t->dl.device.device_type == kDLCPU) return;
      if (first->dl.ndim == 0 && first->dl.device.device_type == kDLCPU)
        first = t;
      else
        s = different_devices(c, t, first, at);
    }
  };
  each_tensor(c->in, c->n_in, look);
  if (s < 0) return s;
  if (c->form == PLAIT_OUT)
    each_tensor(c->out, c->n_out,
                [&](const plait_tensor *t, const plait_value *) { mask |= layers_of(t); });
  c->device = first ? first->dl.device : DLDevice{kDLCPU, 0};
  bool chosen = first;
  for (uint32_t i = 0; i < c->n_in; i++)
    if (c->in[i].tag == PLAIT_DEVICE) c->device = c->in[i].u.device, chosen = true;
  *layers = mask;
  return c->form == PLAIT_OUT ? place_out(c, chosen) : PLAIT_OK;
}

// ---- targets of writes
// ---------------------------------------------------------------------------------------------
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
  if (a->dl.device.device_type == PLAIT_META) return false;
  const Extent x = extent(a), y = extent(b);
  return x.begin < y.end && y.begin < x.end;
}

plait_status writable(const plait_call *c, const plait_tensor *t, const char *name) {
  if (t->storage->flags & PLAIT_STORAGE_READONLY)
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

plait_status base_call(const plait_op *op, plait_thread *thread, plait_value *in, uint16_t n,
                       plait_value *out) {
  if (!op)
    return raise(thread, PLAIT_NOT_IMPLEMENTED, nullptr,
                 "the operators cast, copy_ and clone must be defined (plait-ops)");
  plait_value full[PLAIT_MAX_ARGS];
  for (uint16_t i = 0; i < op->n_args; i++) full[i] = i < n ? in[i] : op->args[i].value;
  plait_call c{};
  c.size = sizeof c;
  c.n_in = op->n_args;
  c.n_out = op->n_results;
  c.op = op;
  c.in = full;
  c.out = out;
  c.thread = thread;
  uint64_t layers = 0;
  for (uint16_t i = 0; i < op->n_results; i++) out[i] = none();
  const plait_status s = place(&c, &layers);
  return s < 0 ? s : call_below(&c);
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

// The kernel may write `target` itself only if it could not tell it from a fresh result.
bool direct(const Frame *f, const plait_tensor *target, DLDataType dtype) {
  const bool pointwise = f->op->flags & PLAIT_OP_POINTWISE;
  if (!same(target->dl.dtype, dtype) || (!pointwise && !is_contiguous(target))) return false;
  bool clean = true;
  each_tensor(f->in, f->n_in, [&](const plait_tensor *t, const plait_value *) {
    if (overlap(t, target) && !(pointwise && same_elements(t, target))) clean = false;
  });
  return clean;
}

plait_status resize_out(plait_thread *thread, plait_tensor *target, int32_t ndim,
                        const int64_t *shape) {
  plait_tensor *fresh = nullptr;
  plait_status s =
      tensor_new(thread, target->dl.dtype, ndim, shape, nullptr, target->dl.device, &fresh);
  if (s >= 0) s = tensor_repoint(thread, target, fresh);
  plait_release(fresh);
  return s;
}

// Whether a result may end up in the target of the in-place or out= form; an empty `out` takes on
// its shape.
plait_status accept(const plait_call *c, plait_tensor *target, DLDataType dtype, int32_t ndim,
                    const int64_t *shape) {
  const char *name = c->form == PLAIT_INPLACE ? c->op->args[0].name : "out";
  bool fits = target->dl.ndim == ndim;
  for (int32_t k = 0; fits && k < ndim; k++) fits = target->dl.shape[k] == shape[k];
  const bool grows = !fits && c->form == PLAIT_OUT && numel(target) == 0;
  if (!fits && !grows)
    return fail(c, PLAIT_SHAPE_ERROR,
                "the result has shape %s, which does not fit `%s` of shape %s",
                text(shape, ndim).c_str(), name, shape_text(target).c_str());
  if (dtype_rank(dtype) > dtype_rank(target->dl.dtype))
    return fail(c, PLAIT_DTYPE_ERROR, "the result is %s, which cannot be cast to `%s` of %s",
                plait::name(dtype), name, plait::name(target->dl.dtype));
  return grows ? resize_out(c->thread, target, ndim, shape) : PLAIT_OK;
}

plait_status into_target(Frame *f, uint32_t i, DLDataType dtype, int32_t ndim,
                         const int64_t *shape) {
  plait_tensor *target = f->target[i];
  if (const plait_status s = accept(f, target, dtype, ndim, shape); s < 0) return s;
  if (direct(f, target, dtype)) {
    plait_retain(target);
    f->out[i] = value(target);
    return PLAIT_OK;
  }
  plait_tensor *t = nullptr;
  const plait_status s = tensor_new(f->thread, dtype, ndim, shape, nullptr, f->device, &t);
  if (s >= 0) f->out[i] = value(t);
  return s;
}

// Results of the in-place and out= forms that went to a temporary go home; every target's version
// moves on.
plait_status deliver(Frame *f, plait_call *c) {
  for (uint16_t i = 0; i < f->n_out; i++) {
    plait_tensor *made = f->out[i].tag == PLAIT_TENSOR ? f->out[i].u.t : nullptr;
    if (!made) return fail(c, PLAIT_ERROR, "the kernel gave no result %u", i);
    if (made != f->target[i])
      if (const plait_status s = copy_into(c->thread, f->target[i], made); s < 0) return s;
  }
  return PLAIT_OK;
}

// ---- explicit writes: arguments marked !
// ---------------------------------------------------------------------------
plait_status prepare_writes(Frame *f, uint64_t *written) {
  const plait_op *op = f->op;
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
      if (!overlap(f->in[k].u.t, f->in[i].u.t) || same_elements(f->in[k].u.t, f->in[i].u.t))
        continue;
      plait_value out[PLAIT_MAX_RESULTS];
      if (s = base_call(op_clone, f->thread, f->in + k, 1, out); s < 0) return s;
      if (f->owned >> k & 1) release_value(f->in + k);
      f->in[k] = out[0];
      f->owned |= uint64_t(1) << k;
    }
  }
  for (uint16_t i = 0; i < op->n_results; i++) {  // results that are the written argument itself
    const plait_arg &r = op->results[i];
    if (!(r.flags & PLAIT_ARG_WRITES) || r.alias_arg < 0 || f->in[r.alias_arg].tag != PLAIT_TENSOR)
      continue;
    plait_retain(f->in[r.alias_arg].u.t);
    f->out[i] = f->in[r.alias_arg];
  }
  return PLAIT_OK;
}

bool nothing_to_do(const Frame *f, uint64_t written) {
  if (f->device.device_type == PLAIT_META || (f->op->flags & PLAIT_OP_VIEW)) return true;
  if (written) return false;
  for (uint16_t i = 0; i < f->n_out; i++)
    if (f->out[i].tag != PLAIT_TENSOR || numel(f->out[i].u.t) != 0) return false;
  return f->n_out > 0;
}

plait_status no_kernel(const plait_call *c) {
  std::string dtypes;
  each_tensor(c->in, c->n_in, [&](const plait_tensor *t, const plait_value *) {
    dtypes += (dtypes.empty() ? "" : ", ") + std::string(plait::name(t->dl.dtype));
  });
  return fail(c, PLAIT_NOT_IMPLEMENTED, "no kernel for %s and dtypes (%s) is installed",
              device_text(c->device).c_str(), dtypes.c_str());
}

plait_status run_kernels(Frame *f) {
  for (const plait_entry *e = backend_entry(f->op, f->device.device_type); e; e = e->prev) {
    f->self = e;
    const plait_status s = e->fn(f);
    if (s != PLAIT_DECLINE) return s;
  }
  return PLAIT_DECLINE;
}

void release_all(plait_value *v, uint16_t n) {
  for (uint16_t i = 0; i < n; i++) release_value(v + i);
}

// ---- decompositions
// ------------------------------------------------------------------------------------------------
// Layers keep what operators read, and the in-place form is about to overwrite it: a decomposition
// that they watch reads copies of what shares its memory with the target.
plait_status read_copies(const plait_call *c, plait_value *in, std::vector<Tensor> *copies) {
  return border(c->thread, c->op->name, [&]() -> plait_status {
    const plait_storage *target = c->out[0].u.t->storage;
    for (uint16_t i = 0; i < c->n_in; i++) {
      in[i] = c->in[i];
      if (in[i].tag != PLAIT_TENSOR || in[i].u.t->storage != target) continue;
      plait_value copy[PLAIT_MAX_RESULTS];
      plait::call(c->thread, op_clone, in + i, 1, copy);
      copies->push_back(Tensor::steal(copy[0].u.t));
      in[i] = copy[0];
    }
    return PLAIT_OK;
  });
}

// Runs as the function form; the other forms copy the result into their target through `copy_`,
// layers and all.
plait_status decomposed(plait_call *c, bool layers_on) {
  plait_value in[PLAIT_MAX_ARGS], out[PLAIT_MAX_RESULTS];
  std::vector<Tensor> copies;
  plait_call inner = *c;
  if (layers_on && c->todo && c->form == PLAIT_INPLACE) {
    if (const plait_status s = read_copies(c, in, &copies); s < 0) return s;
    inner.in = in;
  }
  inner.size = sizeof inner;
  inner.out = out;
  for (uint16_t i = 0; i < c->n_out; i++) out[i] = none();
  inner.form = PLAIT_FUNCTION;
  const uint64_t excluded = c->thread->excluded;
  if (!layers_on) c->thread->excluded = ~uint64_t(0);
  plait_status s = c->op->def->decompose(&inner);
  if (s >= 0 && c->form != PLAIT_FUNCTION) {
    for (uint16_t i = 0; i < c->n_out && s >= 0; i++) {
      plait_tensor *target = c->out[i].u.t;
      const DLTensor &made = out[i].u.t->dl;
      s = accept(c, target, made.dtype, made.ndim, made.shape);
      plait_value in[] = {c->out[i], out[i]}, ignored[PLAIT_MAX_RESULTS];
      if (s >= 0)
        s = border(c->thread, c->op->name, [&]() -> plait_status {
          plait::call(c->thread, op_copy, in, 2, ignored);
          release_value(ignored);
          return PLAIT_OK;
        });
    }
    release_all(out, c->n_out);
  } else if (s >= 0) {
    for (uint16_t i = 0; i < c->n_out; i++) c->out[i] = out[i];
  } else {
    release_all(out, c->n_out);
  }
  c->thread->excluded = excluded;
  if (s < 0) speak_for(c);
  return s == PLAIT_DECLINE ? no_kernel(c) : s;
}

// ---- the call below all layers
// -------------------------------------------------------------------------------------
plait_status validated(Frame *f, plait_call *c, uint64_t *written, bool *ran) {
  plait_status s = prepare_writes(f, written);
  for (uint16_t i = 0; s >= 0 && c->form != PLAIT_FUNCTION && i < c->n_out; i++) {
    f->target[i] = c->out[i].u.t;
    s = writable(f, f->target[i], c->form == PLAIT_INPLACE ? c->op->args[0].name : "out");
  }
  if (s >= 0) s = c->op->def->shape(f);
  if (s >= 0 && !f->list.empty())
    s = tensors_value(f->thread, f->list.data(), uint32_t(f->list.size()), f->out);
  for (plait_tensor *t : f->list) plait_release(t);
  if (s < 0) return s;
  *ran = true;
  return nothing_to_do(f, *written) ? PLAIT_OK : run_kernels(f);
}

Frame frame_for(plait_call *c) {
  Frame f;
  static_cast<plait_call &>(f) = *c;
  f.size = sizeof f;
  f.owned = 0;
  for (uint16_t i = 0; i < c->n_in; i++) f.in_[i] = c->in[i];
  for (uint16_t i = 0; i < c->n_out; i++) {
    f.out_[i] = none();
    f.target[i] = nullptr;
  }
  return f;
}

void release_casts(Frame *f) {
  for (uint16_t i = 0; f->owned && i < f->n_in; i++)
    if (f->owned >> i & 1) release_value(f->in_ + i);
}

// Runs the shape function for its refusals alone, on device meta: a decomposition would refuse in
// others' names, or not.
plait_status refusals(plait_call *c) {
  Frame f = frame_for(c);
  f.in = f.in_;
  f.out = f.out_;
  f.form = PLAIT_FUNCTION;
  f.device = {PLAIT_META, 0};
  const plait_status s = c->op->def->shape(&f);
  for (plait_tensor *t : f.list) plait_release(t);
  release_casts(&f);
  release_all(f.out_, f.n_out);
  return s;
}

plait_status base(plait_call *c) {
  const plait_op *op = c->op;
  if (op->def->decompose && (!op->def->shape || !backend_entry(op, c->device.device_type)) &&
      !(op->flags & PLAIT_OP_VIEW)) {
    const plait_status refused = op->def->shape ? refusals(c) : PLAIT_OK;
    return refused < 0 ? refused : decomposed(c, false);
  }
  Frame f = frame_for(c);
  f.in = f.in_;
  f.out = f.out_;
  uint64_t written = 0;
  bool ran = false;  // from here on a target may have been written, even if the kernel fails
  plait_status s = validated(&f, c, &written, &ran);
  if (s >= 0 && s != PLAIT_DECLINE && c->form != PLAIT_FUNCTION) s = deliver(&f, c);
  if (s == PLAIT_DECLINE) ran = false;  // nobody took it: nothing was written
  for (uint16_t i = 0; ran && written && i < c->n_in; i++)
    if (written >> i & 1)
      each_tensor(c->in + i, 1, [](plait_tensor *t, const plait_value *) { touched(t->storage); });
  if (ran && c->form != PLAIT_FUNCTION)
    for (uint16_t i = 0; i < c->n_out; i++) touched(c->out[i].u.t->storage);
  release_casts(&f);
  if (s == PLAIT_OK && c->form == PLAIT_FUNCTION) {
    for (uint16_t i = 0; i < c->n_out; i++) c->out[i] = f.out_[i];
    return PLAIT_OK;
  }
  release_all(f.out_, c->n_out);
  if (s == PLAIT_DECLINE) return op->def->decompose ? decomposed(c, false) : no_kernel(c);
  return s;
}

plait_status layered(plait_call *c) {
  const plait_op *op = c->op;
  // a kernel of its own serves a composite only where no layer needs to see what it is made of
  if (op->flags & PLAIT_OP_COMPOSITE) {
    const bool fused =
        op->def->shape && backend_entry(op, c->device.device_type) && (!c->todo || op->def->vjp);
    if (!fused) return decomposed(c, true);
  }
  return call_below(c);
}

plait_status watched(plait_call *c) {
  plait_event e{};
  e.size = sizeof e;
  e.kind = PLAIT_EVENT_OP;
  e.call = c;
  e.name = c->op->name;
  e.device = c->device;
  uint64_t tokens[PLAIT_TOKENS];
  const uint64_t n = begin_event(&e, tokens, PLAIT_TOKENS);
  const plait_status s = layered(c);
  end_event(&e, tokens, n, s);
  return s;
}

}  // namespace

plait_status call(plait_call *c) {
  uint64_t layers = 0;
  if (const plait_status s = place(c, &layers); s < 0) return s;
  c->todo = (layers | c->thread->included) & ~c->thread->excluded &
            __atomic_load_n(&c->op->layer_mask, __ATOMIC_ACQUIRE);
  if (__atomic_load_n(&observed, __ATOMIC_RELAXED) & PLAIT_EVENT_OP) return watched(c);
  return layered(c);
}

plait_status call_below(plait_call *c) {
  while (c->todo) {
    const int bit = 63 - __builtin_clzll(c->todo);
    c->todo &= ~(uint64_t(1) << bit);
    c->self = __atomic_load_n(&c->op->layer, __ATOMIC_ACQUIRE)[bit];
    if (c->self) return c->self->fn(c);  // else it left since the call began
  }
  return base(c);
}

// ---- for shape functions
// -------------------------------------------------------------------------------------------
plait_status result_strided(plait_call *c, uint32_t i, DLDataType dtype, int32_t ndim,
                            const int64_t *shape, const int64_t *strides) {
  Frame *f = frame_of(c);
  if (f && f->target[i]) return into_target(f, i, dtype, ndim, shape);
  plait_tensor *t = nullptr;
  const plait_status s = tensor_new(c->thread, dtype, ndim, shape, strides, c->device, &t);
  if (s >= 0) {
    c->out[i] = value(t);
    return s;
  }
  const std::string why = c->thread->error ? c->thread->error->message : "";
  return fail(c, s, "%s", why.c_str());
}

plait_status result(plait_call *c, uint32_t i, DLDataType dtype, int32_t ndim,
                    const int64_t *shape) {
  return result_strided(c, i, dtype, ndim, shape, nullptr);
}

plait_status view(plait_call *c, uint32_t i, plait_tensor *base, int32_t ndim, const int64_t *shape,
                  const int64_t *strides, int64_t offset) {
  plait_tensor *t = nullptr;
  int64_t bytes = 0;
  if (__builtin_mul_overflow(offset, itemsize(base->dl.dtype), &bytes))
    return fail(c, PLAIT_SHAPE_ERROR, "a view from element %lld lies outside every storage",
                (long long)offset);
  void *data = base->dl.data;  // where it points is checked below
  if (data) data = reinterpret_cast<void *>(reinterpret_cast<uintptr_t>(data) + uint64_t(bytes));
  bool empty = false;
  for (int32_t k = 0; k < ndim; k++) empty |= shape[k] == 0;
  if (empty) data = base->dl.data;  // an offset past the end would name nobody's byte
  const plait_status s =
      tensor_on(c->thread, base->storage, data, base->dl.dtype, ndim, shape, strides, &t);
  if (s < 0) {
    const std::string why = c->thread->error ? c->thread->error->message : "";
    return fail(c, s, "%s", why.c_str());
  }
  t->flags |= PLAIT_TENSOR_VIEW;
  if (c->op != op_detach.load(std::memory_order_relaxed)) {
    t->base = base->base ? base->base : base;
    plait_retain(t->base);
    // a layer that watches the base is switched off on this thread: it won't know of the view
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

namespace {
plait_status cast_one(plait_call *c, plait_tensor *t, DLDataType dtype, plait_value *out) {
  plait_value in[] = {value(t), value(dtype)}, made[PLAIT_MAX_RESULTS];
  const plait_status s = base_call(op_cast, c->thread, in, 2, made);
  if (s >= 0) *out = made[0];
  return s;
}
}  // namespace

plait_status cast(plait_call *c, uint32_t i, DLDataType dtype) {
  plait_value *v = c->in + i;
  if (v->tag == PLAIT_TENSOR) {
    if (same(v->u.t->dl.dtype, dtype)) return PLAIT_OK;
    plait_value made;
    if (const plait_status s = cast_one(c, v->u.t, dtype, &made); s < 0) return s;
    if (c->owned >> i & 1) release_value(v);
    *v = made;
    c->owned |= uint64_t(1) << i;
  } else if (v->tag == PLAIT_TENSORS) {
    plait_value list;
    if (const plait_status s = tensors_value(c->thread, v->u.ts, v->n, &list); s < 0) return s;
    plait_status s = PLAIT_OK;
    for (uint32_t k = 0; k < list.n && s >= 0; k++) {
      plait_tensor **slot = const_cast<plait_tensor **>(list.u.ts) + k;
      plait_value made;
      if (!*slot || same((*slot)->dl.dtype, dtype)) continue;
      if (s = cast_one(c, *slot, dtype, &made); s < 0) break;
      plait_release(*slot);
      *slot = made.u.t;
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
