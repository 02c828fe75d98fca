// One operator call: layers from the top, then validation by the shape function, then the kernels
// of the device.
#include "frame.hpp"

namespace plait::abi {
namespace {

const char *arg_name(const plait_call *c, const plait_value *v) {
  return c->op->args[v - c->in].name;
}

const plait_entry *backend_entry(const plait_op *op, DLDeviceType type) {
  return uint64_t(type) < op->n_backend ? __atomic_load_n(&op->backend, __ATOMIC_ACQUIRE)[type]
                                        : nullptr;
}

// The device of a call.

plait_status different_devices(const plait_call *c, const plait_tensor *a, const plait_tensor *b,
                               const plait_value *at) {
  return fail(c, PLAIT_VALUE_ERROR,
              "all tensors must be on one device; `%s` is on %s, an earlier one on %s",
              arg_name(c, at), device_text(a->dl.device).c_str(),
              device_text(b->dl.device).c_str());
}

// Targets of out= must be on the device of the call. A call without another tensor or device runs
// on the device of its targets.
plait_status choose_device_of_out(plait_call *c, bool chosen) {
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

plait_status choose_device(plait_call *c, uint64_t *layers) {
  const plait_tensor *first = nullptr;
  plait_status s = PLAIT_OK;
  uint64_t mask = 0;
  // a view of a base that was written since must be seen by the layers that see the base
  const auto layers_of = [](const plait_tensor *t) {
    return t->layers | ((t->flags & PLAIT_TENSOR_VIEW) && t->base ? t->base->layers : 0);
  };
  const auto visit = [&](const plait_tensor *t, const plait_value *at) {
    mask |= layers_of(t);
    if (!first) {
      first = t;
    } else if (t->dl.device.device_type != first->dl.device.device_type ||
               t->dl.device.device_id != first->dl.device.device_id) {
      if (c->op->flags & PLAIT_OP_ANY_DEVICE) return;
      // a 0-d tensor on the CPU may be an operand on every device, as a number may
      if (t->dl.ndim == 0 && t->dl.device.device_type == kDLCPU) return;
      if (first->dl.ndim == 0 && first->dl.device.device_type == kDLCPU)
        first = t;
      else
        s = different_devices(c, t, first, at);
    }
  };
  each_tensor(c->in, c->n_in, visit);
  if (s < 0) return s;
  if (c->form == PLAIT_OUT)
    each_tensor(c->out, c->n_out,
                [&](const plait_tensor *t, const plait_value *) { mask |= layers_of(t); });
  c->device = first ? first->dl.device : DLDevice{kDLCPU, 0};
  bool chosen = first;
  for (uint32_t i = 0; i < c->n_in; i++)
    if (c->in[i].tag == PLAIT_DEVICE) c->device = c->in[i].u.device, chosen = true;
  *layers = mask;
  return c->form == PLAIT_OUT ? choose_device_of_out(c, chosen) : PLAIT_OK;
}

// Running kernels.

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
  const plait_error *before = f->thread->error;
  for (const plait_entry *e = backend_entry(f->op, f->device.device_type); e; e = e->prev) {
    f->self = e;
    const plait_status s = e->fn(f);
    if (s != PLAIT_DECLINE) return judged(f, s, before);
  }
  return PLAIT_DECLINE;
}

void release_all(plait_value *v, uint16_t n) {
  for (uint16_t i = 0; i < n; i++) release_value(v + i);
}

// Decompositions.

// Layers keep the inputs of operators, and the in-place form is about to overwrite them. So a
// decomposition that layers see reads copies of inputs that share memory with the target.
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

enum class Layers { off, on };

// Runs the function form; the other forms copy its result into their target by `copy_`, which
// layers see. `kept`: a layer keeps what the parts read.
plait_status decomposed(plait_call *c, Layers layers, bool kept = false) {
  plait_value in[PLAIT_MAX_ARGS], out[PLAIT_MAX_RESULTS];
  std::vector<Tensor> copies;
  plait_call inner = known_part(c);
  if (kept && c->form == PLAIT_INPLACE) {
    if (const plait_status s = read_copies(c, in, &copies); s < 0) return s;
    inner.in = in;
  }
  inner.size = sizeof inner;
  inner.out = out;
  for (uint16_t i = 0; i < c->n_out; i++) out[i] = none();
  inner.form = PLAIT_FUNCTION;
  const uint64_t excluded = c->thread->excluded;
  if (layers == Layers::off) c->thread->excluded = ~uint64_t(0);
  const plait_error *before = c->thread->error;
  plait_status s = judged(c, c->op->def->decompose(&inner), before);
  if (s == PLAIT_OK && c->form != PLAIT_FUNCTION) {
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
  } else if (s == PLAIT_OK) {
    for (uint16_t i = 0; i < c->n_out; i++) c->out[i] = out[i];
  } else {
    release_all(out, c->n_out);
  }
  c->thread->excluded = excluded;
  if (s < 0) name_caller(c);
  return s == PLAIT_DECLINE ? no_kernel(c) : s;
}

// Kernels of composites.

// A tensor of the same shape, dtype and strides that has no bytes.
plait_status meta_like(plait_thread *thread, const plait_tensor *t, plait_tensor **out) {
  plait_storage *none = nullptr;
  plait_status s = storage_new(thread, {PLAIT_META, 0}, 0, &none);
  if (s < 0) return s;
  s = tensor_on(thread, none, nullptr, t->dl.dtype, t->dl.ndim, t->dl.shape, t->dl.strides, out);
  plait_release(none);
  if (s >= 0) (*out)->flags |= t->flags & PLAIT_TENSOR_WRAPPED_NUMBER;
  return s;
}

// The inputs of a call without their bytes.
class MetaInputs {
 public:
  plait_status make(const plait_call *c) {
    for (uint16_t i = 0; i < c->n_in; i++) in_[i] = c->in[i];
    n_ = c->n_in;
    for (uint16_t i = 0; i < c->n_in; i++) {
      plait_status s = PLAIT_OK;
      if (in_[i].tag == PLAIT_DEVICE) {
        in_[i] = value(DLDevice{PLAIT_META, 0});
      } else if (in_[i].tag == PLAIT_TENSOR) {
        plait_tensor *made = nullptr;
        s = meta_like(c->thread, in_[i].u.t, &made);
        if (s >= 0) own(i, value(made));
      } else if (in_[i].tag == PLAIT_TENSORS) {
        s = make_list(c->thread, i);
      }
      if (s < 0) return s;
    }
    return PLAIT_OK;
  }
  ~MetaInputs() {
    for (uint16_t i = 0; i < n_; i++)
      if (owned_ >> i & 1) release_value(in_ + i);
  }
  plait_value *values() { return in_; }

 private:
  void own(uint16_t i, plait_value v) {
    in_[i] = v;
    owned_ |= uint64_t(1) << i;
  }
  plait_status make_list(plait_thread *thread, uint16_t i) {
    plait_value list;
    if (const plait_status s = tensors_value(thread, in_[i].u.ts, in_[i].n, &list); s < 0) return s;
    own(i, list);
    for (uint32_t k = 0; k < list.n; k++) {
      plait_tensor **slot = const_cast<plait_tensor **>(list.u.ts) + k, *made = nullptr;
      if (!*slot) continue;
      if (const plait_status s = meta_like(thread, *slot, &made); s < 0) return s;
      plait_release(*slot);
      *slot = made;
    }
    return PLAIT_OK;
  }
  plait_value in_[PLAIT_MAX_ARGS];
  uint16_t n_ = 0;
  uint64_t owned_ = 0;
};

bool is_dense(const plait_tensor *t) {  // each element of its span belongs to one index
  int64_t last = 0;
  for (int32_t i = 0; i < t->dl.ndim; i++) {
    if (t->dl.strides[i] < 0) return false;
    last += (t->dl.shape[i] - 1) * t->dl.strides[i];
  }
  return numel(t) > 0 && last == numel(t) - 1;
}

plait_status result_like(Frame *f, uint16_t i, const plait_value &made) {
  if (made.tag == PLAIT_TENSOR) {
    const DLTensor &t = made.u.t->dl;
    return result_strided(f, i, t.dtype, t.ndim, t.shape, is_dense(made.u.t) ? t.strides : nullptr);
  }
  for (uint32_t k = 0; made.tag == PLAIT_TENSORS && k < made.n; k++) {
    const DLTensor &t = made.u.ts[k]->dl;
    plait_tensor *one = nullptr;
    const plait_status s =
        tensor_new(f->thread, t.dtype, t.ndim, t.shape, nullptr, f->device, &one);
    if (s < 0) return s;
    f->list.push_back(one);
  }
  return PLAIT_OK;
}

// Does for a composite what a shape function does: its decomposition, run on meta tensors, refuses
// wrong arguments and says what the results are. PLAIT_DECLINE where they depend on values.
plait_status shape_by_decomposition(Frame *f) {
  MetaInputs inputs;
  if (const plait_status s = inputs.make(f); s < 0) return s;
  plait_value out[PLAIT_MAX_RESULTS];
  plait_call inner = *f;
  inner.size = sizeof inner;
  inner.in = inputs.values();
  inner.out = out;
  inner.device = {PLAIT_META, 0};
  inner.form = PLAIT_FUNCTION;
  for (uint16_t i = 0; i < f->n_out; i++) out[i] = none();
  plait_status s = decomposed(&inner, Layers::off);
  if (s == PLAIT_NOT_IMPLEMENTED) {
    clear(f->thread);
    s = PLAIT_DECLINE;
  }
  for (uint16_t i = 0; s == PLAIT_OK && i < f->n_out; i++) s = result_like(f, i, out[i]);
  release_all(out, f->n_out);
  return s;
}

// A call below all layers.

plait_status validated(Frame *f, plait_call *c, uint64_t *written, bool *ran) {
  plait_status s = prepare_writes(f, written);
  for (uint16_t i = 0; s >= 0 && c->form != PLAIT_FUNCTION && i < c->n_out; i++) {
    f->target[i] = c->out[i].u.t;
    s = writable(f, f->target[i], c->form == PLAIT_INPLACE ? c->op->args[0].name : "out");
  }
  const plait_error *before = c->thread->error;
  if (s >= 0)
    s = judged(f, c->op->def->shape ? c->op->def->shape(f) : shape_by_decomposition(f), before);
  if (s == PLAIT_OK && !f->list.empty())
    s = tensors_value(f->thread, f->list.data(), uint32_t(f->list.size()), f->out);
  for (plait_tensor *t : f->list) plait_release(t);
  if (s != PLAIT_OK) return s;
  *ran = true;
  return nothing_to_do(f, *written) ? PLAIT_OK : run_kernels(f);
}

Frame frame_for(plait_call *c) {
  Frame f;
  static_cast<plait_call &>(f) = known_part(c);
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

// Runs the shape function on device meta, to check the arguments only: the operators of a
// decomposition would report errors in their own names, or none.
plait_status check_arguments(plait_call *c) {
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
  if (op->def->decompose && !backend_entry(op, c->device.device_type) &&
      !(op->flags & PLAIT_OP_VIEW)) {
    const plait_status refused = op->def->shape ? check_arguments(c) : PLAIT_OK;
    return refused < 0 ? refused : decomposed(c, Layers::off);
  }
  Frame f = frame_for(c);
  f.in = f.in_;
  f.out = f.out_;
  uint64_t written = 0;
  bool ran = false;  // from here on a target may have been written to, even if the kernel fails
  plait_status s = validated(&f, c, &written, &ran);
  if (s >= 0 && s != PLAIT_DECLINE && c->form != PLAIT_FUNCTION) s = deliver(&f, c);
  if (s == PLAIT_DECLINE) ran = false;  // no kernel served the call: nothing was written
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
  if (s == PLAIT_DECLINE) return op->def->decompose ? decomposed(c, Layers::off) : no_kernel(c);
  return s;
}

plait_status layered(plait_call *c) {
  const plait_op *op = c->op;
  // a composite's own kernel runs only if no layer needs to see the operators that it is made of
  if (op->flags & PLAIT_OP_COMPOSITE) {
    const bool fused = backend_entry(op, c->device.device_type) && (!c->todo || op->def->vjp);
    if (!fused) return decomposed(c, Layers::on, c->todo);
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

plait_status judged(const plait_call *c, plait_status s, const plait_error *before) {
  if (__builtin_expect(s == PLAIT_OK, 1)) return s;
  if (s == PLAIT_DECLINE) return s;
  if (s < 0 && s >= PLAIT_HOST_ERROR && c->thread->error != before) return s;
  const bool known = s < 0 && s > PLAIT_HOST_ERROR;
  return fail(c, known ? s : PLAIT_ERROR, "it failed with status %d and gave no text", s);
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
  const plait_status s = choose_device(&c, &layers);
  return s < 0 ? s : call_below(&c);
}

plait_status call(plait_call *c) {
  uint64_t layers = 0;
  if (__builtin_expect(c->size < PLAIT_END_OF(plait_call, owned), 0))
    return raise(c->thread, PLAIT_VALUE_ERROR, c->op->name,
                 "a plait_call of %u bytes; %zu are required", c->size,
                 PLAIT_END_OF(plait_call, owned));
  if (const plait_status s = choose_device(c, &layers); s < 0) return s;
  c->todo = (layers | c->thread->included) & ~c->thread->excluded &
            __atomic_load_n(&c->op->layer_mask, __ATOMIC_ACQUIRE);
  if (__atomic_load_n(&observed, __ATOMIC_RELAXED) & PLAIT_EVENT_OP) return watched(c);
  return layered(c);
}

plait_status decompose(plait_call *c) {
  return c->op->def->decompose ? decomposed(c, Layers::on, true) : no_kernel(c);
}

plait_status call_below(plait_call *c) {
  while (c->todo) {
    const int bit = 63 - __builtin_clzll(c->todo);
    c->todo &= ~(uint64_t(1) << bit);
    c->self = __atomic_load_n(&c->op->layer, __ATOMIC_ACQUIRE)[bit];
    if (c->self) return c->self->fn(c);  // otherwise the layer was removed since the call began
  }
  return base(c);
}

}  // namespace plait::abi
