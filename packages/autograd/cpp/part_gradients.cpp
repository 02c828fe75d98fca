#include "part_gradients.hpp"

#include "accumulate.hpp"

namespace plait::autograd {
namespace {

// Views whose elements are elements of their input, each at most once.
LazyOperator op_select("select"), op_slice("slice"), op_narrow("narrow");

bool is_part(plait_thread *thread, const OpNode *n) {
  return (n->op->flags & PLAIT_OP_VIEW) &&
         (n->op == op_select.get(thread) || n->op == op_slice.get(thread) ||
          n->op == op_narrow.get(thread));
}

// The same part of another tensor as the node's call took of its input.
Tensor part_of(plait_thread *thread, const OpNode *n, plait_tensor *tensor) {
  plait_value in[PLAIT_MAX_ARGS], out[PLAIT_MAX_RESULTS];
  for (uint32_t i = 1; i < n->n_in; i++) in[i] = n->in[i];
  in[0] = value(tensor);
  call(thread, n->op, in, n->n_in, out);
  return Tensor::steal(out[0].u.t);
}

bool is_on_cpu(DLDevice d) { return d.device_type == kDLCPU; }

bool is_all_of(const plait_tensor *part, const Layout &whole) {
  int64_t all = 1;
  for (int32_t d = 0; d < whole.ndim; d++) all *= whole.shape[d];
  return numel(part) == all;
}

}  // namespace

bool add_part(const Evaluation &e, Node *node, Gradients &gradients, const Layout &whole,
              plait_tensor **slot) {
  if (e.create || node->kind != Kind::op || node->n_edges != 1 || node->n_outs != 1) return false;
  const auto *n = static_cast<const OpNode *>(node);
  const plait_tensor *g = gradients[0];
  if (!g || !is_part(e.thread, n) || whole.ndim < 0) return false;
  if (is_all_of(g, whole)) return false;  // the derivative passes it on
  // zeros of the same shape cannot store a gradient whose values are elsewhere, such as a batched
  // one
  if (!has_own_bytes(g)) return false;
  // on a device the slot belongs to another stream
  if (!is_on_cpu(g->dl.device) || !is_on_cpu(whole.device) || !same(g->dl.dtype, whole.dtype))
    return false;
  if (*slot && (!fits(whole, *slot) || !writable(*slot))) return false;
  const Tensor part = gradients.take(0);
  if (*slot) {
    add_into(e.thread, part_of(e.thread, n, *slot), part);
  } else {
    Tensor all = zeros(e.thread, whole);
    copy_into(e.thread, part_of(e.thread, n, all.get()), part);
    *slot = all.release();
  }
  return true;
}

}  // namespace plait::autograd
