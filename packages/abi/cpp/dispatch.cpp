// One operator call: layers from the top, then validation by the shape function, then the kernels
// of the device.
#include "devices.hpp"
#include "frame.hpp"
#include "uses.hpp"

namespace plait::abi {
namespace {

const char *arg_name(const plait_call *c, const plait_value *v) {
  return c->op->args[v - c->in].name;
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
    if (same(d, c->device)) continue;
    return fail(c, PLAIT_VALUE_ERROR, "`out` must be on %s, where the call runs; it is on %s",
                device_text(c->device).c_str(), device_text(d).c_str());
  }
  return PLAIT_OK;
}

bool is_written(const plait_call *c, const plait_value *at) {
  return (c->form == PLAIT_INPLACE && at == c->in) ||
         c->op->args[at - c->in].flags & PLAIT_ARG_WRITES;
}

// A 0-d tensor on the CPU may be an operand on every device, as a number may. It isn't written
// there.
bool goes_everywhere(const plait_call *c, const plait_tensor *t, const plait_value *at) {
  return t->dl.ndim == 0 && t->dl.device.device_type == kDLCPU && !is_written(c, at);
}

// Inside of a decomposition on a device, tensors of the CPU are what became of its 0-d operands
// there, which may have other shapes by now.
bool comes_along(const plait_call *c, const plait_tensor *t, const plait_value *at,
                 const plait_tensor *other) {
  const DLDevice device = static_cast<const Thread *>(c->thread)->decomposing;
  return is_accelerator(device) && same(other->dl.device, device) &&
         t->dl.device.device_type == kDLCPU && !is_written(c, at);
}

// Operators whose result has the shape of the tensor alone read none of its elements; all others
// need their tensors where the call runs.
plait_status check_given_device(const plait_call *c, const plait_tensor *first,
                                const plait_value *at, DLDevice device) {
  const bool reads = c->op->args[at - c->in].kind == PLAIT_KIND_OPERAND;
  if (!reads || same(first->dl.device, device) || goes_everywhere(c, first, at) ||
      device.device_type == PLAIT_META)
    return PLAIT_OK;
  return fail(c, PLAIT_VALUE_ERROR, "`%s` must be on %s, where the call runs; it is on %s",
              arg_name(c, at), device_text(device).c_str(), device_text(first->dl.device).c_str());
}

// PLAIT_DECLINE: some tensors have to be copied to the device before (`call_with_copies`).
plait_status choose_device(plait_call *c, uint64_t *layers) {
  const plait_tensor *first = nullptr;
  const plait_value *first_at = nullptr;
  plait_status s = PLAIT_OK;
  uint64_t mask = 0;
  bool copies = false;
  // a view of a base that was written since must be seen by the layers that see the base
  const auto layers_of = [](const plait_tensor *t) {
    const auto of = [](const plait_tensor *x) {  // other threads may begin to watch it
      return __atomic_load_n(&x->layers, __ATOMIC_RELAXED);
    };
    return of(t) | ((t->flags & PLAIT_TENSOR_VIEW) && t->base ? of(t->base) : 0);
  };
  const auto visit = [&](const plait_tensor *t, const plait_value *at) {
    mask |= layers_of(t);
    if (!first) {
      first = t;
      first_at = at;
    } else if (!same(t->dl.device, first->dl.device)) {
      if (c->op->flags & PLAIT_OP_ANY_DEVICE) return;
      if (goes_everywhere(c, t, at)) return;
      if (comes_along(c, t, at, first)) {
        copies = true;
        return;
      }
      if (!goes_everywhere(c, first, first_at)) {
        if (!comes_along(c, first, first_at, t)) {
          if (s >= 0) s = different_devices(c, t, first, at);
          return;
        }
        copies = true;
      }
      first = t;
      first_at = at;
    }
  };
  each_tensor(c->in, c->n_in, visit);
  if (s < 0) return s;
  if (__builtin_expect(copies, 0)) return PLAIT_DECLINE;
  if (c->form == PLAIT_OUT)
    each_tensor(c->out, c->n_out,
                [&](const plait_tensor *t, const plait_value *) { mask |= layers_of(t); });
  c->device = first ? first->dl.device : c->thread->device;
  bool chosen = first;
  for (uint32_t i = 0; i < c->n_in; i++)
    if (c->in[i].tag == PLAIT_DEVICE) {
      c->device = c->in[i].u.device, chosen = true;
      if (first && (s = check_given_device(c, first, first_at, c->device)) < 0) return s;
    }
  *layers = mask;
  if (c->form == PLAIT_OUT)
    if (s = choose_device_of_out(c, chosen); s < 0) return s;
  return __builtin_expect(is_accelerator(c->device), 0) ? enter_device(c) : PLAIT_OK;
}

// Running kernels.

bool nothing_to_do(const Frame *f, uint64_t written) {
  if (f->device.device_type == PLAIT_META || (f->op->flags & PLAIT_OP_VIEW)) return true;
  if (written) return false;
  for (uint16_t i = 0; i < f->n_out; i++)
    if (f->out[i].tag != PLAIT_TENSOR || numel(f->out[i].u.t) != 0) return false;
  return f->n_out > 0;
}

// Memory that was made for another stream is used in the call's.
void record_uses(const Frame *f) {
  const auto use = [f](plait_tensor *t, const plait_value *) { record_use(t->storage, f->stream); };
  each_tensor(f->in, f->n_in, use);
  each_tensor(f->out, f->n_out, use);
}

bool goes_across(const Frame *f) { return !same(f->in[0].u.t->dl.device, f->in[1].u.t->dl.device); }

// A random operator without a generator draws from that of its device, if the role has one for it.
void choose_generator(Frame *f) {
  const plait_rng *rng = in_force(roles.rng);
  if (!PLAIT_HAS(plait_rng, rng, device_generator)) return;
  for (uint16_t i = 0; i < f->n_in; i++) {
    if (f->in_[i].tag != PLAIT_NONE || f->op->args[i].kind != PLAIT_KIND_GENERATOR) continue;
    f->in_[i].tag = PLAIT_OBJECT;
    f->in_[i].u.o = &rng->device_generator(rng->ctx, f->device)->o;
  }
}

plait_status run_kernels(Frame *f) {
  if (__builtin_expect(f->op->flags & PLAIT_OP_ANY_DEVICE, 0) && f->op == op_copy && goes_across(f))
    return copy_across(f);
  if (__builtin_expect(is_accelerator(f->device), 0)) {
    f->launch = launch(f->thread, f->op, f->device, f->stream);
    record_uses(f);
    if (f->op->flags & PLAIT_OP_RANDOM) choose_generator(f);
  }
  const plait_error *before = f->thread->error;
  for (const plait_entry *e = backend_entry(f->op, f->device.device_type); e; e = e->prev) {
    f->self = e;
    const plait_status s = e->fn(f);
    if (s != PLAIT_DECLINE) return judged(f, s, before);
  }
  return PLAIT_DECLINE;
}

// A call below all layers.

plait_status validated(Frame *f, plait_call *c, uint64_t *written, bool *ran) {
  plait_status s =
      static_cast<const Op *>(f->op)->writes ? prepare_writes(f, written) : plait_status(PLAIT_OK);
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
  f.owned = f.launch = 0;
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
// decomposition would report errors in their own names, or none, and after some writes.
plait_status check_arguments(plait_call *c) {
  plait_status s = PLAIT_OK;
  for (uint16_t i = 0; i < c->op->n_args; i++)
    if (c->op->args[i].flags & PLAIT_ARG_WRITES)
      each_tensor(c->in + i, 1, [&](const plait_tensor *t, const plait_value *) {
        if (s >= 0) s = writable(c, t, c->op->args[i].name);
      });
  if (s < 0) return s;
  Frame f = frame_for(c);
  f.in = f.in_;
  f.out = f.out_;
  f.form = PLAIT_FUNCTION;
  f.device = {PLAIT_META, 0};
  s = c->op->def->shape(&f);
  for (plait_tensor *t : f.list) plait_release(t);
  release_casts(&f);
  release_all(f.out_, f.n_out);
  return s;
}

plait_status base(plait_call *c) {
  const plait_op *op = c->op;
  c->self = nullptr;
  // on meta a shape function makes the results that a kernel would have, without any other call
  if (op->def->decompose && !backend_entry(op, c->device.device_type) &&
      !(op->flags & PLAIT_OP_VIEW) && !(c->device.device_type == PLAIT_META && op->def->shape)) {
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
      each_tensor(c->in + i, 1, [](plait_tensor *t, const plait_value *) { wrote(t); });
  if (ran && c->form != PLAIT_FUNCTION)
    for (uint16_t i = 0; i < c->n_out; i++) wrote(c->out[i].u.t);
  release_casts(&f);
  c->self = s == PLAIT_DECLINE ? nullptr : f.self;
  c->launch = f.launch;
  if (s == PLAIT_OK && c->form == PLAIT_FUNCTION) {
    for (uint16_t i = 0; i < c->n_out; i++) c->out[i] = f.out_[i];
    return PLAIT_OK;
  }
  const bool is_refused = s == PLAIT_DECLINE && !op->def->decompose && !falls_back(c->device);
  if (is_refused) s = no_kernel(c, f.out_);
  release_all(f.out_, c->n_out);
  if (s != PLAIT_DECLINE) return s;
  return op->def->decompose ? decomposed(c, Layers::off) : run_on_cpu(c);
}

plait_status layered(plait_call *c) {
  const plait_op *op = c->op;
  // a composite's own kernel runs only if no layer needs to see the operators that it is made of;
  // its form out= has no derivative, which the layers themselves must see
  if (op->flags & PLAIT_OP_COMPOSITE) {
    const uint64_t todo = c->todo & ~passive_layers();
    if (__builtin_expect(todo != 0, 0)) {  // the topmost layer may want the whole
      const uint64_t own =
          __atomic_load_n(&static_cast<const Op *>(op)->own_layers, __ATOMIC_ACQUIRE);
      if (own >> (63 - __builtin_clzll(todo)) & 1) return call_below(c);
    }
    const bool fused = backend_entry(op, c->device.device_type) && (!todo || op->def->vjp);
    if (!fused && !(c->form == PLAIT_OUT && todo)) return decomposed(c, Layers::on, todo);
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

namespace {
std::string dtypes_of(const plait_value *values, uint16_t n) {
  std::string text;
  each_tensor(values, n, [&](const plait_tensor *t, const plait_value *) {
    text += (text.empty() ? "" : ", ") + std::string(plait::name(t->dl.dtype));
  });
  return text;
}
}  // namespace

plait_status no_kernel(const plait_call *c, const plait_value *results) {
  std::string dtypes = dtypes_of(c->in, c->n_in);
  const std::string device = device_text(c->device);
  const std::string hint = is_accelerator(c->device)
                               ? "; plait.use(fallback=\"" + device.substr(0, device.find(':')) +
                                     "\") lets the CPU run what the device can't"
                               : "";
  if (!backend_entry(c->op, c->device.device_type)) {
    const std::string of = dtypes.empty() ? "" : " and dtypes (" + dtypes + ")";
    return fail(c, PLAIT_NOT_IMPLEMENTED, "no kernel for %s%s is installed%s", device.c_str(),
                of.c_str(), hint.c_str());
  }
  // a result may have the dtype that is not served, as that of a cast
  const std::string to = results ? dtypes_of(results, c->n_out) : "";
  if (!to.empty()) dtypes += (dtypes.empty() ? "-> " : " -> ") + to;
  const std::string convert = dtypes.find("float8") == std::string::npos
                                  ? ""
                                  : "; float8 is stored, not computed with: convert it before, as "
                                    "with x.float() or x.bfloat16()";
  return fail(c, PLAIT_NOT_IMPLEMENTED,
              "the kernels for %s declined the call, with dtypes (%s)%s%s", device.c_str(),
              dtypes.c_str(), convert.c_str(), hint.c_str());
}

plait_status judged(const plait_call *c, plait_status s, const plait_error *before) {
  if (__builtin_expect(s == PLAIT_OK, 1)) return s;
  if (s == PLAIT_DECLINE) return s;
  if (is_code(s) && c->thread->error != before) return s;
  return fail(c, is_own_code(s) ? s : PLAIT_ERROR, "it failed with status %d and gave no text", s);
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
  return s < 0 ? s : call_below(&c);  // its tensors are on one device
}

namespace {

plait_status call_with_copies(plait_call *);

inline plait_status checked(plait_call *c) {
  uint64_t layers = 0;
  if (const plait_status s = choose_device(c, &layers); s != PLAIT_OK)
    return s == PLAIT_DECLINE ? call_with_copies(c) : s;
  c->todo = (layers | c->thread->included) & ~c->thread->excluded &
            __atomic_load_n(&c->op->layer_mask, __ATOMIC_ACQUIRE);
  const bool seen = __atomic_load_n(&observed, __ATOMIC_RELAXED) & PLAIT_EVENT_OP;
  if (c->todo || seen) c->reusable = 0;  // whoever sees the inputs may read them afterwards
  if (seen) return watched(c);
  return layered(c);
}

// A call with its tensors of the CPU copied to the device of the decomposition, by operators that
// layers see.
__attribute__((noinline, cold)) plait_status call_with_copies(plait_call *c) {
  const DLDevice device = static_cast<const Thread *>(c->thread)->decomposing;
  std::vector<Tensor> copies;
  std::vector<plait_tensor *> lists[PLAIT_MAX_ARGS];
  plait_value in[PLAIT_MAX_ARGS];
  const auto there = [&](plait_tensor *t) {
    if (!t || t->dl.device.device_type != kDLCPU) return t;
    Tensor made;
    check(tensor_new(c->thread, t->dl.dtype, t->dl.ndim, t->dl.shape, nullptr, device, made.out()));
    plait_value arguments[] = {value(made.get()), value(t)}, copy[PLAIT_MAX_RESULTS];
    plait::call(c->thread, op_copy, arguments, 2, copy);
    copies.push_back(Tensor::steal(copy[0].u.t));
    return copy[0].u.t;
  };
  const plait_status s = border(c->thread, c->op->name, [&]() -> plait_status {
    for (uint16_t i = 0; i < c->n_in; i++) {
      in[i] = c->in[i];
      if (in[i].tag == PLAIT_TENSOR) in[i].u.t = there(in[i].u.t);
      if (in[i].tag != PLAIT_TENSORS) continue;
      for (uint32_t k = 0; k < in[i].n; k++) lists[i].push_back(there(in[i].u.ts[k]));
      in[i].u.ts = lists[i].data();
    }
    return PLAIT_OK;
  });
  if (s < 0) return s;
  plait_call inner = *c;
  inner.size = sizeof inner;
  inner.in = in;
  inner.reusable = 0;
  const plait_status done = checked(&inner);
  c->device = inner.device;
  c->self = inner.self;
  c->launch = inner.launch;
  return done;
}

// Apart from `call`, whose code in registers it would spoil.
__attribute__((noinline, cold)) plait_status call_with_care(plait_call *c) {
  if (c->size < PLAIT_END_OF(plait_call, launch))
    return raise(c->thread, PLAIT_VALUE_ERROR, c->op->name,
                 "a plait_call of %u bytes; %zu are required", c->size,
                 PLAIT_END_OF(plait_call, launch));
  const Uses uses(c, this_thread());
  return checked(c);
}

}  // namespace

// One function with all that it calls, if not for size: a fifth of an empty call's time.
#ifndef __OPTIMIZE_SIZE__
__attribute__((flatten))
#endif
plait_status call(plait_call *c) {
  if (__builtin_expect(has_free_threads() || c->size < PLAIT_END_OF(plait_call, launch), 0))
    return call_with_care(c);
  return checked(c);
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
