// Unpacks saved values for a derivative, and checks that they were not written to since.
#include "unpack.hpp"

#include "record.hpp"
#include "tangents.hpp"
#include "views.hpp"
#include "watch.hpp"

namespace plait::autograd {
namespace {

// A meta tensor for an input of which only the layout was saved; all of them share one storage.
plait_tensor *shadow(plait_thread *thread, const Layout &l) {
  static plait_storage *const nothing = [thread] {
    plait_storage *result = nullptr;
    check(engine.runtime->storage_new(thread, {PLAIT_META, 0}, 0, &result));
    return result;
  }();
  plait_tensor *t = nullptr;
  check(engine.runtime->tensor_on(thread, nothing, nullptr, l.dtype, l.ndim, l.shape, nullptr, &t));
  return t;
}

[[noreturn]] void freed(plait_thread *thread, const OpNode *n) {
  const std::string name = error_name(n->op, n->form);
  raise(thread, PLAIT_ERROR, name,
        "%s ran a second time, but the values that were saved for it were freed after the first; "
        "call the first backward with retain_graph=True%s (Trying to backward through the graph a "
        "second time)",
        name == "backward" ? "it" : "backward", made_at(n).c_str());
}

[[noreturn]] void freed_before_access(plait_thread *thread, const OpNode *n) {
  raise(thread, PLAIT_ERROR, error_name(n->op, n->form),
        "the saved tensors of this node were freed by a backward pass; call it with "
        "retain_graph=True to read them after it%s (Trying to backward through the graph a second "
        "time, or directly access saved tensors after they have already been freed)",
        made_at(n).c_str());
}

[[noreturn]] void overwritten(plait_thread *thread, const OpNode *n, const Saved &saved,
                              const plait_tensor *t, uint64_t now) {
  const std::string subject =
      saved.result ? "its result"
                   : std::string("`") + plait_arg_at(n->op, saved.argument)->name + "`";
  Write write;
  std::string by = "an in-place operator";
  const bool known = write_after(t->storage, saved.version, n->sequence, &write);
  if (known) by = "`" + write.name + "`" + write.line;
  const std::string output = where(n);
  raise(thread, PLAIT_ERROR, error_name(n->op, n->form),
        "%s (%s, shape %s), which the derivative needs, was overwritten by %s after it was "
        "saved%s%s (modified by an inplace operation: it is at version %llu, saved at version "
        "%llu); use the out-of-place form of the "
        "operator that wrote it, or clone() the tensor first%s",
        subject.c_str(), plait::name(t->dl.dtype), shape_text(t).c_str(), by.c_str(),
        output.empty() ? "" : " by the call", output.c_str(), static_cast<unsigned long long>(now),
        static_cast<unsigned long long>(saved.version),
        known && !output.empty()
            ? ""
            : " (with set_detect_anomaly(True) this message names the lines of both)");
}

void check_version(plait_thread *thread, const OpNode *n, const Saved &saved,
                   const plait_tensor *t) {
  if (saved.packed) return;  // packed tensors are not checked
  const uint64_t now = history_version(t);
  if (now != saved.version) overwritten(thread, n, saved, t, now);
}

// Takes the right to read the saved tensors; false: a pass freed them.
bool begin_reading(OpNode *n) {
  uint8_t state = kHolding;
  while (!n->values.compare_exchange_weak(state, kReading, std::memory_order_acquire)) {
    if (state == kTaken) return false;
    state = kHolding;
  }
  return true;
}

// The position of the argument among those that may be tensors, which is the index of its edge.
uint32_t position_of(const OpNode *n, uint32_t argument, uint32_t item) {
  uint32_t position = 0;
  for (uint32_t i = 0; i < argument; i++) {
    const uint8_t kind = plait_arg_at(n->op, i)->kind;
    if (n->in[i].tag == PLAIT_TENSORS)
      position += n->in[i].n;
    else
      position += kind == PLAIT_KIND_TENSOR || kind == PLAIT_KIND_OPERAND;
  }
  return position + item;
}

// Replaces what a pack hook returned by the tensor that the unpack hook returns for it.
void unpack_one(plait_thread *thread, plait_tensor *&held) {
  const Watch *w = watch.load(std::memory_order_acquire);
  Tensor result;
  const Packed *dual = as_packed(&held->o);
  {
    const Excluding quiet(thread, false);
    check(w->unpack(thread, dual ? dual->what : &held->o, result.out()));
  }
  if (dual && carrying(thread)) {  // the program may hold the tensor that the hook returned
    Tensor alias;
    check(engine.runtime->tensor_alias(thread, result.get(), alias.out()));
    give_tangent(thread, dual, alias.get());
    result = alias;
  }
  plait_release(held);
  held = result.release();
}

// When the derivative is recorded itself, saved results need their history, which the node cannot
// keep. A view that was written to gets a history as a part of its base, so that gradients for the
// base include it.
void give_one_history(plait_thread *thread, OpNode *n, const Saved &s, ViewNode *within,
                      plait_tensor *&held) {
  if (!(s.result || s.packed) || !differentiable(held->dl.dtype)) return;
  Edge to{n, s.argument + s.item, 0};
  if (!s.result) {
    const uint32_t position = position_of(n, s.argument, s.item);
    to = position < n->n_edges ? n->edges[position] : Edge{nullptr, 0, 0};
  }
  plait_tensor *alias = nullptr;
  check(engine.runtime->tensor_alias(thread, held, &alias));
  if (carrying(thread)) give_tangent(thread, held, alias);
  plait_release(held);
  held = alias;
  if (s.result && within)
    set_history(alias, written_part(thread, within), 0);
  else if (to.node)
    set_history(alias, Ref<Node>::share(to.node), to.index);
}

}  // namespace

Unpacked::Unpacked(plait_thread *thread, OpNode *node, bool keep, bool create, ViewNode *within)
    : node_(node) {
  const uint32_t n = node->n_saved;
  if (n + node->n_shapes > 16) {
    many_.resize(n + node->n_shapes);
    held_ = many_.data();
  }
  for (uint32_t i = 0; i < node->n_in; i++) in_[i] = node->in[i];
  for (uint32_t i = 0; i < node->n_results; i++) out_[i] = none();
  if (n) take(thread, keep);
  try {
    for (uint32_t i = 0; i < n; i++) check_version(thread, node, node->saved[i], held_[i]);
    if (n) unpack_all(thread);
    if (n && create) give_history(thread, within);
    for (uint32_t i = 0; i < node->n_shapes; i++)
      held_[n_held_++] = shadow(thread, node->shapes[i].layout);
    size_t room = 0;
    for (uint32_t i = 0; i < node->n_in; i++) room += in_[i].tag == PLAIT_TENSORS ? in_[i].n : 0;
    list_.resize(room);
    room = 0;
    for (uint32_t i = 0; i < node->n_in; i++) {
      if (in_[i].tag != PLAIT_TENSORS) continue;
      in_[i].u.ts = list_.data() + room;
      room += in_[i].n;
    }
  } catch (...) {
    for (uint32_t i = 0; i < n_held_; i++) plait_release(held_[i]);
    throw;
  }
  for (uint32_t i = 0; i < n; i++) {
    const Saved &s = node->saved[i];
    put(s.result ? out_ : in_, s.argument, s.item, held_[i]);
  }
  for (uint32_t i = 0; i < node->n_shapes; i++)
    put(in_, node->shapes[i].argument, node->shapes[i].item, held_[n + i]);
}

Unpacked::~Unpacked() {
  for (uint32_t i = 0; i < n_held_; i++) plait_release(held_[i]);
}

// Several passes may take the values at the same time: a pass that keeps them shares them, another
// one moves them.
void Unpacked::take(plait_thread *thread, bool keep) {
  if (!begin_reading(node_)) freed(thread, node_);
  for (; n_held_ < node_->n_saved; n_held_++) {
    held_[n_held_] = node_->saved[n_held_].tensor;
    if (keep)
      plait_retain(held_[n_held_]);
    else
      node_->saved[n_held_].tensor = nullptr;
  }
  node_->values.store(keep ? kHolding : kTaken, std::memory_order_release);
}

void Unpacked::put(plait_value *values, uint32_t argument, uint32_t item, plait_tensor *t) {
  plait_value &v = values[argument];
  if (v.tag == PLAIT_TENSORS)
    const_cast<plait_tensor **>(v.u.ts)[item] = t;
  else
    v = value(t);
}

// Unpacks values that hooks packed.
void Unpacked::unpack_all(plait_thread *thread) {
  for (uint32_t i = 0; i < node_->n_saved; i++)
    if (node_->saved[i].packed) unpack_one(thread, held_[i]);
}

void Unpacked::give_history(plait_thread *thread, ViewNode *within) {
  for (uint32_t i = 0; i < node_->n_saved; i++)
    give_one_history(thread, node_, node_->saved[i], within, held_[i]);
}

Tensor saved_tensor(plait_thread *thread, OpNode *n, uint32_t i) {
  if (!begin_reading(n)) freed_before_access(thread, n);
  plait_tensor *held = n->saved[i].tensor;
  plait_retain(held);
  n->values.store(kHolding, std::memory_order_release);
  try {
    check_version(thread, n, n->saved[i], held);
    if (n->saved[i].packed) unpack_one(thread, held);
    give_one_history(thread, n, n->saved[i], nullptr, held);
  } catch (...) {
    plait_release(held);
    throw;
  }
  return Tensor::steal(held);
}

bool shape_of_argument(const OpNode *n, uint32_t argument, uint32_t item, int32_t *ndim,
                       const int64_t **shape) {
  for (uint32_t i = 0; i < n->n_shapes; i++) {
    const Shape &s = n->shapes[i];
    if (s.argument != argument || s.item != item) continue;
    *ndim = s.layout.ndim;
    *shape = s.layout.shape;
    return true;
  }
  const uint32_t position = position_of(n, argument, item);
  const Node *to = position < n->n_edges ? n->edges[position].node : nullptr;
  if (!to) return false;
  const bool leaf = to->kind == Kind::leaf;
  if (!leaf && n->edges[position].index >= to->n_outs) return false;
  const Layout &layout =
      leaf ? static_cast<const Leaf *>(to)->layout : to->outs[n->edges[position].index];
  *ndim = layout.ndim;
  *shape = layout.shape;
  return layout.ndim >= 0;
}

}  // namespace plait::autograd
