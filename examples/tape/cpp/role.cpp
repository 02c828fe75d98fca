// The role "engine": what tensors ask about gradients, and the plug-in that offers it.
#include "tape.hpp"

namespace plait::tape {
namespace {

// [modes]
int enabled(void *, plait_thread *thread) { return !(thread->excluded & engine.bit); }

void set_enabled(void *, plait_thread *thread, int on) {
  if (on)
    thread->excluded &= ~engine.bit;
  else
    thread->excluded |= engine.bit;
}
// [/modes]

plait_status set_requires_grad(void *, plait_thread *thread, plait_tensor *t, int on) {
  return border(thread, "requires_grad", [&]() -> plait_status {
    if (!on && !is_leaf(t))
      raise(thread, PLAIT_ERROR, "requires_grad",
            "a tensor of shape %s that is the result of an operator cannot stop requiring grad; "
            "use detach()",
            shape_text(t).c_str());
    if (!on) {
      t->layers &= ~engine.bit;
      return PLAIT_OK;
    }
    if (!differentiable(t->dl.dtype))
      raise(thread, PLAIT_ERROR, "requires_grad",
            "only tensors of floating point and complex dtype can require grad; got %s",
            plait::name(t->dl.dtype));
    if (requires_grad(t)) return PLAIT_OK;
    const History *h = history(t);
    NodeOutput leaf = h ? h->output : NodeOutput{};
    auto cell = h && h->cell ? h->cell : std::make_shared<Cell>();
    if (!leaf.node) {
      leaf.node = new_node("AccumulateGrad");
      leaf.node->leaf = cell;
    }
    if ((t->flags & PLAIT_TENSOR_CUT) && t->base) {  // its base would not learn of it
      plait_release(t->base);
      t->base = nullptr;
    }
    put(t, {{}, std::move(leaf), base_sequence(t), version(t), std::move(cell)});
    t->layers |= engine.bit;
    return PLAIT_OK;
  });
}

int leaf(void *, plait_tensor *t) { return is_leaf(t); }

plait_status detach_(void *, plait_thread *thread, plait_tensor *t) {
  return border(thread, "detach_", [&]() -> plait_status {
    if (is_leaf(t)) {
      t->layers &= ~engine.bit;
      return PLAIT_OK;
    }
    if (t->base)
      raise(thread, PLAIT_ERROR, "detach_",
            "a view of shape %s cannot be detached in place; use detach()", shape_text(t).c_str());
    put(t, {});
    t->layers &= ~engine.bit;
    return PLAIT_OK;
  });
}

plait_status get_grad(void *, plait_thread *, plait_tensor *t, plait_tensor **out) {
  const History *h = history(t);
  *out = h && h->cell ? h->cell->read().release() : nullptr;
  return PLAIT_OK;
}

plait_status set_grad(void *, plait_thread *thread, plait_tensor *t, plait_tensor *grad) {
  return border(thread, "grad", [&]() -> plait_status {
    if (grad) {
      const Layout want = layout_of(t), got = layout_of(grad);
      if (grad == t)
        raise(thread, PLAIT_VALUE_ERROR, "grad", "a tensor cannot be its own gradient");
      if (want.shape != got.shape)
        raise(thread, PLAIT_SHAPE_ERROR, "grad",
              "the gradient of a tensor of shape %s must have its shape; got %s",
              shape_text(t).c_str(), shape_text(grad).c_str());
      if (!same(want.dtype, got.dtype) || want.device.device_type != got.device.device_type)
        raise(thread, PLAIT_DTYPE_ERROR, "grad",
              "the gradient of a tensor of %s must have its dtype and device; got %s",
              plait::name(want.dtype), plait::name(got.dtype));
    }
    History *h = history(t);
    if (!h && !grad) return PLAIT_OK;
    if (!h) put(t, {});
    h = history(t);
    if (!h->cell) h->cell = std::make_shared<Cell>();
    h->cell->write(Tensor::share(grad));
    return PLAIT_OK;
  });
}

plait_status retain_grad(void *, plait_thread *thread, plait_tensor *t) {
  return border(thread, "retain_grad", [&]() -> plait_status {
    if (!requires_grad(t))
      raise(thread, PLAIT_ERROR, "retain_grad", "the tensor of shape %s must require grad",
            shape_text(t).c_str());
    const NodeOutput output = output_of(thread, t);
    if (is_leaf(t)) return PLAIT_OK;
    History *h = history(t);
    if (!h->cell) h->cell = std::make_shared<Cell>();
    const std::lock_guard<std::mutex> lock(output.node->mutex);
    for (const auto &[index, cell] : output.node->retained)
      if (cell == h->cell) return PLAIT_OK;
    output.node->retained.emplace_back(output.index, h->cell);
    return PLAIT_OK;
  });
}

plait_object *node(void *, plait_tensor *t) {
  const History *h = has_bit(t) && !is_leaf(t) ? history(t) : nullptr;
  if (!h || !h->output.node) return nullptr;
  return &Ref<Node>(h->output.node).release()->o;
}

const char *node_name(void *, plait_object *o) {
  const Node *n = as_node(o);
  return n ? n->name.c_str() : nullptr;
}

// [plugin]
plait_status init(const plait_runtime *runtime, const plait_plugin *self) {
  plait_thread *thread = runtime->thread();
  engine.runtime = runtime;
  uint32_t bit = 0;
  plait_status s = runtime->layer(thread, "tape", 32, &bit);
  if (s < 0) return s;
  engine.bit = uint64_t(1) << bit;
  // every operator, also those defined later
  s = runtime->implement(thread, nullptr, PLAIT_SLOT_LAYER + bit, layer, nullptr, self, nullptr);
  if (s < 0) return s;
  static const plait_engine table{PLAIT_HEADER(plait_engine),
                                  "plait_tape",
                                  nullptr,
                                  bit,
                                  enabled,
                                  set_enabled,
                                  set_requires_grad,
                                  leaf,
                                  get_grad,
                                  set_grad,
                                  node,
                                  node_name,
                                  retain_grad,
                                  detach_,
                                  backward,
                                  record};
  return runtime->provide(thread, "engine", 0, &table.h, self, nullptr);
}
// [/plugin]

}  // namespace
}  // namespace plait::tape

extern "C" __attribute__((visibility("default"))) const plait_plugin plait_plugin_v1{
    PLAIT_HEADER(plait_plugin), "plait_tape", "0.1.0", 0, plait::tape::init, nullptr};
