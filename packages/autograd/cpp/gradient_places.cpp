#include "gradient_places.hpp"

#include "accumulate.hpp"

namespace plait::autograd {
namespace {

constexpr uint64_t least = 1024;  // bytes; smaller gradients are copied

char *begin(const plait_tensor *t) { return static_cast<char *>(t->dl.data); }

}  // namespace

void set_place(Leaf *leaf, Tensor place) {
  plait_tensor *old;
  {
    const Spin guard(leaf->spin);
    old = std::exchange(leaf->place, place.release());
  }
  plait_release(old);
}

Tensor place_of(Leaf *leaf) {
  const Spin guard(leaf->spin);
  return Tensor::share(leaf->place);
}

bool lies_at(const plait_tensor *place, const plait_tensor *g) {
  if (g->dl.data != place->dl.data || g->storage != place->storage || g->slot[3] ||
      g->dl.ndim != place->dl.ndim || !same(g->dl.dtype, place->dl.dtype))
    return false;
  for (int32_t i = 0; i < g->dl.ndim; i++)
    if (g->dl.shape[i] != place->dl.shape[i] || g->dl.strides[i] != place->dl.strides[i])
      return false;
  return true;
}

GradientPlaces::GradientPlaces(plait_thread *thread, const Node *n, PassMarks &marks)
    : thread_(thread) {
  for (uint32_t i = 0; i < n->n_edges && n_ < most; i++) {
    Node *to = n->edges[i].node;
    if (!to || to->kind != Kind::leaf) continue;
    auto *leaf = static_cast<Leaf *>(to);
    if (!__atomic_load_n(&leaf->place, __ATOMIC_RELAXED) || is_frozen(leaf)) continue;
    if (marks.buffers(leaf)[0] || Tensor::steal(leaf_grad(leaf))) continue;
    bool again = false;
    for (uint32_t j = 0; j < i; j++) again |= n->edges[j].node == to;
    Tensor place = place_of(leaf);
    if (again || !place || place.device().device_type != kDLCPU) continue;
    const uint64_t nbytes = uint64_t(place.numel()) * uint64_t(itemsize(place.dtype()));
    if (nbytes < least || reinterpret_cast<uintptr_t>(place->dl.data) % 64 ||
        !is_contiguous(place.get()))
      continue;
    Entry &e = entries_[n_++];
    e.place = {place->storage, place->dl.data, nbytes, nullptr};
    e.edge = i;
    e.tensor = std::move(place);
  }
}

void GradientPlaces::offer() {
  for (uint32_t i = 0; i < n_; i++)
    entries_[i].place.next = i + 1 < n_ ? &entries_[i + 1].place : nullptr;
  before_ = std::exchange(thread_->slot[2], n_ ? &entries_[0].place : nullptr);
  offered_ = true;
}

void GradientPlaces::withdraw() {
  if (std::exchange(offered_, false)) thread_->slot[2] = before_;
}

void GradientPlaces::clear(Gradients &result) {
  for (uint32_t k = 0; k < n_; k++) {
    const Entry &e = entries_[k];
    const char *low = begin(e.tensor.get()), *high = low + e.place.nbytes;
    for (uint32_t i = 0; i < result.size(); i++) {
      const plait_tensor *g = result[i];
      if (!g || i == e.edge || g->storage != e.place.storage) continue;
      if (begin(g) >= low && begin(g) < high)
        result.put(i, clone(thread_, Tensor::share(result[i])));
    }
  }
}

}  // namespace plait::autograd
