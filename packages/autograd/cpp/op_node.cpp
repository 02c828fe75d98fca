#include "op_node.hpp"

#include "tangents.hpp"
#include "watch.hpp"

namespace plait::autograd {
namespace {

size_t payload(const plait_value &v) {
  switch (v.tag) {
    case PLAIT_INTS: return v.n * sizeof(int64_t);
    case PLAIT_FLOATS: return v.n * sizeof(double);
    case PLAIT_COMPLEX: return 2 * sizeof(double);
    case PLAIT_STRING: return v.n + 1;
    default: return 0;
  }
}

struct Sizes {
  uint32_t edges = 0, outs = 0, saved = 0, shapes = 0;
  size_t dims = 0, bytes = 0;
};

Sizes measure(const plait_call *c, uint32_t positions, const plait_needs &needs) {
  Sizes s;
  s.edges = positions;
  each_input(c, [&](const plait_tensor *t, uint32_t, uint32_t, uint32_t position) {
    if (needs.in & bit_of(position)) {
      s.saved++;
    } else if (needs.meta & bit_of(position)) {
      s.shapes++;
      s.dims += size_t(t->dl.ndim);
    }
  });
  uint32_t position = 0;
  for (uint16_t i = 0; i < c->n_out; i++)
    position += c->out[i].tag == PLAIT_TENSORS ? c->out[i].n : 1;
  s.outs = position;
  each_result(c, [&](const plait_tensor *t, uint32_t, uint32_t, uint32_t at) {
    s.dims += size_t(t->dl.ndim);
    if (needs.out & bit_of(at)) s.saved++;
  });
  for (uint16_t i = 0; i < c->n_in; i++) s.bytes += (payload(c->in[i]) + 7) / 8 * 8;
  return s;
}

struct Tables {
  OpNode *node;
  int64_t *dims;
  char *bytes;
};

Tables lay(Pieces &at, const plait_call *c, const Sizes &s, Edge **edges, Layout **outs,
           plait_tensor ***buffers, plait_value **in, Saved **saved, Shape **shapes) {
  Tables t{};
  t.node = at.take<OpNode>(1);
  *edges = at.take<Edge>(s.edges);
  *outs = at.take<Layout>(s.outs);
  *buffers = at.take<plait_tensor *>(s.outs);
  *in = at.take<plait_value>(c->n_in);
  *saved = at.take<Saved>(s.saved);
  *shapes = at.take<Shape>(s.shapes);
  t.dims = at.take<int64_t>(s.dims);
  t.bytes = at.take<char>(s.bytes);
  return t;
}

// Copies an argument that is not a tensor, with the data it points to, into the node's block.
char *copy_argument(plait_value &to, const plait_value &from, char *room) {
  to = from;
  const size_t size = payload(from);
  if (from.tag == PLAIT_TENSOR)
    to = none();
  else if (from.tag == PLAIT_TENSORS)
    to.u.ts = nullptr;
  else if (from.tag == PLAIT_OBJECT && from.u.o)
    plait_retain_object(from.u.o);
  if (!size) return room;
  std::memcpy(room, from.u.s, size);
  to.u.s = room;
  return room + (size + 7) / 8 * 8;
}

void save_inputs(const plait_call *c, OpNode *n, int64_t *&dims, const plait_needs &needs,
                 const Overwritten &before) {
  each_input(c, [&](plait_tensor *t, uint32_t argument, uint32_t item, uint32_t position) {
    if (needs.in & bit_of(position)) {
      plait_tensor *kept = before.instead(t, argument, item);
      plait_retain(kept);
      n->saved[n->n_saved++] = {
          kept, kept == t ? before.version_of(t) : history_version(kept), argument, item, 0, 0};
    } else if (needs.meta & bit_of(position)) {
      Shape &s = n->shapes[n->n_shapes++];
      s.argument = argument;
      s.item = item;
      lay_out(s.layout, dims, t);
      dims += t->dl.ndim;
    }
  });
}

// A saved result is another handle on its bytes: the result owns this node, so the node must not
// own the result.
void save_results(const plait_call *c, OpNode *n, int64_t *&dims, const plait_needs &needs) {
  for (uint32_t i = 0; i < n->n_outs; i++) n->outs[i] = {{}, -1, {}, nullptr};
  each_result(c, [&](plait_tensor *t, uint32_t result, uint32_t item, uint32_t position) {
    lay_out(n->outs[position], dims, t);
    dims += t->dl.ndim;
    if (!(needs.out & bit_of(position))) return;
    plait_tensor *alias = nullptr;
    check(engine.runtime->tensor_alias(c->thread, t, &alias));
    n->saved[n->n_saved++] = {alias, history_version(t), result, item, 0, 1};
    if (carrying(c->thread) && !packing()) expect_tangent(c->thread, t, &alias->o);
  });
}

// Results have no tangents yet, inputs have.
plait_object *with_tangent(const plait_call *c, const Saved &s, plait_object *packed) {
  packed = packed_with_tangent(packed);
  if (!s.result) {
    const Excluding recorded(c->thread, level_of(c->thread)->recorded);
    keep_tangent(c->thread, as_packed(packed), tangent_of(c->thread, s.tensor));
    return packed;
  }
  each_result(c, [&](const plait_tensor *t, uint32_t result, uint32_t item, uint32_t) {
    if (result == s.argument && item == s.item) expect_tangent(c->thread, t, packed);
  });
  return packed;
}

// Hooks of saved tensors get inputs unchanged. For results, which own the node, they get handles
// without a history. The node saves the results of the hooks in place of the tensors.
void pack_saved(const plait_call *c, OpNode *n) {
  plait_thread *thread = c->thread;
  const Watch *w = watch.load(std::memory_order_acquire);
  if (!w) return;
  const int depth = set_packing(0);  // tensors that a hook's operators save are not packed
  struct Restore {
    int depth;
    ~Restore() { set_packing(depth); }
  } const restore{depth};
  const Excluding quiet(thread, false);
  for (uint32_t i = 0; i < n->n_saved; i++) {
    Saved &s = n->saved[i];
    const uint64_t before = history_version(s.tensor);
    plait_object *packed = w->pack(thread, s.tensor);
    if (!packed) throw Error(PLAIT_HOST_ERROR);
    if (history_version(s.tensor) != before) {
      plait_release_object(packed);
      raise(thread, PLAIT_ERROR, "saved_tensors_hooks",
            "the pack hook wrote the tensor that it was given in place; it must not");
    }
    if (carrying(thread)) packed = with_tangent(c, s, packed);
    plait_release(s.tensor);
    s.tensor = reinterpret_cast<plait_tensor *>(packed);
    s.packed = 1;
  }
}

template <class F>
void each_wanted(const plait_call *c, uint64_t need, F &&f) {
  each_input(c, [&](plait_tensor *t, uint32_t, uint32_t, uint32_t position) {
    if ((need & bit_of(position)) && requires_grad(t) && differentiable(t->dl.dtype))
      f(t, position);
  });
}

}  // namespace

// Recording.
void Overwritten::inspect(const plait_call *c, uint32_t written, uint64_t need, uint64_t saved) {
  looked_ = true;
  each_wanted(c, need, [&](plait_tensor *t, uint32_t position) {
    edges_.emplace_back(position, history_of(c->thread, t));
  });
  each_input(c, [&](const plait_tensor *t, uint32_t argument, uint32_t, uint32_t) {
    if (written >> argument & 1)
      versions_.emplace_back(t->storage, __atomic_load_n(&t->storage->version, __ATOMIC_RELAXED));
  });
  // Inputs in the memory that is written to are saved as copies with the old values: y.mul_(y),
  // y[1:].mul_(y[:-1]). A copy has the old history, so that the node does not own itself.
  each_input(c, [&](plait_tensor *t, uint32_t argument, uint32_t item, uint32_t position) {
    if (!(saved & bit_of(position)) || !writes(t->storage)) return;
    Tensor copy;
    {
      const Excluding quiet(c->thread, false);
      copy = clone(c->thread, Tensor::share(t));
    }
    if (requires_grad(t)) {
      GradientEdge edge = history_of(c->thread, t);
      set_history(copy.get(), std::move(edge.node), edge.index);
    }
    copies_.push_back({argument, item, std::move(copy)});
  });
}

bool Overwritten::writes(const plait_storage *s) const {
  for (const auto &written : versions_)
    if (written.first == s) return true;
  return false;
}

uint64_t Overwritten::version_of(const plait_tensor *t) const {
  for (const auto &[storage, v] : versions_)
    if (storage == t->storage) return history_version(t, v);
  return history_version(t);
}

plait_tensor *Overwritten::instead(plait_tensor *t, uint32_t argument, uint32_t item) const {
  for (const Copy &copy : copies_)
    if (copy.argument == argument && copy.item == item) return copy.tensor.get();
  return t;
}

void Overwritten::connect(Node *node) {
  for (auto &[position, edge] : edges_)
    node->edges[position] = {edge.node.release(), edge.index, 0};
}

void connect(const plait_call *c, Node *node, uint32_t positions, uint64_t need,
             Overwritten &before) {
  for (uint32_t i = 0; i < positions; i++) node->edges[i] = {nullptr, 0, 0};
  node->n_edges = positions;
  if (before.looked()) {
    before.connect(node);
  } else {
    each_wanted(c, need, [&](plait_tensor *t, uint32_t position) {
      GradientEdge edge = history_of(c->thread, t);
      node->edges[position] = {edge.node.release(), edge.index, 0};
    });
  }
  number(c->thread, node);
}

Ref<OpNode> op_node(const plait_call *c, uint32_t positions, uint64_t need,
                    const plait_needs &needs, Overwritten &before) {
  const Sizes sizes = measure(c, positions, needs);
  Edge *edges;
  Layout *outs;
  plait_tensor **buffers;
  plait_value *in;
  Saved *saved;
  Shape *shapes;
  Pieces size;
  lay(size, c, sizes, &edges, &outs, &buffers, &in, &saved, &shapes);
  void *block = allocate(size.size());
  Pieces at(block);
  const Tables t = lay(at, c, sizes, &edges, &outs, &buffers, &in, &saved, &shapes);
  auto *n = new (t.node) OpNode;
  start(n, Kind::op, size.size());
  n->op = c->op;
  n->step.store(nullptr, std::memory_order_relaxed);
  n->form = uint8_t(c->form);
  n->edges = edges;
  n->outs = outs;
  n->buffers = buffers;
  n->in = in;
  n->saved = saved;
  n->shapes = shapes;
  n->n_in = n->n_saved = n->n_shapes = 0;
  n->n_results = c->n_out;
  n->n_outs = sizes.outs;
  for (uint32_t i = 0; i < sizes.outs; i++) buffers[i] = nullptr;
  Ref<OpNode> owner = Ref<OpNode>::steal(n);
  connect(c, n, positions, need, before);
  char *room = t.bytes;
  for (; n->n_in < c->n_in; n->n_in++) room = copy_argument(in[n->n_in], c->in[n->n_in], room);
  int64_t *dims = t.dims;
  save_inputs(c, n, dims, needs, before);
  save_results(c, n, dims, needs);
  note_stream(c->thread, n);
  if (packing()) pack_saved(c, n);
  return owner;
}

}  // namespace plait::autograd
