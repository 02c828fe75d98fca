#include "derivatives.hpp"

#include <unordered_set>

#include "history.hpp"
#include "tangents.hpp"

namespace plait::autograd {
namespace {

// The history of a gradient that depends on nothing. It has no edges, so it keeps nothing alive.
Ref<Node> constant_node(plait_thread *thread, const plait_tensor *t) {
  const auto lay = [t](Pieces &at, Node **node, Layout **out, plait_tensor ***buffer) {
    *node = at.take<Node>(1);
    *out = at.take<Layout>(1);
    *buffer = at.take<plait_tensor *>(1);
    return at.take<int64_t>(size_t(t->dl.ndim));
  };
  Node *n;
  Layout *out;
  plait_tensor **buffer;
  Pieces size;
  lay(size, &n, &out, &buffer);
  Pieces at(allocate(size.size()));
  int64_t *dims = lay(at, &n, &out, &buffer);
  new (n) Node;
  start(n, Kind::constant, size.size());
  n->outs = out;
  n->buffers = buffer;
  *buffer = nullptr;
  lay_out(*out, dims, t);
  n->n_outs = 1;
  n->derivative.store(Derivative::yes, std::memory_order_relaxed);
  stamp(thread, n);
  return Ref<Node>::steal(n);
}

// The same gradient with a new handle, which can get a history.
Tensor own_handle(plait_thread *thread, Tensor g) {
  if (__atomic_load_n(&g->o.refs, __ATOMIC_ACQUIRE) == 1) return g;
  Tensor alias;
  check(engine.runtime->tensor_alias(thread, g.get(), alias.out()));
  if (carrying(thread)) give_tangent(thread, g.get(), alias.get());
  return alias;
}

Tensor recorded(plait_thread *thread, Tensor g) {
  g = own_handle(thread, std::move(g));
  set_history(g.get(), constant_node(thread, g.get()), 0);
  return g;
}

}  // namespace

void record_as_derivatives(plait_thread *thread, Gradients &gradients, bool known) {
  for (uint32_t i = 0; i < gradients.size(); i++) {
    plait_tensor *g = gradients[i];
    if (!g || g->slot[3]) continue;  // the values of a sparse gradient have its history
    if (!requires_grad(g)) {
      if (known) gradients.put(i, recorded(thread, gradients.take(i)));
      continue;
    }
    if (is_leaf(g))  // that the program gave for a result, and that no operator changed
      gradients.put(i, alias(thread, Tensor::share(g)));
    const GradientEdge edge = history_of(thread, gradients[i]);
    if (edge.node)
      edge.node->derivative.store(known ? Derivative::yes : Derivative::unknown,
                                  std::memory_order_relaxed);
  }
}

Tensor without_constant(Tensor g) {
  const Node *n = g && is_node(g->slot[0]) ? static_cast<const Node *>(g->slot[0]) : nullptr;
  if (n && n->kind == Kind::constant) clear_history(g.get());
  return g;
}

Tensor zero_derivative(plait_thread *thread, const plait_tensor *like, bool record) {
  const DLTensor &l = like->dl;
  Tensor result = zeros(thread, l.dtype, l.device, l.shape, l.ndim);
  return record ? recorded(thread, std::move(result)) : result;
}

bool hold_derivatives(plait_thread *thread, plait_tensor *const *roots, uint32_t n) {
  std::vector<Node *> waiting;
  std::unordered_set<Node *> seen;
  const auto add = [&](Node *node) {
    if (node && seen.insert(node).second) waiting.push_back(node);
  };
  std::vector<GradientEdge> edges;  // own the nodes that the walk begins at
  for (uint32_t i = 0; i < n; i++) {
    edges.push_back(history_of(thread, roots[i]));
    add(edges.back().node.get());
  }
  bool any = false;
  while (!waiting.empty()) {
    Node *node = waiting.back();
    waiting.pop_back();
    const Derivative d = node->derivative.load(std::memory_order_relaxed);
    if (d == Derivative::unknown) return false;
    any |= d == Derivative::yes;
    for (uint32_t i = 0; i < node->n_edges; i++) add(node->edges[i].node);
  }
  return any;
}

}  // namespace plait::autograd
