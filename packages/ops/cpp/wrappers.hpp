// Adapters from the C signatures of plait_op_def to translated functions, which throw.
#pragma once
#include "calls.hpp"
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

template <void (*F)(const Scope &, plait_vjp *)>
plait_status guarded_vjp(plait_vjp *v) {
  return border(v->thread, v->op->name, [&]() -> plait_status {
    F({v->thread, v->op, nullptr}, v);
    return PLAIT_OK;
  });
}

// stores the gradients of a Tensor[] whose first item has position `first`
inline void give_gradients(plait_vjp *v, uint64_t first, Bag &list) {
  for (int64_t i = 0; i < list.size(); i++)
    if (v->need & bit(first + uint64_t(i))) v->gx[first + uint64_t(i)] = list.take(i);
}

}  // namespace plait::ops
