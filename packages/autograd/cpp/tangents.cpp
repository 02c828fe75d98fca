#include "tangents.hpp"

#include <atomic>
#include <utility>

namespace plait::autograd {
namespace {

const plait_type level_type{PLAIT_HEADER(plait_type), "dual level",
                            [](plait_object *o) { delete reinterpret_cast<Level *>(o); }};

}  // namespace

struct Dual {
  plait_object o;
  plait_tensor
      *tangent;  // NULL: a view without a tangent, even if its base has one, or the level has ended
  Level *level;  // owned
  Dual *next = nullptr, **back = nullptr;  // in the level's list, under its lock
  uint64_t version = 0;  // of the storage, when a view got a tangent of its own
  bool alike = true;  // whether the tangent has the strides of the tensor
};

namespace {

void drop_dual(plait_object *o) {
  auto *d = reinterpret_cast<Dual *>(o);
  plait_tensor *tangent;
  {
    const std::lock_guard<ProcessLock> guard(d->level->lock);
    tangent = std::exchange(d->tangent, nullptr);
    if (d->back) *d->back = d->next;
    if (d->back && d->next) d->next->back = d->back;
  }
  plait_release(tangent);
  plait_release(d->level);
  delete d;
}
const plait_type dual_type{PLAIT_HEADER(plait_type), "dual", drop_dual};

Dual *new_dual(Level *level, Tensor tangent) {
  auto *d = new Dual{{1, &dual_type}, tangent.release(), level};
  plait_retain(level);
  const std::lock_guard<ProcessLock> guard(level->lock);
  d->next = level->first;
  d->back = &level->first;
  if (d->next) d->next->back = &d->next;
  level->first = d;
  return d;
}

Dual *dual_of(const plait_thread *thread, const plait_tensor *t) {
  auto *d = static_cast<Dual *>(t->slot[2]);
  return d && d->o.type == &dual_type && d->level == level_of(thread) ? d : nullptr;
}

void drop_packed(plait_object *o) {
  auto *p = reinterpret_cast<Packed *>(o);
  plait_release(p->what);
  plait_release(p->dual);
  delete p;
}
const plait_type packed_type{PLAIT_HEADER(plait_type), "packed dual", drop_packed};

bool same_shape(const plait_tensor *a, const plait_tensor *b) {
  bool same = a->dl.ndim == b->dl.ndim;
  for (int32_t i = 0; same && i < a->dl.ndim; i++) same = a->dl.shape[i] == b->dl.shape[i];
  return same;
}

bool same_layout(const plait_tensor *a, const plait_tensor *b) {
  if (!same_shape(a, b)) return false;
  for (int32_t i = 0; i < a->dl.ndim; i++)
    if (a->dl.shape[i] != 1 && a->dl.strides[i] != b->dl.strides[i]) return false;
  return true;
}

// Zeros with the strides of `like`; empty for a root with overlapping elements or negative strides.
Tensor zeros_like(plait_thread *thread, const plait_tensor *like) {
  Tensor result;
  check(engine.runtime->tensor_new(
      thread, like->dl.dtype, like->dl.ndim, like->dl.shape,
      distinct(like->dl.ndim, like->dl.shape, like->dl.strides) ? like->dl.strides : nullptr,
      like->dl.device, result.out()));
  const Tensor zero = zeros(thread, like->dl.dtype, like->dl.device, nullptr, 0);
  copy_into(thread, result, zero);
  return result;
}

// Whether `whole` is the complex dtype whose parts have the dtype `part`.
bool complex_of(DType part, DType whole) {
  return whole.code == kDLComplex && part.code == kDLFloat && part.bits * 2 == whole.bits &&
         part.lanes == whole.lanes;
}

// Where the elements of a view lie in its base.
Window window_of(const plait_tensor *view) {
  const int64_t bytes = view->dl.data ? static_cast<const char *>(view->dl.data) -
                                            static_cast<const char *>(view->base->dl.data)
                                      : 0;
  return {view->dl.dtype, view->dl.ndim, view->dl.shape, view->dl.strides,
          bytes / itemsize(view->dl.dtype)};
}

// The view of the base's tangent that corresponds to a view of the base.
Tensor view_of(plait_thread *thread, const plait_tensor *view, const Tensor &tangent) {
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
  return strided(thread, tangent, window_of(view));
}

// The base's tangent with another one for a view of the base, as a new tensor.
Tensor with_view(plait_thread *thread, const plait_tensor *view, const Tensor &tangent,
                 const Tensor &part) {
  const plait_tensor *base = view->base;
  if (!is_contiguous(base) || !same_layout(base, tangent.get()))
    raise(thread, PLAIT_NOT_IMPLEMENTED, "forward",
          "a view of a tensor of shape %s that is not in C order has no tangent of each sample; "
          "use contiguous() on that tensor first",
          shape_text(base).c_str());
  const Tensor wide = expand(thread, part, view->dl.shape, view->dl.ndim);
  const Tensor result = with_strided(thread, flat(thread, tangent), window_of(view), wide);
  return reshape(thread, result, base->dl.shape, size_t(base->dl.ndim));
}

}  // namespace

uint64_t forward_bit = 0;

void enter_level(plait_thread *thread, bool recorded) {
  static std::atomic<uint64_t> last{0};
  struct Last {  // a thread that ends leaves its level
    plait_thread *thread = nullptr;
    ~Last() {
      if (thread && level_of(thread)) leave_level(thread);
    }
  };
  static thread_local Last own;
  own.thread = thread;
  auto *level = new Level{};
  level->o = {1, &level_type};
  level->number = ++last;
  level->recorded = recorded;
  thread->slot[1] = level;
  thread->included |= forward_bit;
}

void leave_level(plait_thread *thread) {
  auto *level = static_cast<Level *>(std::exchange(thread->slot[1], nullptr));
  thread->included &= ~forward_bit;
  std::vector<plait_tensor *> tangents;
  {
    const std::lock_guard<ProcessLock> guard(level->lock);
    for (Dual *d = std::exchange(level->first, nullptr); d; d = d->next) {
      d->back = nullptr;
      if (d->tangent) tangents.push_back(std::exchange(d->tangent, nullptr));
    }
  }
  for (plait_tensor *t : tangents) plait_release(t);
  plait_release(level);
}

Tensor tangent_of(plait_thread *thread, plait_tensor *t) {
  if (const Dual *d = dual_of(thread, t)) {
    if (t->base) {
      if (d->version == history_version(t)) return Tensor::share(d->tangent);
      raise(
          thread, PLAIT_ERROR, "forward",
          "a Function returned a tensor of shape %s in the memory of its input, which was written "
          "since: its tangent is unknown; clone() it first",
          shape_text(t).c_str());
    }
    if (d->alike ? same_layout(t, d->tangent) : same_shape(t, d->tangent))
      return Tensor::share(d->tangent);
    raise(thread, PLAIT_NOT_IMPLEMENTED, "forward",
          "a dual tensor was given another layout in place: it has shape %s now, its tangent %s; "
          "use the out-of-place form, or make_dual again",
          shape_text(t).c_str(), shape_text(d->tangent).c_str());
  }
  const Dual *whole = t->base ? dual_of(thread, t->base) : nullptr;
  return whole && whole->tangent ? view_of(thread, t, Tensor::share(whole->tangent)) : Tensor();
}

void set_tangent(plait_thread *thread, plait_tensor *t, Tensor tangent) {
  auto *before = static_cast<plait_object *>(std::exchange(t->slot[2], nullptr));
  plait_release_object(before);
  if (!tangent && !t->base) return;
  bool alike = true;
  if (tangent) {
    if (!same(tangent.dtype(), t->dl.dtype)) tangent = cast(thread, tangent, t->dl.dtype);
    if (!same_layout(t, tangent.get())) {
      const Tensor laid = zeros_like(thread, t);
      copy_into(thread, laid, tangent);
      tangent = laid;
      alike = same_layout(t, tangent.get());
    }
  }
  Dual *d = new_dual(level_of(thread), std::move(tangent));
  d->alike = alike;
  d->version = history_version(t);
  t->slot[2] = d;
}

void write_tangent(plait_thread *thread, plait_tensor *target, const Tensor &tangent) {
  plait_tensor *root = target->base;
  if (!root) return set_tangent(thread, target, tangent);
  if (const Dual *own = dual_of(thread, target)) {
    if (own->tangent || tangent)
      raise(thread, PLAIT_NOT_IMPLEMENTED, "forward",
            "a tensor of shape %s that a Function returned in the memory of its input was written "
            "in place within a dual level; clone() it first",
            shape_text(target).c_str());
  }
  const Dual *d = dual_of(thread, root);
  if (d && !d->tangent) d = nullptr;
  if (!d && !tangent) return;
  // tangents are shared until one of them is written
  Tensor whole = !d                      ? zeros_like(thread, root)
                 : exclusive(d->tangent) ? Tensor::share(d->tangent)
                                         : clone(thread, Tensor::share(d->tangent));
  const Tensor part = tangent ? tangent : zeros(thread, whole.dtype(), whole.device(), nullptr, 0);
  if (has_own_bytes(whole.get()) && has_own_bytes(part.get()))
    copy_into(thread, view_of(thread, target, whole), part);
  else
    whole = with_view(thread, target, whole, part);
  set_tangent(thread, root, std::move(whole));
}

// Tangents of tensors saved for derivatives.
plait_object *packed_with_tangent(plait_object *object) {
  return &(new Packed{{1, &packed_type}, object, nullptr})->o;
}

Packed *as_packed(plait_object *o) noexcept {
  return o->type == &packed_type ? reinterpret_cast<Packed *>(o) : nullptr;
}

void give_tangent(plait_thread *thread, const plait_tensor *from, plait_tensor *to) {
  const Dual *d = dual_of(thread, from);
  if (d && d->tangent && !from->base) set_tangent(thread, to, Tensor::share(d->tangent));
}

void give_tangent(plait_thread *thread, const Packed *from, plait_tensor *to) {
  const Dual *d = from->dual;
  if (d && d->level == level_of(thread) && d->tangent)
    set_tangent(thread, to, Tensor::share(d->tangent));
}

void keep_tangent(plait_thread *thread, Packed *packed, Tensor tangent) {
  if (tangent) packed->dual = new_dual(level_of(thread), std::move(tangent));
}

void expect_tangent(plait_thread *thread, const plait_tensor *result, plait_object *receiver) {
  plait_retain_object(receiver);
  level_of(thread)->expected.push_back({result, receiver});
}

Expecting::~Expecting() {
  // a hook, for example, has left the level while the operator ran
  if (level_of(thread_) != level_) return;
  auto &all = level_->expected;
  while (all.size() > mark_) {
    plait_object *receiver = all.back().receiver;
    all.pop_back();
    plait_release_object(receiver);
  }
}

void Expecting::settle(const plait_tensor *result, const Tensor &tangent) {
  if (!tangent || level_of(thread_) != level_) return;
  for (size_t i = mark_; i < level_->expected.size(); i++) {
    const Level::Expected &e = level_->expected[i];
    if (e.result != result) continue;
    if (Packed *packed = as_packed(e.receiver))
      keep_tangent(thread_, packed, tangent);
    else
      set_tangent(thread_, reinterpret_cast<plait_tensor *>(e.receiver), tangent);
  }
}

}  // namespace plait::autograd
