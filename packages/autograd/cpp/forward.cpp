#include "forward.hpp"

#include <vector>

#include "record.hpp"
#include "tangents.hpp"
#include "watch.hpp"

namespace plait::autograd {
namespace {

// The layer is off and recording as it is, if the level has tangents recorded; hooks of saved
// tensors see none of it. Tangents are computed within.
class Quiet {
 public:
  explicit Quiet(plait_thread *thread) : thread_(thread), before_(thread->excluded) {
    const Level *level = level_of(thread);
    thread->excluded |= forward_bit | (level && !level->recorded ? engine.bit : 0);
    packing_ = packing() ? set_packing(0) : 0;
  }
  ~Quiet() {
    thread_->excluded = before_;
    if (packing_) set_packing(packing_);
  }
  Quiet(const Quiet &) = delete;
  Quiet &operator=(const Quiet &) = delete;

 private:
  plait_thread *thread_;
  uint64_t before_;
  int packing_;
};

struct Tangent {
  uint32_t position;
  Tensor value;
};
using Tangents = std::vector<Tangent>;

Tangents tangents_of(const plait_call *c) {
  Tangents found;
  each_input(c, [&](plait_tensor *t, uint32_t, uint32_t, uint32_t position) {
    if (!differentiable(t->dl.dtype)) return;
    if (Tensor own = tangent_of(c->thread, t)) found.push_back({position, std::move(own)});
  });
  return found;
}

uint32_t positions_of(const plait_op *op, const plait_value *in) {
  uint32_t n = 0;
  for (uint16_t i = 0; i < op->n_args; i++) {
    const uint8_t kind = op->args[i].kind;
    if (in[i].tag == PLAIT_TENSORS)
      n += in[i].n;
    else
      n += in[i].tag == PLAIT_TENSOR || kind == PLAIT_KIND_TENSOR || kind == PLAIT_KIND_OPERAND;
  }
  return n;
}

// The gradients that a vjp gives; released at the end of the scope.
class Products {
 public:
  explicit Products(uint32_t n) : list_(n < 64 ? 64 : n, nullptr) {}
  ~Products() {
    for (plait_tensor *t : list_) plait_release(t);
  }
  Products(const Products &) = delete;
  Products &operator=(const Products &) = delete;
  plait_tensor **data() { return list_.data(); }
  Tensor take(uint32_t i) { return Tensor::steal(std::exchange(list_[i], nullptr)); }

 private:
  std::vector<plait_tensor *> list_;
};

void run_vjp(plait_thread *thread, const plait_op *op, const plait_value *in, uint16_t n_in,
             const plait_value *out, uint16_t n_out, plait_tensor *const *gy, uint64_t need,
             Products &products) {
  plait_vjp v{};
  v.size = sizeof v;
  v.op = op;
  v.thread = thread;
  v.in = in;
  v.n_in = n_in;
  v.out = out;
  v.n_out = n_out;
  v.gy = gy;
  v.need = need;
  v.gx = products.data();
  check(op->def->vjp(&v));
}

Tensor sum_of(plait_thread *thread, const Tensor &a, Tensor b) {
  return !a ? b : !b ? a : add(thread, a, b);
}

// ---- pointwise operators
// -----------------------------------------------------------------------------------------------
bool is_real(DType d) { return d.code != kDLComplex; }

// The Jacobian is diagonal: what takes a gradient back takes a tangent forth.
bool is_diagonal(const plait_call *c) {
  if (!(c->op->flags & PLAIT_OP_POINTWISE) || !c->op->def->vjp || c->n_out != 1) return false;
  bool real = c->out[0].tag == PLAIT_TENSOR && is_real(c->out[0].u.t->dl.dtype);
  each_input(c, [&](const plait_tensor *t, uint32_t, uint32_t, uint32_t) {
    real &= is_real(t->dl.dtype);
  });
  return real;
}

Tensor diagonal(const plait_call *c, const Tangents &tangents) {
  static const Operator expand(engine.runtime, "expand");
  const plait_tensor *out = c->out[0].u.t;
  const plait_value shape = ints(out->dl.shape, size_t(out->dl.ndim));
  plait_value in[PLAIT_MAX_ARGS];
  std::vector<Tensor> wide;
  for (uint16_t i = 0; i < c->n_in; i++) {
    in[i] = c->in[i];
    if (in[i].tag != PLAIT_TENSOR) continue;
    wide.push_back(expand(c->thread, Tensor::share(in[i].u.t), shape));
    in[i] = value(wide.back());
  }
  Tensor sum;
  for (const Tangent &t : tangents) {
    Tensor g = expand(c->thread, t.value, shape);
    if (!same(g.dtype(), out->dl.dtype)) g = cast(c->thread, g, out->dl.dtype);
    plait_tensor *const gy[] = {g.get()};
    Products products(positions_of(c->op, in));
    run_vjp(c->thread, c->op, in, c->n_in, c->out, c->n_out, gy, bit_of(t.position), products);
    Tensor own = products.take(t.position);
    if (own && !same(own.dtype(), out->dl.dtype)) own = cast(c->thread, own, out->dl.dtype);
    sum = sum_of(c->thread, sum, std::move(own));
  }
  return sum;
}

// ---- all others
// --------------------------------------------------------------------------------------------------------
// Recording is on for the time of a scope.
class Recording {
 public:
  Recording(const plait_engine *engine, plait_thread *thread)
      : engine_(engine), thread_(thread), before_(engine->enabled(engine->ctx, thread)) {
    engine->set_enabled(engine->ctx, thread, 1);
  }
  ~Recording() { engine_->set_enabled(engine_->ctx, thread_, before_); }
  bool before() const { return before_; }
  Recording(const Recording &) = delete;
  Recording &operator=(const Recording &) = delete;

 private:
  const plait_engine *engine_;
  plait_thread *thread_;
  int before_;
};

struct Outputs {  // of a call, one after the other
  std::vector<plait_tensor *> tensors;
  explicit Outputs(const plait_call *c) {
    each_result(c, [&](plait_tensor *t, uint32_t, uint32_t, uint32_t) { tensors.push_back(t); });
  }
};

// Of a gradient for a real tensor its real part counts.
Tensor as_gradient(plait_thread *thread, const Tensor &g, const Tensor &like) {
  static const Operator real(engine.runtime, "real");
  const bool part = !is_real(g.dtype()) && is_real(like.dtype());
  return cast(thread, part ? Tensor(real(thread, g)) : g, like.dtype());
}

// vjp is linear in the gradient; its transpose takes tangents forth. Results are one for each
// output.
std::vector<Tensor> transposed(const plait_call *c, const Tangents &tangents) {
  plait_thread *thread = c->thread;
  const plait_engine *e = thread->roles->engine;
  const Outputs outputs(c);
  std::vector<Tensor> made(outputs.tensors.size()), held;
  std::vector<plait_tensor *> gy, wanted;
  std::vector<size_t> where;
  const Recording recording(e, thread);
  for (plait_tensor *t : outputs.tensors) {
    // any numbers would do, but some formulas take the logarithm of a gradient
    held.push_back(ones(thread, t->dl.dtype, t->dl.device, t->dl.shape, t->dl.ndim));
    gy.push_back(held.back().get());
    if (!differentiable(t->dl.dtype)) continue;
    check(e->set_requires_grad(e->ctx, thread, gy.back(), 1));
    where.push_back(gy.size() - 1);
    wanted.push_back(gy.back());
  }
  uint64_t need = 0;
  for (const Tangent &t : tangents) need |= bit_of(t.position);
  Products products(positions_of(c->op, c->in));
  run_vjp(thread, c->op, c->in, c->n_in, c->out, c->n_out, gy.data(), need, products);
  std::vector<plait_tensor *> roots, seeds;
  for (const Tangent &t : tangents) {
    Tensor product = products.take(t.position);
    if (!product || !requires_grad(product.get())) continue;  // the result doesn't depend on it
    if (!same(product.dtype(), t.value.dtype())) product = as_gradient(thread, product, t.value);
    roots.push_back(product.get());
    seeds.push_back(t.value.get());
    held.push_back(std::move(product));
  }
  if (roots.empty() || wanted.empty()) return made;
  Products found{uint32_t(wanted.size())};
  const uint32_t flags = PLAIT_BACKWARD_ALLOW_UNUSED |
                         (recording.before() ? PLAIT_BACKWARD_CREATE | PLAIT_BACKWARD_RETAIN : 0);
  check(e->backward(e->ctx, thread, roots.data(), seeds.data(), uint32_t(roots.size()),
                    wanted.data(), uint32_t(wanted.size()), flags, found.data()));
  for (uint32_t i = 0; i < wanted.size(); i++) made[where[i]] = found.take(i);
  return made;
}

[[noreturn]] void refuse(const plait_call *c, const char *why) {
  raise(c->thread, PLAIT_NOT_IMPLEMENTED, c->op->name, "no forward derivative: %s", why);
}

// What the operator's definition says.
std::vector<Tensor> by_formula(const plait_call *c, const Tangents &tangents) {
  plait_value in[2 * PLAIT_MAX_ARGS + PLAIT_MAX_RESULTS], out[PLAIT_MAX_RESULTS];
  plait_call inner = *c;
  inner.form = PLAIT_FUNCTION;
  inner.in = in;
  inner.n_in = uint16_t(2 * c->n_in + c->n_out);
  inner.out = out;
  for (uint16_t i = 0; i < c->n_in; i++) {
    in[i] = c->in[i];
    in[c->n_in + i] = none();
  }
  each_input(c, [&](plait_tensor *, uint32_t argument, uint32_t, uint32_t position) {
    for (const Tangent &t : tangents)
      if (t.position == position) in[c->n_in + argument] = value(t.value);
  });
  for (uint16_t i = 0; i < c->n_out; i++) {
    in[2 * c->n_in + i] = c->out[i];
    out[i] = none();
  }
  check(c->op->def->jvp(&inner));
  std::vector<Tensor> made;
  for (uint16_t i = 0; i < c->n_out; i++)
    made.push_back(Tensor::steal(out[i].tag == PLAIT_TENSOR ? out[i].u.t : nullptr));
  return made;
}

// The tangents of a call's results.
std::vector<Tensor> results_of(const plait_call *c, const Tangents &tangents) {
  const Outputs outputs(c);
  bool any = false;
  for (const plait_tensor *t : outputs.tensors) any |= differentiable(t->dl.dtype);
  if (!any) return std::vector<Tensor>(outputs.tensors.size());
  if (c->op->def->jvp && outputs.tensors.size() == c->n_out) return by_formula(c, tangents);
  if (is_diagonal(c)) return {diagonal(c, tangents)};
  if (!c->op->def->vjp)
    refuse(c, "the operator has no derivative; detach() its inputs if it should count as constant");
  if (!c->thread->roles->engine) refuse(c, "an engine must be loaded");
  return transposed(c, tangents);
}

// ---- the layer
// -----------------------------------------------------------------------------------------------------
void keep(const plait_call *c, const std::vector<Tensor> &made, Expecting &expecting) {
  size_t k = 0;
  each_result(c, [&](plait_tensor *t, uint32_t, uint32_t, uint32_t) {
    // kernels may return parts of a larger result, which are views of what nobody sees
    if (made[k]) write_tangent(c->thread, t, made[k]);
    if (made[k]) expecting.settle(t, tangent_of(c->thread, t));
    k++;
  });
}

void keep_written(const plait_call *c, const std::vector<Tensor> &made, Expecting &expecting) {
  size_t k = 0;
  each_result(c, [&](plait_tensor *t, uint32_t, uint32_t, uint32_t) {
    write_tangent(c->thread, t, made[k++]);
    expecting.settle(t, tangent_of(c->thread, t));
  });
}

void release_all(plait_call *c) {
  for (uint16_t i = 0; i < c->n_out; i++) engine.runtime->release_value(c->out + i);
}

plait_status function(plait_call *c, const Tangents &tangents, Expecting &expecting) {
  const plait_status s = engine.runtime->call_below(c);
  if (s != PLAIT_OK || c->op->flags & PLAIT_OP_VIEW) return s;
  try {
    const Quiet quiet(c->thread);
    keep(c, results_of(c, tangents), expecting);
  } catch (...) {
    release_all(c);
    throw;
  }
  return s;
}

void check_derivative(const plait_call *c) {
  if (!c->op->def->vjp && !c->op->def->jvp)
    refuse(c, "the operator has no derivative; detach() its inputs if it should count as constant");
  if (!c->thread->roles->engine) refuse(c, "an engine must be loaded");
}

// What lies in the memory that is written is copied first: the derivative sees it as it was.
plait_status in_place(plait_call *c, const Tangents &tangents, Expecting &expecting) {
  check_derivative(c);
  plait_value in[PLAIT_MAX_ARGS];
  std::vector<Tensor> copies;
  {
    const Quiet quiet(c->thread);
    for (uint16_t i = 0; i < c->n_in; i++) {
      in[i] = c->in[i];
      if (in[i].tag != PLAIT_TENSOR || in[i].u.t->storage != c->out[0].u.t->storage) continue;
      copies.push_back(clone(c->thread, Tensor::share(in[i].u.t)));
      in[i] = value(copies.back());
    }
  }
  const plait_status s = engine.runtime->call_below(c);
  if (s != PLAIT_OK) return s;
  const Quiet quiet(c->thread);
  plait_call inner = *c;
  inner.form = PLAIT_FUNCTION;
  inner.in = in;
  keep_written(c, results_of(&inner, tangents), expecting);
  return s;
}

plait_status writer(plait_call *c, uint32_t written, const Tangents &tangents,
                    Expecting &expecting) {
  if (c->op->def->vjp && c->op->def->saves) {
    uint64_t all = 0, own = 0;
    each_input(c, [&](const plait_tensor *, uint32_t argument, uint32_t, uint32_t position) {
      all |= bit_of(position);
      if (written >> argument & 1) own |= bit_of(position);
    });
    if (c->op->def->saves(c, all).in & own) refuse(c, "its derivative reads what it overwrites");
  }
  const plait_status s = engine.runtime->call_below(c);
  if (s != PLAIT_OK) return s;
  const Quiet quiet(c->thread);
  keep_written(c, results_of(c, tangents), expecting);
  return s;
}

plait_status carried(plait_call *c) {
  if (!level_of(c->thread)) return engine.runtime->call_below(c);
  Expecting expecting(c->thread);
  Tangents tangents;
  {
    const Quiet quiet(c->thread);
    tangents = tangents_of(c);
    if (c->form == PLAIT_OUT)
      each_result(c, [&](plait_tensor *t, uint32_t, uint32_t, uint32_t) {
        if (!tangents.empty() || tangent_of(c->thread, t))
          refuse(c, "out= is not for dual tensors; call it without out=");
      });
  }
  if (tangents.empty()) return engine.runtime->call_below(c);
  if (!c->op->def->vjp && c->op->def->decompose) return through_decomposition(c);
  if (c->form == PLAIT_INPLACE) return in_place(c, tangents, expecting);
  if (const uint32_t written = written_arguments(c)) return writer(c, written, tangents, expecting);
  return function(c, tangents, expecting);
}

plait_status forward_layer(plait_call *c) {
  return border(c->thread, c->op->name, [c] { return carried(c); });
}

// ---- for Python
// -----------------------------------------------------------------------------------------------------
plait_status enter(plait_thread *thread, int recorded, uint64_t *level) {
  return border(thread, "enter_dual_level", [&]() -> plait_status {
    if (level_of(thread))
      raise(thread, PLAIT_ERROR, "enter_dual_level",
            "a dual level is entered already; several at once are not supported");
    enter_level(thread, recorded);
    *level = level_of(thread)->number;
    return PLAIT_OK;
  });
}

plait_status leave(plait_thread *thread) {
  if (!level_of(thread))
    return engine.runtime->raise(thread, PLAIT_ERROR, "exit_dual_level",
                                 "no dual level is entered");
  leave_level(thread);
  return PLAIT_OK;
}

uint64_t level(plait_thread *thread) {
  const Level *level = level_of(thread);
  return level ? level->number : 0;
}

plait_status set(plait_thread *thread, plait_tensor *t, plait_tensor *tangent, int written) {
  return border(thread, "jvp", [&]() -> plait_status {
    if (!level_of(thread)) raise(thread, PLAIT_ERROR, "jvp", "a dual level must be entered");
    if (tangent && shape_text(t) != shape_text(tangent))
      raise(thread, PLAIT_SHAPE_ERROR, "jvp",
            "a tangent must have the shape of its result, %s; got %s", shape_text(t).c_str(),
            shape_text(tangent).c_str());
    const Quiet quiet(thread);
    const Tensor own = tangent ? Tensor::share(tangent) : Tensor();
    if (written)
      write_tangent(thread, t, own);
    else
      set_tangent(thread, t, own);
    return PLAIT_OK;
  });
}

plait_status tangent(plait_thread *thread, plait_tensor *t, plait_tensor **out) {
  return border(thread, "jvp", [&]() -> plait_status {
    const Quiet quiet(thread);
    *out = level_of(thread) ? tangent_of(thread, t).release() : nullptr;
    return PLAIT_OK;
  });
}

// A copy of the values that has no tangent, recorded as ever.
Tensor plain(plait_thread *thread, plait_tensor *t) {
  struct Off {
    plait_thread *thread;
    uint64_t before;
    ~Off() { thread->excluded = before; }
  } const off{thread, std::exchange(thread->excluded, thread->excluded | forward_bit)};
  return clone(thread, Tensor::share(t));
}

plait_status make(plait_thread *thread, plait_tensor *t, plait_tensor *tangent,
                  plait_tensor **dual) {
  return border(thread, "make_dual", [&]() -> plait_status {
    if (!level_of(thread))
      raise(thread, PLAIT_ERROR, "make_dual", "a dual level must be entered: with dual_level()");
    if (!differentiable(t->dl.dtype))
      raise(thread, PLAIT_DTYPE_ERROR, "make_dual",
            "`tensor` must have a floating-point or complex dtype; got %s", name(t->dl.dtype));
    if (!same(t->dl.dtype, tangent->dl.dtype))
      raise(thread, PLAIT_DTYPE_ERROR, "make_dual",
            "`tensor` and `tangent` must have the same dtype; got %s and %s", name(t->dl.dtype),
            name(tangent->dl.dtype));
    if (shape_text(t) != shape_text(tangent))
      raise(thread, PLAIT_SHAPE_ERROR, "make_dual",
            "`tangent` must have the shape of `tensor`, %s; got %s", shape_text(t).c_str(),
            shape_text(tangent).c_str());
    const Tensor made = plain(thread, t);
    const Quiet quiet(thread);
    set_tangent(thread, made.get(), Tensor::share(tangent));
    *dual = Tensor(made).release();
    return PLAIT_OK;
  });
}

plait_status parts(plait_thread *thread, plait_tensor *t, plait_tensor **primal,
                   plait_tensor **tangent) {
  return border(thread, "unpack_dual", [&]() -> plait_status {
    Tensor own;
    {
      const Quiet quiet(thread);
      if (level_of(thread)) own = tangent_of(thread, t);
    }
    *primal = plain(thread, t).release();
    *tangent = own.release();
    return PLAIT_OK;
  });
}

int carry(plait_thread *thread, int on) {
  const int before = !(thread->excluded & forward_bit);
  thread->excluded = on ? thread->excluded & ~forward_bit : thread->excluded | forward_bit;
  return before;
}

}  // namespace

const Forward forward{PLAIT_HEADER(Forward), enter, leave, level, make, parts, carry, set, tangent};

plait_status start_forward(const plait_runtime *runtime, const plait_plugin *who) {
  plait_thread *thread = runtime->thread();
  uint32_t bit = 0;
  const plait_status s = runtime->layer(thread, "forward", 40, &bit);
  if (s < 0) return s;
  forward_bit = uint64_t(1) << bit;
  uint64_t undo = 0;
  return runtime->implement(thread, nullptr, PLAIT_SLOT_LAYER + bit, forward_layer, nullptr, who,
                            &undo);
}

}  // namespace plait::autograd
