// What our own Python binding asks of our own engine beyond the role: `plait_engine::ctx` points to
// this table if the engine's name is "plait_autograd".
#pragma once
#include "forward.hpp"

namespace plait::autograd {

struct Introspection {
  plait_header h;
  uint32_t (*edges)(plait_object *node);
  plait_object *(*edge)(plait_object *node, uint32_t i,
                        uint32_t *index);  // a new reference, or NULL
  uint64_t (*sequence)(plait_object *node);
  // a fresh handle becomes output `index` of the node
  plait_status (*attach)(plait_thread *, plait_object *node, uint32_t index, plait_tensor *);
  int (*retains)(
      void);  // whether the innermost pass of this thread keeps the graph; 1 outside of one
  plait_object *(*running)(
      void);  // the node that the innermost pass of this thread is at, borrowed; NULL outside
  const Forward *forward;
};

}  // namespace plait::autograd
