// Making and destroying nodes. Destruction is a loop, so that deep graphs do not overflow the
// stack.
#include "node.hpp"

#include <cctype>

#include "watch.hpp"

namespace plait::autograd {
namespace {

std::atomic<uint64_t> sequence{1};

void release_op(OpNode *n) noexcept {
  for (uint32_t i = 0; i < n->n_saved; i++) plait_release(n->saved[i].tensor);
  for (uint32_t i = 0; i < n->n_in; i++)
    if (n->in[i].tag == PLAIT_OBJECT) plait_release_object(n->in[i].u.o);
}

// Whether a node whose last reference was given up dies. A sole owner gives its reference up
// without counting it, and meanwhile who knows the node weakly may have taken another one.
bool dies(HostNode *n) noexcept {
  WeakNode *weak = n->weak.load(std::memory_order_acquire);
  if (!weak) return true;
  {
    const Spin guard(weak->spin);
    if (__atomic_load_n(&n->o.refs, __ATOMIC_ACQUIRE) > 1 &&
        __atomic_fetch_sub(&n->o.refs, 1, __ATOMIC_ACQ_REL) != 1)
      return false;
    weak->node = nullptr;
  }
  n->weak.store(nullptr, std::memory_order_relaxed);
  plait_release(weak);
  return true;
}

void destroy(Node *n) noexcept {
  const size_t bytes = n->bytes;
  for (uint32_t i = 0; i < n->n_edges; i++) plait_release(n->edges[i].node);
  if (n->extra.load(std::memory_order_acquire)) drop_extra(n);
  if (n->code) plait_release_object(n->code);
  plait_release(n->stream);
  switch (n->kind) {
    case Kind::op: release_op(static_cast<OpNode *>(n)); break;
    case Kind::host: plait_release_object(static_cast<HostNode *>(n)->callable); break;
    case Kind::assigned: plait_release(static_cast<ViewNode *>(n)->inner); break;
    case Kind::leaf: {
      auto *leaf = static_cast<Leaf *>(n);
      plait_release(leaf->grad);
      plait_release(leaf->place);
      if (leaf->layout.shape)
        deallocate(leaf->layout.shape, 2 * size_t(leaf->layout.ndim) * sizeof(int64_t));
      break;
    }
    case Kind::strided:
    case Kind::missing:
    case Kind::constant: break;
  }
  deallocate(n, bytes);
}

// Releasing a saved tensor or an edge may drop further nodes; they join the list instead of the
// call stack.
void drop_node(plait_object *o) {
  auto *n = reinterpret_cast<Node *>(o);
  if (n->kind == Kind::host && !dies(static_cast<HostNode *>(n))) return;
  Releases &r = releases();
  n->link = r.pending;
  r.pending = n;
  if (r.draining) return;
  r.draining = true;
  while (Node *m = r.pending) {
    r.pending = m->link;
    destroy(m);
  }
  r.draining = false;
}

void drop_history(plait_object *o) {
  auto *h = reinterpret_cast<History *>(o);
  plait_release(h->node);
  plait_release(h->cell);
  deallocate(h, sizeof *h);
}

void drop_cell(plait_object *o) {
  auto *c = reinterpret_cast<Cell *>(o);
  plait_release(c->grad);
  deallocate(c, sizeof *c);
}

void drop_weak(plait_object *o) { deallocate(o, sizeof(WeakNode)); }

std::string camel(const std::string &name) {
  std::string s;
  bool upper = true;
  for (const char c : name) {
    if (c == '_' || c == '.') {
      upper = true;
    } else {
      s += upper ? char(std::toupper(static_cast<unsigned char>(c))) : c;
      upper = false;
    }
  }
  return s + "Backward";
}

}  // namespace

const plait_type node_type{PLAIT_HEADER(plait_type), "autograd node", drop_node};
const plait_type history_type{PLAIT_HEADER(plait_type), "autograd history", drop_history};
const plait_type cell_type{PLAIT_HEADER(plait_type), "autograd gradient", drop_cell};

const plait_type weak_type{PLAIT_HEADER(plait_type), "autograd weak node", drop_weak};

WeakNode *weak_of(HostNode *n) {
  WeakNode *weak = n->weak.load(std::memory_order_acquire);
  if (!weak) {
    auto *result = static_cast<WeakNode *>(allocate(sizeof(WeakNode)));
    *result = {{1, &weak_type}, n, 0, 0};
    if (n->weak.compare_exchange_strong(weak, result, std::memory_order_acq_rel))
      weak = result;
    else
      deallocate(result, sizeof *result);
  }
  plait_retain(weak);
  return weak;
}

Node *locked(WeakNode *weak) noexcept {
  const Spin guard(weak->spin);  // the node's memory is there while the lock is held
  Node *n = weak->node;
  uint64_t refs = n ? __atomic_load_n(&n->o.refs, __ATOMIC_RELAXED) : 0;
  while (refs && !__atomic_compare_exchange_n(&n->o.refs, &refs, refs + 1, true, __ATOMIC_ACQUIRE,
                                              __ATOMIC_RELAXED)) {
  }
  return refs ? n : nullptr;
}

uint64_t next_sequence() noexcept { return sequence.load(std::memory_order_relaxed); }

void number(plait_thread *thread, Node *n) noexcept {
  n->sequence = sequence.fetch_add(1, std::memory_order_relaxed);
  thread->node = n->sequence;
  if (!n->code) {
    const plait_site now = current_site();
    n->code = now.code;
    n->offset = int32_t(now.offset);
  }
  if (watching()) note_site(n);
}

void note_stream(plait_thread *thread, Node *n) noexcept {
  if (!is_accelerator(device_of(n))) return;
  plait_stream *current = engine.runtime->stream(thread, device_of(n));
  if (current) plait_retain(current);
  n->stream = current;
}

void stamp(plait_thread *thread, Node *n) noexcept {
  number(thread, n);
  note_stream(thread, n);
}

void start(Node *n, Kind kind, size_t bytes) noexcept {
  n->o = {1, &node_type};
  n->owner.store(nullptr, std::memory_order_relaxed);
  n->link = nullptr;
  n->sequence = 0;
  n->view_version = 0;
  n->edges = nullptr;
  n->outs = nullptr;
  n->buffers = nullptr;
  n->extra.store(nullptr, std::memory_order_relaxed);
  n->code = nullptr;
  n->offset = 0;
  n->derivative.store(Derivative::no, std::memory_order_relaxed);
  n->stream = nullptr;
  n->bytes = uint32_t(bytes);
  n->n_edges = n->n_outs = n->pending = 0;
  n->capture = 0;
  n->kind = kind;
  n->values.store(kHolding, std::memory_order_relaxed);
  n->needed = false;
  n->form = 0;
}

void lay_out(Layout &l, int64_t *room, const plait_tensor *t) noexcept {
  l = {t->dl.dtype, t->dl.ndim, t->dl.device, room};
  for (int32_t i = 0; i < t->dl.ndim; i++) room[i] = t->dl.shape[i];
}

std::string device_text(DLDevice d) { return plait::device_text(engine.runtime, d); }

bool fits(const Layout &l, const plait_tensor *t) noexcept {
  if (l.ndim != t->dl.ndim || !same(l.dtype, t->dl.dtype) || !same(l.device, t->dl.device))
    return false;
  for (int32_t i = 0; i < l.ndim; i++)
    if (l.shape[i] != t->dl.shape[i]) return false;
  return true;
}

Leaf *new_leaf(const plait_tensor *t) {
  auto *leaf = new (allocate(sizeof(Leaf))) Leaf;
  start(leaf, Kind::leaf, sizeof(Leaf));
  leaf->grad = leaf->place = leaf->buffer = nullptr;
  leaf->spin = leaf->frozen = 0;
  leaf->layout = {t->dl.dtype, 0, t->dl.device, nullptr};
  leaf->outs = &leaf->layout;
  leaf->buffers = &leaf->buffer;
  leaf->edges = &leaf->no_edge;
  leaf->no_edge = {nullptr, 0, 0};
  leaf->n_outs = 1;
  leaf->sequence = ~uint64_t(0);  // it has no edges, so its memory is freed at once
  return leaf;
}

Cell *new_cell() {
  auto *c = static_cast<Cell *>(allocate(sizeof(Cell)));
  *c = {{1, &cell_type}, nullptr, 0, 0};
  return c;
}

std::string written_name(const plait_op *op, uint32_t form) {
  const std::string name = op->name;
  if (form != PLAIT_INPLACE) return name;
  return name.substr(0, name.find('.')) + "_";
}

std::string error_name(const plait_op *op, uint32_t form) {
  return op->flags & PLAIT_OP_INTERNAL ? "backward" : written_name(op, form);
}

std::string node_name(const Node *n) {
  switch (n->kind) {
    case Kind::leaf: return "AccumulateGrad";
    case Kind::host: return static_cast<const HostNode *>(n)->name;
    case Kind::strided: return "AsStridedBackward";
    case Kind::assigned: return "CopySlices";
    case Kind::op: return camel(static_cast<const OpNode *>(n)->op->name);
    case Kind::missing: return camel(static_cast<const MissingNode *>(n)->op->name);
    case Kind::constant: return "ConstantBackward";
  }
  return "Node";
}

std::string step_name(const Node *n) {
  const char *step = n->kind == Kind::op
                         ? static_cast<const OpNode *>(n)->step.load(std::memory_order_relaxed)
                         : nullptr;
  return step ? camel(step) : node_name(n);
}

}  // namespace plait::autograd
