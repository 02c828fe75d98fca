// Adapters from the C signatures of plait_op_def to translated functions, which throw.
#pragma once
#include "calls.hpp"
#include "comparisons.hpp"
#include "library.hpp"
#include "words.hpp"

namespace plait::ops {

template <void (*F)(const Scope &, plait_call *)>
plait_status guarded(plait_call *c) {
  return border(c->thread, c->op->name, [&]() -> plait_status {
    F({c->thread, c->op, c}, c);
    return PLAIT_OK;
  });
}

// a decomposition that runs instead of a kernel: the shape function checks the arguments first
template <void (*Shape)(const Scope &, plait_call *), void (*F)(const Scope &, plait_call *)>
plait_status guarded(plait_call *c) {
  return border(c->thread, c->op->name, [&]() -> plait_status {
    Shape({c->thread, c->op, c, true}, c);
    F({c->thread, c->op, c}, c);
    return PLAIT_OK;
  });
}

// Runs a decomposition on a call whose float16 and bfloat16 arguments are cast to float32, and
// rounds its results once. Derivatives likewise: results that they read are computed again.
void run_widened(plait_call *c, void (*decomposition)(const Scope &, plait_call *));
void run_widened(plait_vjp *v, void (*derivatives)(const Scope &, plait_vjp *));
template <auto F, class Call>
void widened(const Scope &, Call *c) {
  run_widened(c, F);
}

// Runs the decomposition of a pointwise operator on operands of the dtype that it computes in.
void run_promoted(plait_call *c, void (*decomposition)(const Scope &, plait_call *));
template <void (*F)(const Scope &, plait_call *)>
void promoted(const Scope &, plait_call *c) {
  run_promoted(c, F);
}

inline Scope scope_of(const plait_vjp *v) { return {v->thread, v->op, nullptr, false, v}; }

template <void (*F)(const Scope &, plait_vjp *)>
plait_status guarded_vjp(plait_vjp *v) {
  return border(v->thread, v->op->name, [&]() -> plait_status {
    F(scope_of(v), v);
    return PLAIT_OK;
  });
}

// What a translated cost function counts; below 0: what the runtime counts stays.
struct Cost {
  int64_t operations = -1, read = -1, written = -1;
};

// A result that a cost function reads.
inline const plait_value &made(const plait_value &v) {
  if (is_none(v)) throw std::invalid_argument("a cost is asked for before the results are there");
  return v;
}

// A count that does not fit 64 bits, or sizes that the shape function would refuse, leave `out` as
// it is.
template <void (*F)(const plait_call *, Cost &)>
void guarded_cost(const plait_call *c, plait_cost *out) noexcept {
  Cost cost;
  try {
    F(c, cost);
  } catch (...) {
    return;
  }
  if (cost.operations >= 0) out->operations = uint64_t(cost.operations);
  if (cost.read >= 0) out->read = uint64_t(cost.read);
  if (cost.written >= 0) out->written = uint64_t(cost.written);
}

// stores the gradients of a Tensor[] whose first item has position `first`
inline void give_gradients(plait_vjp *v, uint64_t first, Bag &list) {
  for (int64_t i = 0; i < list.size(); i++)
    if (v->need & bit(first + uint64_t(i))) v->gx[first + uint64_t(i)] = list.take(i);
}

}  // namespace plait::ops
