// Views, and writes into them. A write into a view is a change of its base: "the old base, with
// these elements replaced", which is a node with two edges. Other views of the base have a history
// from before the write; when one is used next, it gets a new one, "these elements of the base".
#include <algorithm>

#include "tape.hpp"

namespace plait::tape {
namespace {

[[noreturn]] void refuse(const plait_tensor *view, const char *reason) {
  raise(engine.runtime->thread(), PLAIT_NOT_IMPLEMENTED, "plait_tape",
        "a view of shape %s was written in place, or its base was since it was made, and %s; "
        "clone() the view before the write",
        shape_text(view).c_str(), reason);
}

// Whether no two elements share an address.
bool distinct(const plait_tensor *t) {
  std::vector<std::pair<int64_t, int64_t>> steps;  // and sizes
  for (int32_t i = 0; i < t->dl.ndim; i++)
    if (t->dl.shape[i] > 1) steps.emplace_back(std::abs(t->dl.strides[i]), t->dl.shape[i]);
  std::sort(steps.begin(), steps.end());
  int64_t span = 0;
  for (const auto &[step, size] : steps) {
    if (step <= span) return numel(t) == 0;
    span += step * (size - 1);
  }
  return true;
}

// The lowest and the highest element, counted from the first one.
std::pair<int64_t, int64_t> bounds(const plait_tensor *t) {
  int64_t low = 0, high = 0;
  for (int32_t i = 0; numel(t) && i < t->dl.ndim; i++)
    (t->dl.strides[i] < 0 ? low : high) += (t->dl.shape[i] - 1) * t->dl.strides[i];
  return {low, high};
}

}  // namespace

// [window]
std::shared_ptr<Window> window_of(const plait_tensor *view) {
  const plait_tensor *base = view->base;
  const int64_t bytes =
      static_cast<const char *>(view->dl.data) - static_cast<const char *>(base->dl.data);
  auto w = std::make_shared<Window>();
  w->view = layout_of(view);
  w->strides.assign(view->dl.strides, view->dl.strides + view->dl.ndim);
  w->base = layout_of(base);
  w->base_strides.assign(base->dl.strides, base->dl.strides + base->dl.ndim);
  w->offset = bytes / itemsize(base->dl.dtype);
  const auto [low, high] = bounds(view);
  const auto [lowest, highest] = bounds(base);
  if (!same(view->dl.dtype, base->dl.dtype)) refuse(view, "it has another dtype than its base");
  if (view->storage != base->storage) refuse(view, "one of them was pointed at other memory");
  if (!distinct(view) || !distinct(base)) refuse(view, "elements share their memory");
  if (lowest < 0 || (numel(view) && (w->offset + low < 0 || w->offset + high > highest)))
    refuse(view, "its elements are not all within those of the base");
  return w;
}
// [/window]

// [rebase]
uint64_t base_sequence(const plait_tensor *t) {
  const History *h = t->base ? history(t->base) : nullptr;
  return h && h->output.node ? h->output.node->sequence : 0;
}

// The node of a view: some elements of its base.
NodeOutput read_node(plait_thread *thread, const plait_tensor *view) {
  const Ref<Node> node = new_node("ViewBackward");
  node->edges.push_back({output_of(thread, view->base), layout_of(view->base)});
  node->outputs.push_back(layout_of(view));
  node->window = window_of(view);
  return {node, 0};
}

// The node of a base, of which `view` was just written by the node at `writer`.
void write_base(plait_tensor *view, NodeOutput old, const NodeOutput &writer) {
  plait_tensor *base = view->base;
  const Ref<Node> node = new_node("CopySlices");
  node->edges.push_back({std::move(old), layout_of(base)});
  node->edges.push_back({writer, layout_of(view)});
  node->outputs.push_back(layout_of(base));
  node->window = window_of(view);
  set_history(base, {node, 0});
}
// [/rebase]

// [output]
NodeOutput output_of(plait_thread *thread, plait_tensor *t) {
  check_ours(t);
  static std::mutex renewing;  // a base has no base: the lock is taken once
  std::unique_lock<std::mutex> lock(renewing, std::defer_lock);
  if (t->base) lock.lock();
  const History *h = history(t);
  const bool cut = t->base && (t->flags & PLAIT_TENSOR_CUT);  // a function's output, or part of one
  if (!t->base ||
      (base_sequence(t) == (h ? h->base : 0) && !(cut && h && h->version != version(t))))
    return h ? h->output : NodeOutput{};
  if (cut || (h && !h->base) || !has_bit(t->base) || is_leaf(t->base))
    refuse(t, "its history does not follow from the base's");
  set_history(t, read_node(thread, t));
  return history(t)->output;
}
// [/output]

}  // namespace plait::tape
