// Writes to views: the base's history becomes "the old base, with this part replaced", and every
// other view of the base derives its history from the base's at its next use.
#pragma once
#include "history.hpp"

namespace plait::autograd {

// The history of a view of a base: the view's elements are taken from the base.
Ref<Node> strided_node(plait_thread *, plait_tensor *view, plait_tensor *base);
// The part that the call within an assigned node wrote, as a view of the new base.
Ref<Node> written_part(plait_thread *, ViewNode *assigned);
// Raises an error for a write that write_view could not record, before the write.
void check_writable(plait_thread *, const plait_tensor *view);
// After an operator wrote to `view`: updates the base's history, then the view's.
void write_view(plait_thread *, plait_tensor *view, Ref<Node> writer, uint32_t index);

// A gradient with the base's layout, and the part of it that belongs to a view. Both are views of
// one memory. Where its elements are not in its own bytes, as those of a batched tensor of `vmap`,
// operators read and replace the part instead.
class BaseGradient {
 public:
  BaseGradient(plait_thread *, const ViewNode *, bool zeroed);
  Tensor whole() const;
  void set_whole(const Tensor &);
  // with sizes of 1 for dimensions in which the view's elements share an address
  Tensor part(const int64_t *shape) const;
  void set_part(const Tensor &, const int64_t *shape);
  void add(const Tensor &, const int64_t *shape);  // to a part whose elements share addresses

 private:
  Window whole_window() const;
  Window part_window(const int64_t *shape) const;
  Tensor at(const Window &) const;
  void set(const Window &, const Tensor &);

  plait_thread *thread_;
  const ViewNode *node_;
  Tensor memory_;
  int64_t first_;  // of the base's first element in memory
};

// The vjp of a strided node.
Tensor spread(plait_thread *, const ViewNode *, const Tensor &gradient);

}  // namespace plait::autograd
