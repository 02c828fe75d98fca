// The functions of the role "engine".
#include "role.hpp"

#include <cstring>
#include <set>
#include <vector>

#include "accumulate.hpp"
#include "backward_pass.hpp"
#include "gradient_places.hpp"
#include "introspection.hpp"
#include "record.hpp"
#include "unpack.hpp"
#include "watch.hpp"

namespace plait::autograd {
namespace {

int enabled(void *, plait_thread *thread) { return !(thread->excluded & engine.bit); }

void set_enabled(void *, plait_thread *thread, int on) {
  if (on)
    thread->excluded &= ~engine.bit;
  else
    thread->excluded |= engine.bit;
}

plait_status set_requires_grad(void *, plait_thread *thread, plait_tensor *t, int on) {
  return border(thread, "requires_grad", [&]() -> plait_status {
    if (!on && requires_grad(t) && !is_leaf(t))
      raise(thread, PLAIT_ERROR, "requires_grad",
            "a tensor of shape %s that is the result of an operator cannot stop requiring grad; "
            "use detach()",
            shape_text(t).c_str());
    if (!on) {
      clear_bit(t);
      if (const Ref<Leaf> l = known_leaf(t)) freeze(l.get(), true);
      return PLAIT_OK;
    }
    if (!differentiable(t->dl.dtype))
      raise(thread, PLAIT_ERROR, "requires_grad",
            "only tensors of floating point and complex dtype can require grad; got %s",
            plait::name(t->dl.dtype));
    if (requires_grad(t)) return PLAIT_OK;
    if (is_cut(t)) drop(t->base);  // it is a leaf from here on
    freeze(leaf_of(t).get(), false);
    set_bit(t);
    return PLAIT_OK;
  });
}

int leaf(void *, plait_tensor *t) { return is_leaf(t); }

plait_status get_grad(void *, plait_thread *, plait_tensor *t, plait_tensor **out) {
  *out = nullptr;
  const SlotGuard guard(t);
  if (Leaf *l = as_leaf(t->slot[0])) {
    *out = leaf_grad(l);
  } else if (const History *h = as_history(t->slot[0]); h && h->cell) {
    const Spin guard(h->cell->spin);
    *out = h->cell->grad;
    if (*out) plait_retain(*out);
  }
  return PLAIT_OK;
}

void check_grad(plait_thread *thread, const plait_tensor *t, const plait_tensor *g) {
  if (g == t) raise(thread, PLAIT_VALUE_ERROR, "grad", "a tensor cannot be its own gradient");
  bool alike = t->dl.ndim == g->dl.ndim;
  for (int32_t i = 0; alike && i < t->dl.ndim; i++) alike = t->dl.shape[i] == g->dl.shape[i];
  if (!alike)
    raise(thread, PLAIT_SHAPE_ERROR, "grad",
          "the gradient of a tensor of shape %s must have its shape; got %s", shape_text(t).c_str(),
          shape_text(g).c_str());
  if (!same(t->dl.dtype, g->dl.dtype))
    raise(thread, PLAIT_DTYPE_ERROR, "grad",
          "the gradient of a tensor of %s must have its dtype; got %s", plait::name(t->dl.dtype),
          plait::name(g->dl.dtype));
  if (!same(t->dl.device, g->dl.device))
    raise(thread, PLAIT_VALUE_ERROR, "grad",
          "the gradient must be on the tensor's device %s; got %s",
          device_text(t->dl.device).c_str(), device_text(g->dl.device).c_str());
}

// The history of a non-leaf tensor, as an object that can store a gradient.
Ref<History> with_cell(plait_tensor *t) {
  const SlotGuard guard(t);
  History *h = as_history(t->slot[0]);
  if (!h) {
    h = static_cast<History *>(allocate(sizeof(History)));
    *h = {{1, &history_type}, static_cast<Node *>(t->slot[0]), nullptr, 0};
    t->slot[0] = h;
  }
  if (!h->cell) h->cell = new_cell();
  return Ref<History>::share(h);
}

plait_status set_grad(void *, plait_thread *thread, plait_tensor *t, plait_tensor *grad) {
  return border(thread, "grad", [&]() -> plait_status {
    if (grad) check_grad(thread, t, grad);
    Tensor g = Tensor::share(grad);
    const bool blank = !__atomic_load_n(&t->slot[0], __ATOMIC_RELAXED);
    if (blank || has_leaf(t)) {
      if (grad || !blank) set_leaf_grad(leaf_of(t).get(), std::move(g));
      return PLAIT_OK;
    }
    const Ref<History> h = with_cell(t);
    Cell *cell = h->cell;
    plait_tensor *old;
    {
      const Spin guard(cell->spin);
      old = std::exchange(cell->grad, g.release());
    }
    plait_release(old);
    return PLAIT_OK;
  });
}

plait_status retain_grad(void *, plait_thread *thread, plait_tensor *t) {
  return border(thread, "retain_grad", [&]() -> plait_status {
    if (!requires_grad(t))
      raise(thread, PLAIT_ERROR, "retain_grad", "the tensor of shape %s must require grad",
            shape_text(t).c_str());
    const GradientEdge edge = history_of(thread, t);
    if (is_leaf(t)) return PLAIT_OK;
    const Ref<History> h = with_cell(t);
    for (const Ref<Hook> &r : hooks_at(h->node, When::retained))
      if (r->what == &h->cell->o) return PLAIT_OK;
    add_hook(h->node, When::retained, uint32_t(h->index), &h->cell->o);
    return PLAIT_OK;
  });
}

plait_status detach_(void *, plait_thread *thread, plait_tensor *t) {
  return border(thread, "detach_", [&]() -> plait_status {
    if (base_of(t) && requires_grad(t) && !is_leaf(t))
      raise(thread, PLAIT_ERROR, "detach_",
            "a view of shape %s cannot be detached in place; use detach()", shape_text(t).c_str());
    clear_history(t);
    return PLAIT_OK;
  });
}

// Nodes.
plait_object *node_of(void *, plait_tensor *t) {
  if (!requires_grad(t) || is_leaf(t)) return nullptr;
  try {
    GradientEdge edge = history_of(this_thread(), t);
    Node *n = edge.node.release();
    return n ? &n->o : nullptr;
  } catch (const std::exception &) {
    return nullptr;
  }
}

Node *as_node(plait_object *o) { return is_node(o) ? reinterpret_cast<Node *>(o) : nullptr; }

ForkMutex names_guard;
std::set<std::string> names;  // few names: one for each operator or function
const char *name_of(void *, plait_object *o) {
  const Node *n = as_node(o);
  if (!n) return nullptr;
  const std::lock_guard<ForkMutex> lock(names_guard);
  return names.insert(node_name(n)).first->c_str();
}

const char *step_name_of(plait_object *o) {
  const Node *n = as_node(o);
  if (!n) return nullptr;
  const std::lock_guard<ForkMutex> lock(names_guard);
  return names.insert(step_name(n)).first->c_str();
}
int arguments_of(plait_object *o, char *letters, uint64_t size) {
  const Node *n = as_node(o);
  uint64_t at = 0;
  if (n && n->kind == Kind::op) {
    const auto *call = static_cast<const OpNode *>(n);
    uint32_t position = 0;
    for (uint32_t i = 0; i < call->n_in && at + 1 < size; i++, at++) {
      const uint8_t kind = plait_arg_at(call->op, i)->kind;
      const bool tensor = kind == PLAIT_KIND_TENSOR || kind == PLAIT_KIND_OPERAND;
      const uint16_t tag = call->in[i].tag;
      const bool edge = tensor && position < n->n_edges && n->edges[position].node;
      letters[at] = edge ? 't' : tag == PLAIT_NONE || tag == PLAIT_TENSORS ? '-' : 'o';
      position += tag == PLAIT_TENSORS ? call->in[i].n : uint32_t(tensor);
    }
  }
  for (uint32_t i = 0; at && i < static_cast<const OpNode *>(n)->n_in; i++) {
    const plait_value &v = static_cast<const OpNode *>(n)->in[i];
    if (v.tag == PLAIT_STRING && at + v.n + 2 < size) {
      letters[at++] = ' ';
      std::memcpy(letters + at, v.u.s, v.n);
      at += v.n;
    }
  }
  letters[at] = 0;
  return n && n->n_outs ? n->outs[0].ndim : 0;
}
plait_status set_steps(plait_thread *thread, const char *const *list, uint64_t n) {
  static std::vector<uint64_t> registrations;
  const std::lock_guard<ForkMutex> lock(names_guard);
  for (const uint64_t each : registrations)
    if (const plait_status s = engine.runtime->retract(thread, each); s < 0) return s;
  registrations.clear();
  const uint32_t slot = PLAIT_SLOT_LAYER + uint32_t(__builtin_ctzll(engine.bit));
  for (uint64_t i = 0; i < n; i++) {
    const plait_op *op = engine.runtime->op(list[i]);
    if (!op || op->def->vjp || !op->def->decompose) continue;
    uint64_t undo = 0;
    const plait_status s =
        engine.runtime->implement(thread, op, slot, step_layer, nullptr, engine.plugin, &undo);
    if (s < 0) return s;
    registrations.push_back(undo);
  }
  return PLAIT_OK;
}

uint32_t count_edges(plait_object *o) {
  const Node *n = as_node(o);
  return n ? n->n_edges : 0;
}
plait_object *edge_at(plait_object *o, uint32_t i, uint32_t *index) {
  const Node *n = as_node(o);
  if (!n || i >= n->n_edges || !n->edges[i].node) return nullptr;
  *index = n->edges[i].index;
  plait_retain(n->edges[i].node);
  return &n->edges[i].node->o;
}
uint64_t sequence_of(plait_object *o) {
  const Node *n = as_node(o);
  return n ? n->sequence : 0;
}
plait_status attach(plait_thread *thread, plait_object *o, uint32_t index, plait_tensor *t) {
  return border(thread, "attach", [&]() -> plait_status {
    Node *n = as_node(o);
    if (!n) return PLAIT_OK;
    set_history(t, Ref<Node>::share(n), index);
    if (base_of(t)) n->view_version = history_version(t);
    return PLAIT_OK;
  });
}
// A tensor of uninitialised bytes with the history of the node's output: it represents a gradient
// edge in passes, which take tensors.
plait_status stand_in(plait_thread *thread, plait_object *o, uint32_t index, plait_tensor **out) {
  return border(thread, "GradientEdge", [&]() -> plait_status {
    Node *n = as_node(o);
    if (!n) raise(thread, PLAIT_TYPE_ERROR, "GradientEdge", "a node of this engine is required");
    const bool leaf = n->kind == Kind::leaf;
    if (index >= (leaf ? 1 : n->n_outs))
      raise(thread, PLAIT_VALUE_ERROR, "GradientEdge", "the node has %u outputs; got %u",
            leaf ? 1u : unsigned(n->n_outs), unsigned(index));
    const Layout &l = leaf ? static_cast<Leaf *>(n)->layout : n->outs[index];
    if (l.ndim < 0)
      raise(thread, PLAIT_ERROR, "GradientEdge", "output %u of %s has no gradient", unsigned(index),
            node_name(n).c_str());
    const int64_t *strides = leaf ? l.shape + l.ndim : nullptr;
    if (strides && !distinct(l.ndim, l.shape, strides)) strides = nullptr;
    Tensor result;
    check(engine.runtime->tensor_new(thread, l.dtype, l.ndim, l.shape, strides, l.device,
                                     result.out()));
    set_history(result.get(), Ref<Node>::share(n), index);
    *out = result.release();
    return PLAIT_OK;
  });
}
// Functions for the Python binding.
plait_object *metadata_of(plait_object *o, plait_object *result) {
  Node *n = as_node(o);
  if (!n) return nullptr;
  Extra *x = extra_of(n);
  const Spin guard(x->spin);
  if (!x->metadata && result) {
    plait_retain_object(result);
    x->metadata = result;
  }
  if (x->metadata) plait_retain_object(x->metadata);
  return x->metadata;
}
plait_status hook_of(plait_thread *thread, plait_object *o, uint32_t when, uint32_t index,
                     plait_object *object, plait_object **out) {
  return border(thread, "register_hook", [&]() -> plait_status {
    Node *n = as_node(o);
    if (!n) raise(thread, PLAIT_TYPE_ERROR, "register_hook", "a node of this engine is required");
    if (index >= n->n_outs && When(when) == When::arrived)
      raise(thread, PLAIT_VALUE_ERROR, "register_hook", "the node has %u outputs; got %u",
            unsigned(n->n_outs), unsigned(index));
    *out = &add_hook(n, When(when), index, object).release()->o;
    return PLAIT_OK;
  });
}
void unhook(plait_object *o) {
  if (o && o->type == &hook_type) remove_hook(reinterpret_cast<Hook *>(o));
}
plait_status gradient_edge(plait_thread *thread, plait_tensor *t, plait_object **node,
                           uint32_t *index) {
  return border(thread, "autograd", [&]() -> plait_status {
    *node = nullptr;
    *index = 0;
    if (!requires_grad(t)) return PLAIT_OK;
    GradientEdge edge = history_of(thread, t);
    *index = edge.index;
    if (Node *n = edge.node.release()) *node = &n->o;
    return PLAIT_OK;
  });
}
int traverse_tensor(plait_tensor *t, int (*held)(plait_object *, void *),
                    int (*wrapper)(void *, void *), void *arg) {
  return traverse(static_cast<plait_object *>(t->slot[0]), {held, wrapper, arg});
}
int traverse_node(plait_object *o, int (*held)(plait_object *, void *),
                  int (*wrapper)(void *, void *), void *arg) {
  return traverse(o, {held, wrapper, arg});
}
void untie_object(plait_object *o) {
  if (!o || __atomic_load_n(&o->refs, __ATOMIC_ACQUIRE) != 1) return;
  const History *h = as_history(o);
  if (Node *n = h ? h->node : as_node(o))
    if (!h || __atomic_load_n(&n->o.refs, __ATOMIC_ACQUIRE) == 1) untie(n);
}
void set_sparse(plait_object *o) {
  Node *n = as_node(o);
  if (n && n->kind == Kind::host) static_cast<HostNode *>(n)->sparse = true;
}
void set_watch(const Watch *table) { watch.store(table, std::memory_order_release); }
int anomaly_mode() { return anomaly ? (anomaly_nan ? 3 : 1) : 0; }
plait_object *site_of_node(plait_object *o) {
  const Node *n = as_node(o);
  plait_object *site = n ? site_of(n) : nullptr;
  if (site) plait_retain_object(site);
  return site;
}
void nan_at(plait_object *o, NanNote *out) {
  *out = {0, 0, 0, "", 0, nullptr};
  const Node *n = as_node(o);
  const Extra *x = n ? n->extra.load(std::memory_order_acquire) : nullptr;
  // nodes of views compute nothing: the call that wrote is checked
  const bool computes = n && (n->kind == Kind::op || n->kind == Kind::host);
  out->nan = uint32_t(computes ? (x ? x->nan : Nan::unknown) : Nan::none);
  if (!x || x->nan != Nan::took) return;
  out->number = x->argument;
  out->edge = x->edge;
  if (n->kind == Kind::op)
    out->argument = plait_arg_at(static_cast<const OpNode *>(n)->op, x->argument)->name;
  if (x->edge >= n->n_edges || n->edges[x->edge].node->kind != Kind::leaf) return;
  const Layout &layout = static_cast<const Leaf *>(n->edges[x->edge].node)->layout;
  out->ndim = layout.ndim;
  out->shape = layout.shape;
}

void account(plait_object *o, const plait_storage *s, uint64_t version, char *by, char *result,
             uint64_t size) {
  by[0] = result[0] = 0;
  const Node *n = o ? as_node(o) : nullptr;
  if (!n) return;
  try {
    std::snprintf(result, size, "%s", where(n).c_str());
    Write write;
    if (s && write_after(s, version, n->sequence, &write))
      std::snprintf(by, size, "`%s`%s", write.name.c_str(), write.line.c_str());
  } catch (const std::exception &) {  // there is no memory for the text
  }
}

int retains() {
  const BackwardPass *pass = BackwardPass::current();
  return !pass || pass->retains();
}
plait_status retained(plait_thread *thread, plait_tensor *t, int *out) {
  return border(thread, "retains_grad", [&]() -> plait_status {
    *out = 0;
    if (is_leaf(t)) return PLAIT_OK;
    history_of(thread, t);  // a view's is renewed
    const History *h = as_history(t->slot[0]);
    if (!h || !h->cell) return PLAIT_OK;
    for (const Ref<Hook> &r : hooks_at(h->node, When::retained)) *out |= r->what == &h->cell->o;
    return PLAIT_OK;
  });
}
plait_status hooked(plait_thread *thread, plait_tensor *t, int *out) {
  *out = 0;
  plait_object *node = nullptr;
  uint32_t index = 0;
  const plait_status s = gradient_edge(thread, t, &node, &index);
  if (s < 0 || !node) return s;
  for (const Ref<Hook> &r : hooks_at(as_node(node), When::arrived)) *out |= r->index == index;
  plait_release(node);
  return PLAIT_OK;
}
uint64_t pass() {
  const BackwardPass *pass = BackwardPass::current();
  return pass ? pass->number() : 0;
}
int will_run(plait_object *o) {
  BackwardPass *pass = BackwardPass::current();
  Node *n = o ? as_node(o) : nullptr;
  return pass && n && pass->will_run(n);
}
plait_object *running() {
  const BackwardPass *pass = BackwardPass::current();
  Node *n = pass ? pass->running() : nullptr;
  return n ? &n->o : nullptr;
}

plait_object *callable_of(plait_object *o) {
  const Node *n = as_node(o);
  return n && n->kind == Kind::host ? static_cast<const HostNode *>(n)->callable : nullptr;
}
plait_status weak(plait_thread *thread, plait_object *o, plait_object **out) {
  return border(thread, "grad_fn", [&]() -> plait_status {
    Node *n = as_node(o);
    *out = n && n->kind == Kind::host ? &weak_of(static_cast<HostNode *>(n))->o : nullptr;
    return PLAIT_OK;
  });
}
plait_object *locked_node(plait_object *o) {
  Node *n = o && o->type == &weak_type ? locked(reinterpret_cast<WeakNode *>(o)) : nullptr;
  return n ? &n->o : nullptr;
}

plait_status set_place_of(plait_thread *thread, plait_object *o, plait_tensor *place) {
  return border(thread, "set_gradient_place", [&]() -> plait_status {
    Node *n = as_node(o);
    if (!n || n->kind != Kind::leaf)
      raise(thread, PLAIT_VALUE_ERROR, "set_gradient_place", "the node of a leaf is required");
    auto *leaf = static_cast<Leaf *>(n);
    if (place && (!fits(leaf->layout, place) || requires_grad(place)))
      raise(thread, PLAIT_VALUE_ERROR, "set_gradient_place",
            "`place` must have the shape, dtype and device of the parameter, and not require grad; "
            "got shape %s",
            shape_text(place).c_str());
    set_place(leaf, Tensor::share(place));
    return PLAIT_OK;
  });
}

plait_status at_end(plait_thread *thread, plait_object *callable) {
  return border(thread, "at_end_of_pass", [&]() -> plait_status {
    BackwardPass *pass = BackwardPass::current();
    if (!pass)
      raise(thread, PLAIT_ERROR, "at_end_of_pass",
            "callbacks can be added during a backward pass only, and this thread runs none");
    pass->at_end(callable);
    return PLAIT_OK;
  });
}

OpNode *as_call(plait_object *o) {
  Node *n = as_node(o);
  return n && n->kind == Kind::op ? static_cast<OpNode *>(n) : nullptr;
}
const plait_op *call_of(plait_object *o, const plait_value **in, uint32_t *n_in) {
  const OpNode *n = as_call(o);
  if (!n) return nullptr;
  *in = n->in;
  *n_in = n->n_in;
  return n->op;
}
int saved_at(plait_object *o, uint32_t i, int *result, uint32_t *argument, uint32_t *item) {
  const OpNode *n = as_call(o);
  if (!n || i >= n->n_saved) return 0;
  *result = n->saved[i].result;
  *argument = n->saved[i].argument;
  *item = n->saved[i].item;
  return 1;
}
plait_status saved_tensor_at(plait_thread *thread, plait_object *o, uint32_t i,
                             plait_tensor **out) {
  return border(thread, "grad_fn", [&]() -> plait_status {
    OpNode *n = as_call(o);
    if (!n || i >= n->n_saved)
      raise(thread, PLAIT_VALUE_ERROR, "grad_fn", "the node has no saved tensor %u", unsigned(i));
    *out = saved_tensor(thread, n, i).release();
    return PLAIT_OK;
  });
}
int shape_at(plait_object *o, uint32_t argument, uint32_t item, int32_t *ndim,
             const int64_t **shape) {
  const OpNode *n = as_call(o);
  return n && shape_of_argument(n, argument, item, ndim, shape);
}

const Introspection introspection{PLAIT_HEADER(Introspection),
                                  count_edges,
                                  edge_at,
                                  sequence_of,
                                  attach,
                                  retains,
                                  running,
                                  &forward,
                                  metadata_of,
                                  hook_of,
                                  unhook,
                                  gradient_edge,
                                  traverse_tensor,
                                  traverse_node,
                                  untie_object,
                                  set_sparse,
                                  set_watch,
                                  set_anomaly,
                                  anomaly_mode,
                                  site_of_node,
                                  nan_at,
                                  set_packing,
                                  stand_in,
                                  retained,
                                  account,
                                  pass,
                                  will_run,
                                  callable_of,
                                  weak,
                                  locked_node,
                                  set_place_of,
                                  at_end,
                                  hooked,
                                  step_name_of,
                                  arguments_of,
                                  set_steps,
                                  call_of,
                                  saved_at,
                                  saved_tensor_at,
                                  shape_at};

}  // namespace

const plait_engine &role() {
  static const plait_engine table{PLAIT_HEADER(plait_engine),
                                  "plait_autograd",
                                  const_cast<Introspection *>(&introspection),
                                  uint64_t(__builtin_ctzll(engine.bit)),
                                  enabled,
                                  set_enabled,
                                  set_requires_grad,
                                  leaf,
                                  get_grad,
                                  set_grad,
                                  node_of,
                                  name_of,
                                  retain_grad,
                                  detach_,
                                  backward,
                                  record_host};
  return table;
}

}  // namespace plait::autograd
