// Decompositions and derivatives of halves that compute in float32.
#include "promotion.hpp"
#include "words.hpp"
#include "wrappers.hpp"

namespace plait::ops {
namespace {

constexpr DType kFloat32 = {kDLFloat, 32, 1};

bool is_half(DType d) { return d.bits == 16 && (d.code == kDLFloat || d.code == kDLBfloat); }
bool is_half(const plait_value &v) {
  return v.tag == PLAIT_TENSOR ? is_half(v.u.t->dl.dtype)
                               : v.tag == PLAIT_DTYPE && is_half(v.u.dtype);
}

// The dtype that the results have: the requested one, or that of the floating arguments.
DType result_dtype(const plait_call *c) {
  Promotion all;
  for (uint16_t i = 0; i < c->n_in; i++) {
    const plait_value &v = c->in[i];
    if (v.tag == PLAIT_DTYPE) return v.u.dtype;
    if (v.tag == PLAIT_TENSOR && category(v.u.t->dl.dtype) >= Category::floating) all.add(v);
  }
  return all.result();
}

// A value, or its cast to float32, which `casts` owns.
plait_value widen(const Scope &x, plait_value v, std::vector<Tensor> &casts) {
  if (!is_half(v)) return v;
  if (v.tag == PLAIT_DTYPE) {
    v.u.dtype = kFloat32;
    return v;
  }
  casts.push_back(to_dtype(x, v.u.t, kFloat32));
  return value(casts.back().get());
}

}  // namespace

void run_widened(plait_call *c, void (*decomposition)(const Scope &, plait_call *)) {
  const Scope outer = {c->thread, c->op, c};
  if (std::none_of(c->in, c->in + c->n_in, [](const plait_value &v) { return is_half(v); }))
    return decomposition(outer, c);
  const DType rounded = result_dtype(c);
  plait_value in[PLAIT_MAX_ARGS];
  std::vector<Tensor> casts;
  for (uint16_t i = 0; i < c->n_in; i++) in[i] = widen(outer, c->in[i], casts);
  plait_call inner = *c;
  inner.size = sizeof inner;
  inner.in = in;
  decomposition({c->thread, c->op, &inner}, &inner);
  if (!is_half(rounded)) return;
  for (uint16_t i = 0; i < c->n_out; i++) {
    if (c->out[i].tag != PLAIT_TENSOR || !same(c->out[i].u.t->dl.dtype, kFloat32)) continue;
    const Tensor wide = Tensor::steal(c->out[i].u.t);
    c->out[i] = none();
    give(outer, i, to_dtype(outer, wide.get(), rounded));
  }
}

void run_widened(plait_vjp *v, void (*derivatives)(const Scope &, plait_vjp *)) {
  const Scope x = scope_of(v);
  plait_value in[PLAIT_MAX_ARGS], out[PLAIT_MAX_RESULTS];
  plait_tensor *gy[PLAIT_MAX_RESULTS];
  std::vector<Tensor> casts;
  for (uint16_t i = 0; i < v->n_in; i++) in[i] = widen(x, v->in[i], casts);
  for (uint16_t i = 0; i < v->n_out; i++) gy[i] = widen(x, value(v->gy[i]), casts).u.t;
  if (casts.empty()) return derivatives(x, v);
  Results again;
  if (std::any_of(v->out, v->out + v->n_out, [](const plait_value &y) { return is_half(y); })) {
    call(v->thread, v->op, in, v->n_in, again.values());
    again.n = v->n_out;
  }
  for (uint16_t i = 0; i < v->n_out; i++)
    out[i] = is_half(v->out[i]) ? again.values()[i] : v->out[i];
  plait_vjp inner{};
  std::memcpy(&inner, v, std::min<size_t>(v->size, sizeof inner));
  inner.size = sizeof inner;
  inner.in = in;
  inner.out = out;
  inner.gy = gy;
  derivatives(scope_of(&inner), &inner);
  for (uint16_t i = 0; i < v->n_in; i++) {
    const auto kind = plait_arg_at(v->op, i)->kind;
    if (kind != PLAIT_KIND_TENSOR && kind != PLAIT_KIND_OPERAND) continue;
    plait_tensor *&gx = v->gx[position_of(v->op, v->in, i)];
    // an input that was not saved has the dtype of the gradient
    const DType rounded = is_tensor(v->in[i]) ? v->in[i].u.t->dl.dtype : v->gy[0]->dl.dtype;
    if (!gx || !is_half(rounded) || !same(gx->dl.dtype, kFloat32)) continue;
    const Tensor wide = Tensor::steal(gx);
    gx = nullptr;
    gx = to_dtype(x, wide.get(), rounded).release();
  }
}

}  // namespace plait::ops
