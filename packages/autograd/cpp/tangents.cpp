#include "tangents.hpp"

#include <vector>

namespace plait::autograd {
namespace {

struct Dual {
  plait_object o;
  plait_tensor *tangent;
  uint64_t level;
};

void drop_dual(plait_object *o) {
  auto *d = reinterpret_cast<Dual *>(o);
  plait_release(d->tangent);
  delete d;
}
const plait_type dual_type{PLAIT_HEADER(plait_type), "dual", drop_dual};

Dual *dual_of(const plait_thread *thread, const plait_tensor *t) {
  auto *d = static_cast<Dual *>(t->slot[2]);
  return d && d->o.type == &dual_type && d->level == level_of(thread) ? d : nullptr;
}

bool same_layout(const plait_tensor *a, const plait_tensor *b) {
  for (int32_t i = 0; i < a->dl.ndim; i++)
    if (a->dl.shape[i] != 1 && a->dl.strides[i] != b->dl.strides[i]) return false;
  return true;
}

// Zeros in the strides of `like`. A root whose elements overlap, or lie backwards, has no such.
Tensor zeros_like(plait_thread *thread, const plait_tensor *like) {
  Tensor made;
  check(engine.runtime->tensor_new(
      thread, like->dl.dtype, like->dl.ndim, like->dl.shape,
      distinct(like->dl.ndim, like->dl.shape, like->dl.strides) ? like->dl.strides : nullptr,
      like->dl.device, made.out()));
  const Tensor zero = zeros(thread, like->dl.dtype, like->dl.device, nullptr, 0);
  copy_into(thread, made, zero);
  return made;
}

// Whether `whole` is the complex dtype whose parts have the dtype `part`.
bool complex_of(DType part, DType whole) {
  return whole.code == kDLComplex && part.code == kDLFloat && part.bits * 2 == whole.bits &&
         part.lanes == whole.lanes;
}

// The place of a view within the tangent of its base.
Tensor place_in(plait_thread *thread, const plait_tensor *view, const Tensor &tangent) {
  const plait_tensor *base = view->base;
  if (!same_layout(base, tangent.get()))
    raise(thread, PLAIT_NOT_IMPLEMENTED, "forward",
          "a view of a tensor of shape %s whose elements overlap or lie backwards has no tangent; "
          "clone() that tensor first",
          shape_text(base).c_str());
  const DType own = view->dl.dtype, whole = base->dl.dtype;
  const bool parts = complex_of(own, whole), pairs = complex_of(whole, own);
  if (!same(own, whole) && !parts && !pairs)
    raise(thread, PLAIT_NOT_IMPLEMENTED, "forward",
          "a view in another dtype (%s of %s) has no tangent", name(own), name(whole));
  std::vector<int64_t> shape(view->dl.shape, view->dl.shape + view->dl.ndim),
      strides(view->dl.strides, view->dl.strides + view->dl.ndim);
  int64_t offset =
      view->dl.data
          ? (static_cast<const char *>(view->dl.data) - static_cast<const char *>(base->dl.data)) /
                itemsize(own)
          : 0;
  static const Operator as_strided(engine.runtime, "as_strided"),
      view_as_real(engine.runtime, "view_as_real"),
      view_as_complex(engine.runtime, "view_as_complex");
  if (pairs) {  // real and imaginary part of an element lie side by side
    for (int64_t &stride : strides) stride *= 2;
    offset *= 2;
    shape.push_back(2);
    strides.push_back(1);
  }
  const Tensor from = parts ? view_as_real(thread, tangent) : tangent;
  const Tensor placed = as_strided(thread, from, ints(shape.data(), shape.size()),
                                   ints(strides.data(), strides.size()), offset);
  return pairs ? view_as_complex(thread, placed) : placed;
}

}  // namespace

uint64_t level_of(const plait_thread *thread) {
  return reinterpret_cast<uint64_t>(thread->slot[1]);
}

Tensor tangent_of(plait_thread *thread, plait_tensor *t) {
  if (const Dual *d = dual_of(thread, t)) return Tensor::share(d->tangent);
  const Dual *whole = t->base ? dual_of(thread, t->base) : nullptr;
  return whole ? place_in(thread, t, Tensor::share(whole->tangent)) : Tensor();
}

void set_tangent(plait_thread *thread, plait_tensor *t, Tensor tangent) {
  auto *before = static_cast<plait_object *>(std::exchange(t->slot[2], nullptr));
  plait_release_object(before);
  if (!tangent) return;
  if (!same(tangent.dtype(), t->dl.dtype)) tangent = cast(thread, tangent, t->dl.dtype);
  if (!same_layout(t, tangent.get())) {
    const Tensor laid = zeros_like(thread, t);
    copy_into(thread, laid, tangent);
    tangent = laid;
  }
  t->slot[2] = new Dual{{1, &dual_type}, tangent.release(), level_of(thread)};
}

void write_tangent(plait_thread *thread, plait_tensor *target, const Tensor &tangent) {
  plait_tensor *root = target->base;
  if (!root) return set_tangent(thread, target, tangent);
  const Dual *d = dual_of(thread, root);
  if (!d && !tangent) return;
  // tangents are shared until one of them is written
  Tensor whole = !d                      ? zeros_like(thread, root)
                 : exclusive(d->tangent) ? Tensor::share(d->tangent)
                                         : clone(thread, Tensor::share(d->tangent));
  copy_into(thread, place_in(thread, target, whole),
            tangent ? tangent : zeros(thread, whole.dtype(), whole.device(), nullptr, 0));
  set_tangent(thread, root, std::move(whole));
}

}  // namespace plait::autograd
