#include "history.hpp"

#include "extra.hpp"
#include "views.hpp"

namespace plait::autograd {
namespace {

// Renewing a view's history replaces a pointer that another thread may be reading. All views share
// a few locks.
ForkMutex view_locks[16];
ForkMutex &view_lock(const plait_tensor *t) {
  return view_locks[(reinterpret_cast<uintptr_t>(t) / sizeof *t) % 16];
}

struct alignas(64) SlotLock {
  uint32_t word;
};
SlotLock slot_locks[64];

// Under the guard of the slot.
Node *node_in(const plait_tensor *t, uint32_t *index) {
  if (is_node(t->slot[0])) {
    *index = 0;
    return static_cast<Node *>(t->slot[0]);
  }
  const History *h = as_history(t->slot[0]);
  if (h) *index = uint32_t(h->index);
  return h ? h->node : nullptr;
}

// Updates shape and strides of the leaf, which `p.data = q` may have changed.
void describe(Leaf *leaf, const plait_tensor *t) {
  const int32_t n = t->dl.ndim;
  const size_t bytes = size_t(n) * sizeof(int64_t);
  Layout &l = leaf->layout;
  const auto known = [&] {
    return fits(l, t) && (!n || std::memcmp(l.shape + n, t->dl.strides, bytes) == 0);
  };
  if (known()) return;
  const Spin guard(leaf->spin);
  if (known()) return;
  if (l.shape) deallocate(l.shape, 2 * size_t(l.ndim) * sizeof(int64_t));
  l.shape = nullptr;
  l.ndim = 0;
  auto *room = n ? static_cast<int64_t *>(allocate(2 * bytes)) : nullptr;
  lay_out(l, room, t);
  if (n) std::memcpy(room + n, t->dl.strides, bytes);
}

bool stale(const plait_tensor *t) {
  if (is_cut(t) ? !has_bit(t) || has_leaf(t) : !overtaken(t)) return false;
  if (!has_bit(t)) return true;
  const SlotGuard guard(t);
  uint32_t index;
  const Node *n = node_in(t, &index);
  if (!n) return false;
  const uint64_t seen =
      n->kind == Kind::host ? static_cast<const HostNode *>(n)->versions[index] : n->view_version;
  return seen != history_version(t);
}

GradientEdge edge_in(const plait_tensor *t) {
  const SlotGuard guard(t);
  uint32_t index = 0;
  Node *n = node_in(t, &index);
  return {Ref<Node>::share(n), index};
}

// Fails if a view whose history is stale cannot get a new one.
void check_renewable(plait_thread *thread, const plait_tensor *t) {
  if (is_cut(t))
    raise(thread, PLAIT_ERROR, "autograd",
          "a tensor of shape %s shares its memory with one that was later written in place, and "
          "one of them was returned by a Function's forward: such a write cannot be recorded; "
          "return a clone() from forward, or clone() before the write",
          shape_text(t).c_str());
  if (has_leaf(t) && has_bit(t))
    raise(thread, PLAIT_ERROR, "autograd",
          "a leaf of shape %s is a view of a tensor that was later written by an operator with "
          "history, so its value is a result now; use detach().clone().requires_grad_() to make "
          "a leaf from a view",
          shape_text(t).c_str());
}

// The node is made, and the old one freed, without the lock: both may wait for the host's global
// lock, and the thread that has it may wait for this one.
GradientEdge renewed(plait_thread *thread, plait_tensor *t) {
  GradientEdge old;
  {
    const std::lock_guard<ForkMutex> lock(view_lock(t));
    old = edge_in(t);
    if (!stale(t)) return old;
    check_renewable(thread, t);
  }
  Ref<Node> result = strided_node(thread, t, base_of(t));
  const std::lock_guard<ForkMutex> lock(view_lock(t));
  if (stale(t)) set_history(t, std::move(result), 0);  // another thread may have done it meanwhile
  return edge_in(t);
}

// retain_grad is kept when an in-place operator gives the tensor a new history.
void keep_cell(const History *from, History *to) {
  move_cell(from->node, to->node, from->cell, uint32_t(to->index));
  to->cell = from->cell;
  plait_retain(to->cell);
}

}  // namespace

uint32_t *SlotGuard::lock_of(const plait_tensor *t) noexcept {
  return &slot_locks[reinterpret_cast<uintptr_t>(t) / sizeof *t % 64].word;
}

Ref<Leaf> known_leaf(const plait_tensor *t) {
  const SlotGuard guard(t);
  return Ref<Leaf>::share(as_leaf(t->slot[0]));
}

Ref<Leaf> leaf_of(plait_tensor *t) {
  if (Ref<Leaf> known = known_leaf(t)) return known;
  auto result = Ref<Leaf>::steal(new_leaf(t));
  describe(result.get(), t);
  plait_object *old = nullptr;
  {
    const SlotGuard guard(t);
    // another thread may have made it meanwhile
    if (Leaf *leaf = as_leaf(t->slot[0])) return Ref<Leaf>::share(leaf);
    old = static_cast<plait_object *>(t->slot[0]);
    plait_retain(result.get());
    t->slot[0] = result.get();
  }
  plait_release_object(old);
  return result;
}

GradientEdge history_of(plait_thread *thread, plait_tensor *t) {
  if (Ref<Leaf> leaf = known_leaf(t); leaf && has_bit(t) && !overtaken(t)) {
    describe(leaf.get(), t);
    return {Ref<Node>::steal(leaf.release()), 0};
  }
  return base_of(t) ? renewed(thread, t) : edge_in(t);
}

void set_history(plait_tensor *t, Ref<Node> node, uint32_t index) {
  plait_object *old = nullptr;
  {
    const SlotGuard guard(t);
    old = static_cast<plait_object *>(t->slot[0]);
    const History *before = as_history(old);
    if (index == 0 && !(before && before->cell)) {
      t->slot[0] = node.release();
    } else {
      auto *h = static_cast<History *>(allocate(sizeof(History)));
      *h = {{1, &history_type}, node.release(), nullptr, index};
      t->slot[0] = h;
      if (before && before->cell) keep_cell(before, h);
    }
    set_bit(t);
  }
  plait_release_object(old);
}

void clear_history(plait_tensor *t) noexcept {
  plait_object *old = nullptr;
  {
    const SlotGuard guard(t);
    clear_bit(t);
    if (Leaf *leaf = as_leaf(t->slot[0])) return freeze(leaf, true);
    old = static_cast<plait_object *>(std::exchange(t->slot[0], nullptr));
  }
  plait_release_object(old);
}

Tensor view_of(plait_thread *thread, const Tensor &base, DType dtype, int32_t ndim,
               const int64_t *shape, const int64_t *strides, int64_t bytes) {
  Tensor view;
  char *data = base.data<char>();
  if (data) data += bytes;
  check(engine.runtime->tensor_on(thread, base->storage, data, dtype, ndim, shape, strides,
                                  view.out()));
  plait_retain(base.get());
  view->base = base.get();
  view->flags |= PLAIT_TENSOR_VIEW;
  return view;
}

}  // namespace plait::autograd
