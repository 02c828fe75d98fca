// Recording operator calls.
#pragma once
#include "history.hpp"

namespace plait::autograd {

plait_status layer(plait_call *);  // the layer's entry, for every operator

// Calls f(tensor, argument, item, position) for every tensor among the values. Positions number the
// tensors that the schema allows: an argument that may be a tensor counts as one in any case, a
// list counts its length.
template <auto at, class F>
void each_tensor(const plait_op *op, const plait_value *values, uint32_t n, F &&f) {
  uint32_t position = 0;
  for (uint32_t i = 0; i < n; i++) {
    if (values[i].tag == PLAIT_TENSOR) {
      f(values[i].u.t, i, 0u, position++);
    } else if (values[i].tag == PLAIT_TENSORS) {
      for (uint32_t k = 0; k < values[i].n; k++, position++)
        if (values[i].u.ts[k]) f(values[i].u.ts[k], i, k, position);
    } else {
      const uint8_t kind = at(op, i)->kind;
      position += kind == PLAIT_KIND_TENSOR || kind == PLAIT_KIND_OPERAND;
    }
  }
}
template <class F>
void each_input(const plait_call *c, F &&f) {
  each_tensor<plait_arg_at>(c->op, c->in, c->n_in, f);
}
// The layer's entry for operators of several steps that name the node of their last one.
plait_status step_layer(plait_call *);
// Names the nodes that were recorded since `first` and end with these results.
void name_step(plait_tensor *t, const char *name, uint64_t first);

template <class F>
void each_result(const plait_call *c, F &&f) {
  each_tensor<plait_result_at>(c->op, c->out, c->n_out, f);
}

// Bits of the arguments that the call writes to.
uint32_t written_arguments(const plait_call *);

// Bits of positions; those beyond 63 share the last one.
inline uint64_t bit_of(uint32_t position) { return uint64_t(1) << (position < 63 ? position : 63); }

// A node in the host language (engine->record).
plait_status record_host(void *, plait_thread *, const char *name, plait_object *callable,
                         plait_tensor *const *inputs, uint32_t n_in, plait_tensor *const *outputs,
                         uint32_t n_out, plait_object **node);

}  // namespace plait::autograd
