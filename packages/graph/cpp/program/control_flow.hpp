// The nodes `cond` and `while_loop`, which have regions: graphs in themselves (docs/design/0051).
#pragma once
#include <string_view>

#include "graph.hpp"

namespace plait::graph {

// The definition of `cond` or `while_loop`, which are no operators of the runtime; else NULL.
//
// cond(Tensor predicate, Tensor[] operands): the operands are the inputs of two regions, of which
// one gives the results. while_loop(Tensor[] carried, Tensor[] captured): both are the inputs of
// two regions; the first gives one bool, the second the carried values of the next round.
const plait_op *control_flow_operator(std::string_view name);

// The operator of that exact name, or NULL; also those above.
const plait_op *find_operator(const char *name);

}  // namespace plait::graph
