// Which calls may wait, and which call of the trie one is.
#include <algorithm>

#include <plait/layer.hpp>

#include "deferral/deferred_calls.hpp"

namespace plait::graph {
namespace {

// Writes by others to such memory are not seen.
bool is_foreign(const plait_storage *s) {
  constexpr uint64_t external = PLAIT_STORAGE_EXTERNAL | PLAIT_STORAGE_MAPPED;
  const uint64_t flags = __atomic_load_n(&s->flags, __ATOMIC_RELAXED);
  return flags & (PLAIT_STORAGE_SHARED | PLAIT_STORAGE_EXPORTED | PLAIT_STORAGE_PINNED) ||
         (flags & external) == PLAIT_STORAGE_EXTERNAL;
}

// Kernels that Python registers may do anything.
bool has_python_kernel(const plait_op *op) {
  if (op->n_backend <= uint64_t(kDLCPU)) return false;
  for (const plait_entry *e = op->backend[kDLCPU]; e; e = e->prev)
    if (!e->who || !e->who->init) return true;
  return false;
}

// Whether elements of the arguments may be an error: indices out of range, matrices that are
// singular. The function must see it before it goes on, as gradients of such a call are nothing.
bool may_fail(const plait_call *c) {
  if (std::strncmp(c->op->name, "linalg_", 7) == 0 || std::strncmp(c->op->name, "cholesky", 8) == 0)
    return true;
  if (c->op->flags & PLAIT_OP_POINTWISE || std::strcmp(c->op->name, "copy_") == 0) return false;
  size_t n = 0;
  bool has_integers = false;
  each_tensor(c, [&](const plait_tensor *t) {
    n++;
    has_integers |= t->dl.dtype.code == kDLInt && t->dl.dtype.bits >= 32;
  });
  return has_integers && n > 1;
}

}  // namespace

bool Deferral::is_deferrable(const plait_call *c) const {
  if (c->todo || c->device.device_type != kDLCPU || has_python_kernel(c->op)) return false;
  if (may_fail(c)) return false;
  if (__atomic_load_n(runtime->observed, __ATOMIC_RELAXED) & PLAIT_EVENT_OP) return false;
  bool is = true;
  each_tensor(c, [&](const plait_tensor *t) {
    is &= t->dl.device.device_type == kDLCPU && !(t->layers & layers_of_bytes) && !t->slot[3] &&
          !is_foreign(t->storage);
  });
  const auto is_readonly = [](const plait_tensor *t) {
    return (__atomic_load_n(&t->storage->flags, __ATOMIC_RELAXED) & PLAIT_STORAGE_READONLY) != 0;
  };
  bool writes = c->form != PLAIT_FUNCTION;
  for (uint16_t i = 0; i < c->n_in; i++) {
    if (c->in[i].tag == PLAIT_OBJECT) return false;
    if (!(plait_arg_at(c->op, i)->flags & PLAIT_ARG_WRITES)) continue;
    writes = true;
    each_tensor(c->in + i, 1, [&](const plait_tensor *t) { is &= !is_readonly(t); });
  }
  if (c->form != PLAIT_FUNCTION)
    each_tensor(c->out, c->n_out, [&](const plait_tensor *t) { is &= !is_readonly(t); });
  return is && (writes || c->n_out);
}

bool Deferral::matches_place(const CallNode &node, int32_t p, plait_tensor *t) {
  const auto i = size_t(p);
  const bool is_new = i >= places_.size();
  const Place &place = is_new ? node.places[i - node.first_place] : *places_[i];
  if (!place.type.fits(t)) return false;
  const auto *data = static_cast<const char *>(t->dl.data);
  if (place.storage < storages_.size()) {
    Storage &s = storages_[place.storage];
    // an address of no elements says nothing
    if (s.address != t->storage || !is_numbered(t->storage)) return false;
    if (data != s.origin + place.offset) return false;
    if (!s.held) s.hold(t->storage);
  } else {
    if (number_of(t->storage) >= 0) return false;
    add_storage(t, false);
    storages_.back().hold(t->storage);
  }
  if (is_new) places_.push_back(&place);
  return true;
}

bool Deferral::matches(const CallNode &node, const plait_call *c) {
  if (node.op != c->op || node.form != c->form) return false;
  const auto fits = [&](const Argument &a, const plait_value &v) {
    if (!a.is_tensor()) return a.fits(v);
    if (a.value.tag != v.tag) return false;
    if (v.tag == PLAIT_TENSOR) return matches_place(node, a.places[0], v.u.t);
    bool all = a.places.size() == v.n;
    for (uint32_t k = 0; all && k < v.n; k++)
      all = (a.places[k] < 0) == !v.u.ts[k] &&
            (!v.u.ts[k] || matches_place(node, a.places[k], v.u.ts[k]));
    return all;
  };
  for (uint16_t i = 0; i < c->n_in; i++)
    if (!fits(node.in[i], c->in[i])) return false;
  for (size_t i = 0; i < node.targets.size(); i++)
    if (!matches_place(node, node.targets[i], c->out[i].u.t)) return false;
  return true;
}

CallNode *Deferral::find_child(const plait_call *c) {
  const size_t n_places = places_.size(), n_storages = storages_.size();
  for (const auto &child : at_->children) {
    if (matches(*child, c)) return child.get();
    truncate(n_places, n_storages);
  }
  // a call that differs in numbers alone, of which its results' types are independent
  for (const auto &child : at_->children) {
    if (child->op != c->op || child->form != c->form || child->is_eager) continue;
    std::vector<Argument *> others;
    for (uint16_t i = 0; i < c->n_in; i++) {
      Argument &a = child->in[i];
      if (a.may_vary && !a.varies && a.value.tag == c->in[i].tag && !a.fits(c->in[i]))
        others.push_back(&a);
    }
    for (Argument *a : others) a->varies = true;
    if (!others.empty() && matches(*child, c)) {
      trie_->count_change();
      // calls that wait already have the number that they were recorded with
      return child.get();
    }
    for (Argument *a : others) a->varies = false;
    truncate(n_places, n_storages);
  }
  return nullptr;
}

}  // namespace plait::graph
