// Nodes, and the histories of tensors, which lead to them.
#include <atomic>

#include "tape.hpp"

namespace plait::tape {

Engine engine;

namespace {

// [destroy]
// A node may hold the last reference to the nodes before it. A long chain would be destroyed by
// recursion, one stack frame a node, so the nodes wait in a list of the thread instead.
void destroy(plait_object *o) {
  static thread_local Node *waiting = nullptr;
  static thread_local bool busy = false;
  auto *node = reinterpret_cast<Node *>(o);
  node->next = waiting;
  waiting = node;
  if (busy) return;
  busy = true;
  while (Node *last = waiting) {
    waiting = last->next;
    delete last;
  }
  busy = false;
}
// [/destroy]
const plait_type node_type{PLAIT_HEADER(plait_type), "tape node", destroy};
const plait_type history_type{PLAIT_HEADER(plait_type), "tape history",
                              [](plait_object *o) { delete reinterpret_cast<History *>(o); }};

}  // namespace

Node *as_node(plait_object *o) {
  return o && o->type == &node_type ? reinterpret_cast<Node *>(o) : nullptr;
}

Ref<Node> new_node(std::string name) {
  static std::atomic<uint64_t> time{0};
  auto *node = new Node;
  node->o = {1, &node_type};
  node->sequence = ++time;
  node->name = std::move(name);
  return Ref<Node>::steal(node);
}

// [cell]
Tensor Cell::read() {
  const std::lock_guard<std::mutex> lock(mutex_);
  return gradient_;
}

void Cell::write(Tensor gradient) {  // the old gradient is freed after the lock
  const std::lock_guard<std::mutex> lock(mutex_);
  std::swap(gradient_, gradient);
}

void Cell::add(plait_thread *thread, const Tensor &gradient) {
  static const Operator add(engine.runtime, "add"), clone(engine.runtime, "clone"),
      contiguous(engine.runtime, "contiguous");
  for (;;) {  // no operator runs under the lock: if another pass was faster, add to its sum
    const Tensor old = read();
    Tensor sum = old                             ? add(thread, old, gradient)
                 : is_contiguous(gradient.get()) ? clone(thread, gradient)
                                                 : contiguous(thread, gradient);
    const std::lock_guard<std::mutex> lock(mutex_);
    if (gradient_.get() != old.get()) continue;
    std::swap(gradient_, sum);
    return;
  }
}
// [/cell]

History *history(const plait_tensor *t) {
  auto *o = static_cast<plait_object *>(t->slot[0]);
  return o && o->type == &history_type ? reinterpret_cast<History *>(o) : nullptr;
}

void check_ours(const plait_tensor *t) {
  if (t->slot[0] && !history(t))
    raise(engine.runtime->thread(), PLAIT_ERROR, "plait_tape",
          "a tensor of shape %s has the history of another engine, which was in force before; "
          "detach() it first",
          shape_text(t).c_str());
}

void put(plait_tensor *t, History result) {
  check_ours(t);
  result.o = {1, &history_type};
  auto *old = static_cast<plait_object *>(t->slot[0]);
  t->slot[0] = new History(std::move(result));
  plait_release_object(old);
}

void set_history(plait_tensor *t, NodeOutput output) {
  put(t, {{}, std::move(output), base_sequence(t), version(t), nullptr});
  t->layers |= engine.bit;
}

namespace {
// A view that has no history of its own, but whose base was written since by something with one.
bool overtaken(const plait_tensor *t) {
  return t->base && !(t->flags & PLAIT_TENSOR_CUT) && differentiable(t->dl.dtype) &&
         has_bit(t->base) && !is_leaf(t->base);
}
}  // namespace

bool requires_grad(const plait_tensor *t) { return has_bit(t) || overtaken(t); }

bool is_leaf(const plait_tensor *t) {
  if (!has_bit(t)) return !overtaken(t);
  const History *h = history(t);
  return h && h->output.node && h->output.node->leaf;
}

Layout layout_of(const plait_tensor *t) {
  return {t->dl.dtype, t->dl.device, {t->dl.shape, t->dl.shape + t->dl.ndim}};
}

Tensor alias(plait_thread *thread, const Tensor &t) {
  Tensor result;
  check(engine.runtime->tensor_alias(thread, t.get(), result.out()));
  return result;
}

}  // namespace plait::tape
