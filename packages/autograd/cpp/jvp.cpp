#include "jvp.hpp"

#include <utility>

#include "derivatives.hpp"

namespace plait::autograd {
namespace {

uint32_t positions_of(const plait_op *op, const plait_value *in) {
  uint32_t n = 0;
  for (uint16_t i = 0; i < op->n_args; i++) {
    const uint8_t kind = plait_arg_at(op, i)->kind;
    if (in[i].tag == PLAIT_TENSORS)
      n += in[i].n;
    else
      n += in[i].tag == PLAIT_TENSOR || kind == PLAIT_KIND_TENSOR || kind == PLAIT_KIND_OPERAND;
  }
  return n;
}

// The gradients that a vjp returns; released at the end of the scope.
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

// Pointwise operators.
bool is_real(DType d) { return d.code != kDLComplex; }

// Whether the Jacobian is diagonal: then the vjp of a tangent is its jvp.
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

// Other operators.
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

struct Outputs {  // of a call, in order
  std::vector<plait_tensor *> tensors;
  explicit Outputs(const plait_call *c) {
    each_result(c, [&](plait_tensor *t, uint32_t, uint32_t, uint32_t) { tensors.push_back(t); });
  }
};

// The gradient of a real tensor is the real part.
Tensor as_gradient(plait_thread *thread, const Tensor &g, const Tensor &like) {
  static const Operator real(engine.runtime, "real");
  const bool part = !is_real(g.dtype()) && is_real(like.dtype());
  return cast(thread, part ? Tensor(real(thread, g)) : g, like.dtype());
}

// The vjp is linear in the gradient, and its transpose is the jvp. One result for each output.
std::vector<Tensor> transposed(const plait_call *c, const Tangents &tangents) {
  plait_thread *thread = c->thread;
  const plait_engine *e = role<plait_engine>(thread->runtime);
  const Outputs outputs(c);
  std::vector<Tensor> result(outputs.tensors.size()), held;
  std::vector<plait_tensor *> gy, required;
  std::vector<size_t> where;
  const Recording recording(e, thread);
  for (plait_tensor *t : outputs.tensors) {
    // any numbers are possible; ones are used as some formulas take the logarithm of a gradient
    held.push_back(ones(thread, t->dl.dtype, t->dl.device, t->dl.shape, t->dl.ndim));
    gy.push_back(held.back().get());
    if (!differentiable(t->dl.dtype)) continue;
    check(e->set_requires_grad(e->ctx, thread, gy.back(), 1));
    where.push_back(gy.size() - 1);
    required.push_back(gy.back());
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
  if (roots.empty() || required.empty()) return result;
  Products match{uint32_t(required.size())};
  // without a gradient of the input the tangent needs none, though some formulas keep the constant
  bool creates = false;
  each_input(
      c, [&](const plait_tensor *t, uint32_t, uint32_t, uint32_t) { creates |= requires_grad(t); });
  for (const Tangent &t : tangents) creates |= requires_grad(t.value.get());
  creates &= recording.before() != 0;
  const uint64_t flags =
      PLAIT_BACKWARD_ALLOW_UNUSED | (creates ? PLAIT_BACKWARD_CREATE | PLAIT_BACKWARD_RETAIN : 0);
  check(e->backward(e->ctx, thread, roots.data(), seeds.data(), uint32_t(roots.size()),
                    required.data(), uint32_t(required.size()), flags, match.data()));
  for (uint32_t i = 0; i < required.size(); i++) result[where[i]] = without_constant(match.take(i));
  return result;
}

// The jvp by the formula of the operator's definition.
std::vector<Tensor> by_formula(const plait_call *c, const Tangents &tangents) {
  plait_value in[2 * PLAIT_MAX_ARGS + PLAIT_MAX_RESULTS], out[PLAIT_MAX_RESULTS];
  plait_call inner = *c;
  inner.size = sizeof inner;
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
  std::vector<Tensor> result;
  for (uint16_t i = 0; i < c->n_out; i++)
    result.push_back(Tensor::steal(out[i].tag == PLAIT_TENSOR ? out[i].u.t : nullptr));
  return result;
}

}  // namespace

void refuse_tangents(const plait_call *c, const char *reason) {
  raise(c->thread, PLAIT_NOT_IMPLEMENTED, c->op->name, "no forward derivative: %s", reason);
}

std::vector<Tensor> jvp(const plait_call *c, const Tangents &tangents) {
  const Outputs outputs(c);
  bool any = false;
  for (const plait_tensor *t : outputs.tensors) any |= differentiable(t->dl.dtype);
  if (!any) return std::vector<Tensor>(outputs.tensors.size());
  if (c->op->def->jvp && outputs.tensors.size() == c->n_out) return by_formula(c, tangents);
  if (is_diagonal(c)) return {diagonal(c, tangents)};
  if (!c->op->def->vjp)
    refuse_tangents(
        c, "the operator has no derivative; detach() its inputs if it should count as constant");
  if (!role<plait_engine>(c->thread->runtime)) refuse_tangents(c, "an engine must be loaded");
  return transposed(c, tangents);
}

}  // namespace plait::autograd
