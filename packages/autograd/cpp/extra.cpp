#include "extra.hpp"

#include "history.hpp"
#include "tangents.hpp"

namespace plait::autograd {
namespace {

void drop_hook(plait_object *o) {
  auto *h = reinterpret_cast<Hook *>(o);
  plait_release_object(h->what);
  deallocate(h, sizeof *h);
}

void append(Extra *x, Hook *h) noexcept {
  Hook **at = &x->hooks;
  while (*at) at = &(*at)->next;
  h->next = nullptr;
  *at = h;
}

bool unlink(Extra *x, const Hook *h) noexcept {
  for (Hook **at = &x->hooks; *at; at = &(*at)->next) {
    if (*at != h) continue;
    *at = h->next;
    return true;
  }
  return false;
}

void cut_loose(Hook *h) noexcept {
  const Spin guard(h->spin);
  h->node = nullptr;
}

void drop_hooks(Extra *x, bool cells) noexcept {
  Hook *kept = nullptr;
  for (;;) {
    Hook *h;
    {
      const Spin guard(x->spin);
      h = x->hooks;
      if (h) x->hooks = h->next;
    }
    if (!h) break;
    if (!cells && h->when == When::retained) {
      h->next = kept;
      kept = h;
      continue;
    }
    cut_loose(h);  // a thread that removes it at this moment still needs the list
    plait_release(h);
  }
  while (Hook *h = kept) {
    kept = h->next;
    const Spin guard(x->spin);
    append(x, h);
  }
}

}  // namespace

const plait_type hook_type{PLAIT_HEADER(plait_type), "autograd hook", drop_hook};

Extra *extra_of(Node *n) {
  Extra *x = n->extra.load(std::memory_order_acquire);
  if (x) return x;
  auto *result = static_cast<Extra *>(allocate(sizeof(Extra)));
  *result = {0, Nan::unknown, nullptr, nullptr, nullptr, 0, 0};
  if (n->extra.compare_exchange_strong(x, result, std::memory_order_acq_rel)) return result;
  deallocate(result, sizeof *result);
  return x;
}

void drop_extra(Node *n) noexcept {
  Extra *x = n->extra.load(std::memory_order_acquire);
  if (!x) return;
  drop_hooks(x, true);
  plait_release_object(x->metadata);
  plait_release_object(x->site);
  deallocate(x, sizeof *x);
}

Ref<Hook> add_hook(Node *n, When when, uint32_t index, plait_object *object) {
  Extra *x = extra_of(n);
  auto *h = static_cast<Hook *>(allocate(sizeof(Hook)));
  *h = {{2, &hook_type}, nullptr, n, object, when, index, 0, 0};  // the list's reference and ours
  plait_retain_object(object);
  const Spin guard(x->spin);
  append(x, h);
  return Ref<Hook>::steal(h);
}

void remove_hook(Hook *h) noexcept {
  bool listed = false;
  {
    const Spin guard(h->spin);  // the node is kept alive while the lock is held
    if (h->node) {
      Extra *x = h->node->extra.load(std::memory_order_acquire);
      const Spin list(x->spin);
      listed = unlink(x, h);
    }
    h->node = nullptr;
  }
  if (listed) plait_release(h);
}

std::vector<Ref<Hook>> hooks_at(Node *n, When when) {
  std::vector<Ref<Hook>> results;
  Extra *x = n->extra.load(std::memory_order_acquire);
  if (!x) return results;
  results.reserve(8);
  size_t all = 0;
  for (;;) {  // nothing is allocated while the lock is held
    {
      const Spin guard(x->spin);
      results.clear();
      all = 0;
      for (Hook *h = x->hooks; h; h = h->next) {
        if (h->when != when) continue;
        if (++all <= results.capacity()) results.push_back(Ref<Hook>::share(h));
      }
    }
    if (all <= results.capacity()) return results;
    results.clear();
    results.reserve(2 * all);
  }
}

bool has_hooks(Node *n, When when) noexcept {
  Extra *x = n->extra.load(std::memory_order_acquire);
  if (!x) return false;
  const Spin guard(x->spin);
  for (const Hook *h = x->hooks; h; h = h->next)
    if (h->when == when) return true;
  return false;
}

void move_cell(Node *from, Node *to, Cell *cell, uint32_t index) {
  Extra *x = from->extra.load(std::memory_order_acquire);
  if (!x) return;
  for (const Ref<Hook> &h : hooks_at(from, When::retained)) {
    if (h->what != &cell->o) continue;
    remove_hook(h.get());
    add_hook(to, When::retained, index, &cell->o);
    return;
  }
}

void untie(Node *n) noexcept {
  Extra *x = n->extra.load(std::memory_order_acquire);
  if (!x) return;
  drop_hooks(x, false);
  plait_object *metadata;
  {
    const Spin guard(x->spin);
    metadata = std::exchange(x->metadata, nullptr);
  }
  plait_release_object(metadata);
}

// For the host's garbage collector.
namespace {

bool sole(const plait_object *o) { return __atomic_load_n(&o->refs, __ATOMIC_ACQUIRE) == 1; }

class Walk {  // nodes wait in a list instead of recursion, as a graph may be deep
 public:
  explicit Walk(const Visitor &v) : v_(v) {}

  void slot(plait_object *o) {
    if (!o || !sole(o)) return;
    if (is_node(o)) return push(reinterpret_cast<Node *>(o));
    if (const History *h = as_history(o)) {
      if (h->node) slot(&h->node->o);
      if (h->cell && sole(&h->cell->o)) tensor(h->cell->grad);
    }
  }

  int run() {
    while (Node *n = waiting_) {
      waiting_ = n->link;
      n->link = nullptr;
      look(n);
    }
    return result_;
  }

 private:
  void push(Node *n) {
    if (n->owner.load(std::memory_order_acquire)) return;  // a pass uses the node
    n->link = waiting_;
    waiting_ = n;
  }

  void held(plait_object *o) {
    if (!result_ && o && sole(o)) result_ = v_.held(o, v_.arg);
  }

  void tensor(plait_tensor *t) {
    for (; t && sole(&t->o); t = t->base) {
      if (!result_ && (t->flags & PLAIT_TENSOR_OWNS_WRAPPER)) {
        result_ = v_.wrapper(t->slot[1], v_.arg);
      }
      slot(static_cast<plait_object *>(t->slot[0]));
    }
  }

  void look(Node *n) {
    if (const Extra *x = n->extra.load(std::memory_order_acquire)) {
      held(x->metadata);
      for (const Hook *h = x->hooks; h; h = h->next)
        if (h->when == When::retained) {
          if (sole(h->what)) tensor(reinterpret_cast<Cell *>(h->what)->grad);
        } else {
          held(h->what);
        }
    }
    for (uint32_t i = 0; i < n->n_edges; i++)
      if (n->edges[i].node) slot(&n->edges[i].node->o);
    if (n->kind == Kind::host) {
      held(static_cast<HostNode *>(n)->callable);
    } else if (n->kind == Kind::leaf) {
      tensor(static_cast<Leaf *>(n)->grad);
    } else if (n->kind == Kind::assigned) {
      if (OpNode *inner = static_cast<ViewNode *>(n)->inner) slot(&inner->o);
    } else if (n->kind == Kind::op) {
      const auto *op = static_cast<const OpNode *>(n);
      for (uint32_t i = 0; i < op->n_saved; i++) {
        plait_tensor *t = op->saved[i].tensor;
        if (!t) continue;
        if (!op->saved[i].packed)
          tensor(t);
        else if (const Packed *dual = as_packed(&t->o); !dual || sole(&dual->o))
          held(dual ? dual->what : &t->o);
      }
    }
  }

  const Visitor &v_;
  Node *waiting_ = nullptr;
  int result_ = 0;
};

}  // namespace

int traverse(plait_object *slot, const Visitor &v) {
  Walk walk(v);
  walk.slot(slot);
  return walk.run();
}

}  // namespace plait::autograd
