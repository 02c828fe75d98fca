// The history of a tensor: slot[0], the layer's bit, and views whose base was written to.
#pragma once
#include "engine.hpp"

namespace plait::autograd {

// The tensor that a view was made from (never itself a tracked view), or NULL.
inline plait_tensor *base_of(const plait_tensor *t) { return t->base; }

inline bool has_bit(const plait_tensor *t) {
  return __atomic_load_n(&t->layers, __ATOMIC_RELAXED) & engine.bit;
}
inline void set_bits(plait_tensor *t, uint64_t bits) {
  __atomic_store_n(&t->layers, bits, __ATOMIC_RELAXED);
}
inline void set_bit(plait_tensor *t) {
  set_bits(t, __atomic_load_n(&t->layers, __ATOMIC_RELAXED) | engine.bit);
}
inline void clear_bit(plait_tensor *t) {
  set_bits(t, __atomic_load_n(&t->layers, __ATOMIC_RELAXED) & ~engine.bit);
}

// A view whose history does not follow from its base's: made while nothing was recorded, or
// returned by a function of the host language. Recorded operators must not write to it.
inline bool is_cut(const plait_tensor *t) { return t->base && (t->flags & PLAIT_TENSOR_CUT); }

// slot[0] where another thread may replace it at the same time: on hosts without a global lock it
// is read and replaced under a lock, which is held for a few instructions. Those with a global lock
// need none.
class SlotGuard {
 public:
  explicit SlotGuard(const plait_tensor *t) noexcept {
    if (__builtin_expect(!engine.free_threads, 1)) return;
    word_ = lock_of(t);
    take_word(*word_);
  }
  ~SlotGuard() {
    if (word_) give_word(*word_);
  }
  SlotGuard(const SlotGuard &) = delete;
  SlotGuard &operator=(const SlotGuard &) = delete;

 private:
  static uint32_t *lock_of(const plait_tensor *) noexcept;
  uint32_t *word_ = nullptr;
};

inline bool has_leaf(const plait_tensor *t) noexcept {
  const SlotGuard guard(t);
  return as_leaf(t->slot[0]);
}

// A view of a base that required grad only later: the view's own bit was never set.
inline bool overtaken(const plait_tensor *t) {
  const plait_tensor *base = base_of(t);
  return base && has_bit(base) && !has_leaf(base) && !is_cut(t);
}

inline bool requires_grad(const plait_tensor *t) { return has_bit(t) || overtaken(t); }

inline bool is_leaf(const plait_tensor *t) {
  return !requires_grad(t) || (has_bit(t) && has_leaf(t));
}

struct GradientEdge {
  Ref<Node> node;
  uint32_t index = 0;
};

// The gradient edge of the tensor; makes the leaf's node, or a view's new one, if needed.
GradientEdge history_of(plait_thread *, plait_tensor *);
// The tensor becomes output `index` of the node.
void set_history(plait_tensor *, Ref<Node> node, uint32_t index);
// Drops the history; the gradient of a leaf stays.
void clear_history(plait_tensor *) noexcept;
Ref<Leaf> leaf_of(plait_tensor *);  // made if there is none
Ref<Leaf> known_leaf(const plait_tensor *);  // empty if there is none

// A view of `base` that tracks it: histories follow from the base's.
Tensor view_of(plait_thread *, const Tensor &base, DType dtype, int32_t ndim, const int64_t *shape,
               const int64_t *strides, int64_t bytes);

}  // namespace plait::autograd
