#include "accumulate.hpp"

#include "gradient_places.hpp"

#include <plait/sparse.h>

namespace plait::autograd {
namespace {

bool is_sparse(const plait_tensor *t) { return t->slot[3] != nullptr; }
// Whether there is no other reference to a sparse gradient, so that it may be written.
bool is_own(const plait_tensor *t) {
  const auto *sparse = static_cast<const plait_sparse *>(t->slot[3]);
  return __atomic_load_n(&t->o.refs, __ATOMIC_ACQUIRE) == 1 && !requires_grad(sparse->values);
}

// The gradient that the leaf stores: the same tensor if nothing else owns its bytes and it has the
// leaf's layout, else a copy.
Tensor owned(plait_thread *thread, const Leaf *leaf, Tensor g, bool record) {
  if (is_sparse(g.get())) return record || is_own(g.get()) ? g : clone(thread, g);
  const Layout &l = leaf->layout;
  const int64_t *strides = l.shape + l.ndim;
  const bool dense = distinct(l.ndim, l.shape, strides);
  bool alike = fits(l, g.get());
  for (int32_t i = 0; alike && dense && i < l.ndim; i++)
    alike = l.shape[i] <= 1 || g.stride(i) == strides[i];
  if (!dense) alike = is_contiguous(g.get());
  // a tensor that a function returned, without its history
  if (!record && requires_grad(g.get())) {
    Tensor plain;
    check(engine.runtime->tensor_alias(thread, g.get(), plain.out()));
    g = std::move(plain);
  }
  if (alike && exclusive(g.get())) return g;
  if (record || (alike && dense && is_contiguous(g.get()))) return clone(thread, g);
  // a leaf that is a view may have gaps between its elements: then the gradient has C order
  int64_t count = 1, span = 1;
  bool forward = dense;
  for (int32_t i = 0; i < l.ndim; i++) {
    count *= l.shape[i];
    span += (l.shape[i] - 1) * strides[i];
    forward &= strides[i] >= 0;
  }
  Tensor result;
  check(engine.runtime->tensor_new(thread, g.dtype(), g.ndim(), g.shape(),
                                   forward && span == count ? strides : nullptr, g.device(),
                                   result.out()));
  copy_into(thread, result, g);
  return result;
}

uint64_t version_of(const plait_tensor *t) {
  return __atomic_load_n(&t->storage->version, __ATOMIC_ACQUIRE);
}

}  // namespace

bool writable(const plait_tensor *t) {
  return !requires_grad(t) && !is_sparse(t) && exclusive(t) &&
         distinct(t->dl.ndim, t->dl.shape, t->dl.strides);
}

Tensor sum(plait_thread *thread, Tensor a, Tensor b, bool record) {
  if (record || has_own_bytes(a.get()) != has_own_bytes(b.get())) return add(thread, a, b);
  if (!writable(a.get())) std::swap(a, b);
  if (!writable(a.get())) return add(thread, a, b);
  const uint64_t before = version_of(a.get());
  add_into(thread, a, b);
  restore_version(a->storage, before);
  return a;
}

plait_tensor *leaf_grad(Leaf *leaf) {
  const Spin guard(leaf->spin);
  if (leaf->grad) plait_retain(leaf->grad);
  return leaf->grad;
}

void set_leaf_grad(Leaf *leaf, Tensor gradient) {
  plait_tensor *old;
  {
    const Spin guard(leaf->spin);
    old = std::exchange(leaf->grad, gradient.release());
  }
  plait_release(old);
}

void add_to_leaf(plait_thread *thread, Leaf *leaf, Tensor g, bool record) {
  // Only passes wait for each other here, and they hold no other lock, not even the GIL.
  const std::lock_guard<ProcessLock> adding(leaf->accumulating);
  const Tensor old = Tensor::steal(leaf_grad(leaf));
  if (!old) {
    const Tensor place = record || is_sparse(g.get()) ? Tensor() : place_of(leaf);
    if (!place || !fits(leaf->layout, place.get()))
      return set_leaf_grad(leaf, owned(thread, leaf, std::move(g), record));
    if (!lies_at(place.get(), g.get())) copy_into(thread, place, g);
    return set_leaf_grad(leaf, place);
  }
  if (record || requires_grad(old.get()) || is_sparse(old.get()) ||
      !distinct(old.ndim(), old.shape(), &old->dl.strides[0]) ||
      (old->storage->flags & PLAIT_STORAGE_READONLY))
    return set_leaf_grad(leaf, add(thread, old, g));
  add_into(thread, old, g);  // other owners of the gradient see the sum
}

}  // namespace plait::autograd
