// Decompositions of halves that compute in float32.
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

// The dtype that the results have: the one that is asked for, or that of the floating arguments.
DType result_dtype(const plait_call *c) {
  Promotion all;
  for (uint16_t i = 0; i < c->n_in; i++) {
    const plait_value &v = c->in[i];
    if (v.tag == PLAIT_DTYPE) return v.u.dtype;
    if (v.tag == PLAIT_TENSOR && category(v.u.t->dl.dtype) >= Category::floating) all.add(v);
  }
  return all.result();
}

}  // namespace

void run_widened(plait_call *c, void (*decomposition)(const Scope &, plait_call *)) {
  const Scope outer = {c->thread, c->op, c};
  if (std::none_of(c->in, c->in + c->n_in, [](const plait_value &v) { return is_half(v); }))
    return decomposition(outer, c);
  const DType rounded = result_dtype(c);
  plait_value in[PLAIT_MAX_ARGS];
  std::vector<Tensor> casts;
  for (uint16_t i = 0; i < c->n_in; i++) {
    in[i] = c->in[i];
    if (!is_half(in[i])) continue;
    if (in[i].tag == PLAIT_DTYPE) {
      in[i].u.dtype = kFloat32;
    } else {
      casts.push_back(to_dtype(outer, in[i].u.t, kFloat32));
      in[i] = value(casts.back().get());
    }
  }
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

}  // namespace plait::ops
