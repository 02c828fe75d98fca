// Nodes that are written in the host language.
#include "record.hpp"
#include "watch.hpp"

namespace plait::autograd {
namespace {

Ref<HostNode> host_node(plait_thread *thread, const char *name, plait_object *callable,
                        plait_tensor *const *inputs, uint32_t n_in, plait_tensor *const *outputs,
                        uint32_t n_out) {
  size_t dims = 0;
  for (uint32_t i = 0; i < n_out; i++) dims += outputs[i] ? size_t(outputs[i]->dl.ndim) : 0;
  const size_t length = std::strlen(name) + 1;
  Pieces at;
  HostNode *n = nullptr;
  for (const bool real : {false, true}) {
    const size_t size = at.size();
    at = Pieces(real ? allocate(size) : nullptr);
    n = at.take<HostNode>(1);
    if (real) start(new (n) HostNode, Kind::host, size);
    Edge *edges = at.take<Edge>(n_in);
    plait_tensor **buffers = at.take<plait_tensor *>(n_out);
    Layout *outs = at.take<Layout>(n_out);
    int64_t *room = at.take<int64_t>(dims);
    auto *versions = at.take<uint64_t>(n_out);
    char *text = at.take<char>(length);
    if (!real) continue;
    n->versions = versions;
    n->edges = edges;
    n->buffers = buffers;
    n->outs = outs;
    n->name = text;
    n->sparse = false;
    n->weak.store(nullptr, std::memory_order_relaxed);
    std::memcpy(text, name, length);
    for (uint32_t i = 0; i < n_in; i++) edges[i] = {nullptr, 0, 0};
    for (uint32_t i = 0; i < n_out; i++) {
      buffers[i] = nullptr;
      outs[i] = {{}, -1, {}, nullptr};
      if (!outputs[i]) continue;
      lay_out(outs[i], room, outputs[i]);
      room += outputs[i]->dl.ndim;
    }
  }
  n->n_edges = n_in;
  n->n_outs = n_out;
  n->callable = callable;
  plait_retain_object(callable);
  Ref<HostNode> owner = Ref<HostNode>::steal(n);
  for (uint32_t i = 0; i < n_in; i++) {
    if (!inputs[i] || !requires_grad(inputs[i])) continue;
    GradientEdge edge = history_of(thread, inputs[i]);
    n->edges[i] = {edge.node.release(), edge.index, 0};
  }
  stamp(thread, n);
  return owner;
}

void check_output(plait_thread *thread, const char *name, const plait_tensor *t, bool written,
                  uint32_t i) {
  if (written && has_bit(t) && is_leaf(t))
    raise(thread, PLAIT_ERROR, name,
          "output %u is a leaf of shape %s that requires grad and was written in place; clone() it "
          "before",
          unsigned(i), shape_text(t).c_str());
  if (written && base_of(t))
    raise(thread, PLAIT_NOT_IMPLEMENTED, name,
          "output %u of shape %s was written in place and is a view, which has no derivative here; "
          "clone() it before",
          unsigned(i), shape_text(t).c_str());
  if (!written && requires_grad(t))
    raise(thread, PLAIT_ERROR, name,
          "output %u of shape %s already has a history; return detach() of it", unsigned(i),
          shape_text(t).c_str());
}

// The history of an output does not follow from its base, as only the function knows how it was
// made. If other tensors share its memory, it stays marked as a view, so that writes are errors.
void cut(plait_tensor *t, plait_tensor *const *inputs, uint32_t n_in) {
  if (t->base && __atomic_load_n(&t->base->o.refs, __ATOMIC_ACQUIRE) == 1) drop(t->base);
  for (uint32_t i = 0; i < n_in && !t->base; i++) {
    plait_tensor *from = inputs[i];
    plait_tensor *root = from && from->base ? from->base : from;
    if (!root || root == t || from->storage != t->storage) continue;
    t->base = root;
    plait_retain(root);
  }
  if (t->base) t->flags |= PLAIT_TENSOR_VIEW | PLAIT_TENSOR_CUT;
}

}  // namespace

plait_status record_host(void *, plait_thread *thread, const char *name, plait_object *callable,
                         plait_tensor *const *inputs, uint32_t n_in, plait_tensor *const *outputs,
                         uint32_t n_out, plait_object **node) {
  return border(thread, name, [&]() -> plait_status {
    if (node) *node = nullptr;
    bool any = false;
    for (uint32_t i = 0; i < n_in; i++) any |= inputs[i] && requires_grad(inputs[i]);
    if (!any || (thread->excluded & engine.bit)) return PLAIT_OK;
    const auto written = [&](const plait_tensor *t) {
      for (uint32_t i = 0; i < n_in; i++)
        if (inputs[i] == t) return true;
      return false;
    };
    for (uint32_t i = 0; i < n_out; i++)
      if (outputs[i]) check_output(thread, name, outputs[i], written(outputs[i]), i);
    const Ref<HostNode> n = host_node(thread, name, callable, inputs, n_in, outputs, n_out);
    if (watching() && anomaly_nan) note_nan(thread, n.get(), inputs, n_in, outputs, n_out);
    for (uint32_t i = 0; i < n_out; i++) {
      plait_tensor *t = outputs[i];
      if (!t || !differentiable(t->dl.dtype)) continue;
      // other views of the written memory must see that its history changes
      if (written(t)) wrote(t);
      if (!written(t)) cut(t, inputs, n_in);
      set_history(t, Ref<Node>::share(n.get()), i);
    }
    for (uint32_t i = 0; i < n_out; i++)
      if (outputs[i]) n->versions[i] = history_version(outputs[i]);
    if (node) *node = &Ref<HostNode>(n).release()->o;
    return PLAIT_OK;
  });
}

}  // namespace plait::autograd
