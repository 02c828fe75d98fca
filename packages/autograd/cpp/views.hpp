// Writes into views: the base's history then says "the old base, with this place replaced", and
// every other view of the base finds its own history from the base's when it is next used.
#pragma once
#include "history.hpp"

namespace plait::autograd {

// The history of a view of a base: its elements taken out of the base.
Ref<Node> strided_node(plait_thread *, plait_tensor *view, plait_tensor *base);
// What the call within an assigned node wrote, as a part of the base that it left.
Ref<Node> written_part(ViewNode *assigned);
// Refuses what write_view could not record, before anything is written.
void check_writable(plait_thread *, const plait_tensor *view);
// An operator has written `view`: rebases the base's history, then the view's.
void write_view(plait_thread *, plait_tensor *view, Ref<Node> writer, uint32_t index);

// A gradient that is laid out like the base, and the view's place in it. Both track their common
// memory.
class Placed {
 public:
  Placed(plait_thread *, const ViewNode *, bool zeroed);
  Tensor whole() const;
  Tensor part(
      const int64_t *shape) const;  // with sizes of 1 where elements of the view share a place
  void add(const Tensor &, const int64_t *shape);  // to a part whose elements share their places

 private:
  plait_thread *thread_;
  const ViewNode *node_;
  Tensor memory_;
  int64_t first_;  // of the base's first element in memory
};

// The vjp of a strided node.
Tensor spread(plait_thread *, const ViewNode *, const Tensor &gradient);

}  // namespace plait::autograd
