// The layer: it makes a node for every operator call on tensors that require grad.
#include "record.hpp"

#include <vector>

#include "op_node.hpp"
#include "views.hpp"
#include "watch.hpp"

namespace plait::autograd {

uint32_t written_arguments(const plait_call *c) {
  uint32_t bits = c->form == PLAIT_INPLACE ? 1u : 0u;
  for (uint16_t i = 0; i < c->op->n_args; i++)
    if (plait_arg_at(c->op, i)->flags & PLAIT_ARG_WRITES) bits |= 1u << i;
  return bits;
}

namespace {

struct Wanted {  // the inputs that need gradients
  uint64_t need = 0;
  uint32_t positions = 0;  // one past the last of them
};

uint32_t count_positions(const plait_call *c) {
  uint32_t n = 0;
  for (uint16_t i = 0; i < c->n_in; i++) {
    const uint8_t kind = plait_arg_at(c->op, i)->kind;
    if (c->in[i].tag == PLAIT_TENSORS)
      n += c->in[i].n;
    else
      n += c->in[i].tag == PLAIT_TENSOR || kind == PLAIT_KIND_TENSOR || kind == PLAIT_KIND_OPERAND;
  }
  return n;
}

Wanted wanted(const plait_call *c) {
  Wanted w;
  each_input(c, [&](const plait_tensor *t, uint32_t, uint32_t, uint32_t position) {
    if (!requires_grad(t) || !differentiable(t->dl.dtype)) return;
    w.need |= bit_of(position);
    w.positions = position + 1;
  });
  if (w.positions > 63)  // they share a bit, so a derivative computes the gradients of all of them
    w.positions = count_positions(c);
  return w;
}

void refuse_out(const plait_call *c, const Wanted &w) {
  bool target = false;
  for (uint16_t i = 0; i < c->n_out; i++)
    if (const plait_tensor *t = c->out[i].tag == PLAIT_TENSOR ? c->out[i].u.t : nullptr)
      target |= requires_grad(t) || (base_of(t) && has_bit(base_of(t)));
  if (!w.need && !target) return;
  std::string name = "out";
  if (!target)
    each_input(c, [&](const plait_tensor *t, uint32_t argument, uint32_t, uint32_t) {
      if (requires_grad(t)) name = plait_arg_at(c->op, argument)->name;
    });
  raise(c->thread, PLAIT_ERROR, c->op->name,
        "out= has no derivative, but `%s` requires grad; call it without out=, or within no_grad()",
        name.c_str());
}

// An error for a write that cannot be recorded: the histories of other tensors on that memory would
// be wrong.
void refuse_cut(const plait_call *c, const plait_tensor *t, uint32_t argument) {
  if (!is_cut(t) || !(has_bit(t) || has_bit(base_of(t)))) return;
  const std::string name = written_name(c->op, c->form);
  const char *argument_name = plait_arg_at(c->op, argument)->name;
  if (has_bit(t))
    raise(c->thread, PLAIT_ERROR, name,
          "`%s` of shape %s was returned by a Function (or is a view of such a tensor), shares its "
          "memory with an input or another tensor of that function, and would be written in "
          "place: the function's backward would not see the write; clone() it first, or return a "
          "clone() from forward",
          argument_name, shape_text(t).c_str());
  raise(c->thread, PLAIT_ERROR, name,
        "`%s` of shape %s is a view that was made within no_grad() of a tensor that requires grad, "
        "and would be written in place outside of no_grad(): the gradient of that tensor would "
        "not include the write; make the view outside of no_grad() to record the write, or write "
        "it within no_grad() to not record it",
        argument_name, shape_text(t).c_str());
}

void refuse_leaf(const plait_call *c, const plait_tensor *t, uint32_t argument) {
  const std::string name = written_name(c->op, c->form);
  const plait_tensor *base = base_of(t);
  const bool of_leaf = base && has_bit(base) && is_leaf(base);
  if ((!of_leaf || (is_cut(t) && has_bit(t))) && !(has_bit(t) && is_leaf(t)))
    return refuse_cut(c, t, argument);
  raise(c->thread, PLAIT_ERROR, name,
        "`%s` of shape %s is a %sleaf that requires grad and would be written in place: its "
        "gradient would belong to another value; write it within no_grad(), or use the "
        "out-of-place form",
        plait_arg_at(c->op, argument)->name, shape_text(t).c_str(), of_leaf ? "view of a " : "");
}

bool any_differentiable_result(const plait_call *c) {
  bool any = false;
  each_result(c, [&](const plait_tensor *t, uint32_t, uint32_t, uint32_t) {
    any |= differentiable(t->dl.dtype);
  });
  return any;
}

// Histories of the results.
void attach_results(plait_call *c, Node *node, uint32_t written) {
  uint32_t index = 0;
  for (uint16_t i = 0; i < c->n_out; i++) {
    plait_tensor *const *list = c->out[i].tag == PLAIT_TENSORS ? c->out[i].u.ts : &c->out[i].u.t;
    const uint32_t n = c->out[i].tag == PLAIT_TENSORS ? c->out[i].n : 1;
    for (uint32_t k = 0; k < n; k++, index++) {
      plait_tensor *t =
          c->out[i].tag == PLAIT_TENSOR || c->out[i].tag == PLAIT_TENSORS ? list[k] : nullptr;
      if (!t || !differentiable(t->dl.dtype)) continue;
      if (written && base_of(t))
        write_view(c->thread, t, Ref<Node>::share(node), index);
      else
        set_history(t, Ref<Node>::share(node), index);
      if (base_of(t)) node->view_version = history_version(t);
    }
  }
}

// The derivative of a view follows from its position in its base. A view that does not track its
// base has no history, like the result of detach.
void attach_views(plait_call *c) {
  plait_tensor *source = nullptr;  // a cut view's history begins there
  each_input(c, [&](plait_tensor *t, uint32_t, uint32_t, uint32_t) {
    if (!source) source = t;
  });
  each_result(c, [&](plait_tensor *t, uint32_t, uint32_t, uint32_t) {
    if (!base_of(t) || !differentiable(t->dl.dtype)) return;
    // a leaf may be a view of a base that does not require grad
    plait_tensor *of = is_cut(t) || !requires_grad(base_of(t)) ? source : base_of(t);
    if (of && requires_grad(of)) set_history(t, strided_node(c->thread, t, of), 0);
  });
}

Ref<Node> missing_node(const plait_call *c, const Wanted &w, uint32_t n_outs, Overwritten &before) {
  Pieces size;
  size.take<MissingNode>(1);
  size.take<Edge>(w.positions);
  size.take<plait_tensor *>(n_outs);
  size.take<Layout>(n_outs);
  Pieces at(allocate(size.size()));
  auto *n = new (at.take<MissingNode>(1)) MissingNode;
  start(n, Kind::missing, size.size());
  n->op = c->op;
  n->form = uint8_t(c->form);
  n->edges = at.take<Edge>(w.positions);
  n->buffers = at.take<plait_tensor *>(n_outs);
  n->outs = at.take<Layout>(n_outs);
  for (uint32_t i = 0; i < n_outs; i++) {
    n->buffers[i] = nullptr;
    n->outs[i] = {{}, -1, {}, nullptr};  // gradients are not checked
  }
  n->n_outs = n_outs;
  const Ref<Node> owner = Ref<Node>::steal(n);
  connect(c, n, w.positions, w.need, before);
  note_stream(c->thread, n);
  return owner;
}

uint32_t count_results(const plait_call *c) {
  uint32_t n = 0;
  for (uint16_t i = 0; i < c->n_out; i++) n += c->out[i].tag == PLAIT_TENSORS ? c->out[i].n : 1;
  return n;
}

void release_results(plait_call *c) {
  if (c->form == PLAIT_FUNCTION)
    for (uint16_t i = 0; i < c->n_out; i++) engine.runtime->release_value(c->out + i);
}

// Runs f after a call succeeded. If f fails, the results are released, as the caller of a failed
// call owns none.
template <class F>
void or_release(plait_call *c, F &&f) {
  try {
    f();
  } catch (...) {
    release_results(c);
    throw;
  }
}

// Operators without a derivative of their own.
plait_status without_vjp(plait_call *c, const Wanted &w, uint32_t written) {
  if (c->op->def->decompose) return engine.runtime->decompose(c);
  Overwritten before;
  if (written) before.inspect(c, written, w.need, 0);
  const plait_status s = engine.runtime->call_below(c);
  if (s != PLAIT_OK || !any_differentiable_result(c)) return s;
  if (c->op->flags & PLAIT_OP_VIEW) {
    or_release(c, [&] { attach_views(c); });
    return s;
  }
  or_release(
      c, [&] { attach_results(c, missing_node(c, w, count_results(c), before).get(), written); });
  return s;
}

// The layer.
plait_status recorded(plait_call *c) {
  const Wanted w = wanted(c);
  if (c->form == PLAIT_OUT) refuse_out(c, w);
  const uint32_t written = written_arguments(c);
  if (written)
    each_input(c, [&](const plait_tensor *t, uint32_t argument, uint32_t, uint32_t) {
      if (!(written >> argument & 1)) return;
      refuse_leaf(c, t, argument);
      if (w.need && c->op->def->vjp && base_of(t)) check_writable(c->thread, t);
    });
  if (!w.need) return engine.runtime->call_below(c);
  if (!c->op->def->vjp) return without_vjp(c, w, written);
  const plait_needs needs = needs_of(c, w.need);
  Overwritten before;
  if (written) before.inspect(c, written, w.need, needs.in);
  const plait_status s = engine.runtime->call_below(c);
  if (s != PLAIT_OK || !any_differentiable_result(c)) return s;
  or_release(c, [&] {
    const Ref<OpNode> node = op_node(c, w.positions, w.need, needs, before);
    if (watching() && anomaly_nan) note_nan(c, node.get());
    attach_results(c, node.get(), written);
  });
  if (written)
    each_input(c, [&](const plait_tensor *t, uint32_t argument, uint32_t, uint32_t) {
      if (written >> argument & 1) note_recent_write(c, t);
    });
  return s;
}

}  // namespace

void name_step(plait_tensor *t, const char *name, uint64_t first) {
  if (!differentiable(t->dl.dtype) || !requires_grad(t)) return;
  void *slot = t->slot[0];
  const History *history = as_history(slot);
  Node *n = history ? history->node : is_node(slot) ? static_cast<Node *>(slot) : nullptr;
  if (n && n->kind == Kind::op && n->sequence >= first)
    static_cast<OpNode *>(n)->step.store(name, std::memory_order_relaxed);
}

plait_status step_layer(plait_call *c) {
  const uint64_t first = next_sequence();
  const plait_status s = engine.runtime->decompose(c);
  if (s == PLAIT_OK)
    each_result(c, [&](plait_tensor *t, uint32_t, uint32_t, uint32_t) {
      name_step(t, c->op->name, first);
    });
  return s;
}

plait_status layer(plait_call *c) {
  return border(c->thread, c->op->name, [c] { return recorded(c); });
}

}  // namespace plait::autograd
