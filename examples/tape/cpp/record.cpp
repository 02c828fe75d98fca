// The layer: every operator call on tensors that require grad passes here and leaves a node behind.
#include <cctype>

#include "tape.hpp"

namespace plait::tape {
namespace {

std::string shown(const plait_call *c) {  // as users write it: mul_
  return std::string(c->op->name) + (c->form == PLAIT_INPLACE ? "_" : "");
}

std::string node_name(const plait_op *op) {  // mul: MulBackward
  std::string name(op->name);
  name = name.substr(0, name.find('.')) + "Backward";
  name[0] = char(std::toupper(name[0]));
  return name;
}

uint32_t written_arguments(const plait_call *c) {
  uint32_t bits = c->form == PLAIT_INPLACE ? 1u : 0u;
  for (uint16_t i = 0; i < c->op->n_args; i++)
    if (plait_arg_at(c->op, i)->flags & PLAIT_ARG_WRITES) bits |= 1u << i;
  return bits;
}

template <class F>
uint32_t each_input(const plait_call *c, F &&f) {
  return each_tensor<plait_arg_at>(c->op, c->in, c->n_in, f);
}
template <class F>
uint32_t each_result(const plait_call *c, F &&f) {
  return each_tensor<plait_result_at>(c->op, c->out, c->n_out, f);
}

// [refusals]
// Writes that would make a gradient wrong are refused before anything is written.
void check_write(const plait_call *c, const plait_tensor *t, const char *name, bool recorded) {
  const plait_tensor *base = t->base;
  const auto leaf = [](const plait_tensor *x) { return x && has_bit(x) && is_leaf(x); };
  if (leaf(t) || leaf(base))
    raise(c->thread, PLAIT_ERROR, shown(c),
          "`%s` of shape %s is a %sleaf that requires grad and would be written in place; write it "
          "within no_grad(), or use the out-of-place form",
          name, shape_text(t).c_str(), leaf(t) ? "" : "view of a ");
  if (base && (recorded || has_bit(t) || has_bit(base))) {
    if (t->flags & PLAIT_TENSOR_CUT)
      raise(c->thread, PLAIT_NOT_IMPLEMENTED, shown(c),
            "`%s` of shape %s is a view that was made within no_grad() or by a Function, and would "
            "be written in place, which its base's gradient would miss; clone() it first",
            name, shape_text(t).c_str());
    window_of(t);  // refuses what cannot be differentiated
  }
  for (const plait_tensor *x : {t, base})
    if (x && has_bit(x) && history(x) && history(x)->cell)
      raise(c->thread, PLAIT_NOT_IMPLEMENTED, shown(c),
            "`%s` of shape %s, or its base, retains its gradient and would be written in place, "
            "which this engine does not follow; clone() it first",
            name, shape_text(t).c_str());
}

void check_writes(const plait_call *c, uint32_t written, bool recorded) {
  each_input(c, [&](const plait_tensor *t, uint32_t argument, uint32_t, uint32_t) {
    if (written >> argument & 1) check_write(c, t, plait_arg_at(c->op, argument)->name, recorded);
  });
  if (c->form != PLAIT_OUT) return;
  bool target = false;
  each_result(c, [&](const plait_tensor *t, uint32_t, uint32_t, uint32_t) {
    target |= requires_grad(t) || (t->base && has_bit(t->base));
  });
  if (recorded || target)
    raise(c->thread, PLAIT_ERROR, shown(c),
          "out= has no derivative, but an argument requires grad; call it without out=, or within "
          "no_grad()");
}
// [/refusals]

// Copies an argument that isn't a tensor, with what it points to.
plait_value copied(Call &call, const plait_value &from) {
  if (from.tag == PLAIT_TENSOR) return none();
  plait_value v = from;
  size_t size = 0;
  if (from.tag == PLAIT_INTS) size = from.n * sizeof(int64_t);
  if (from.tag == PLAIT_FLOATS) size = from.n * sizeof(double);
  if (from.tag == PLAIT_COMPLEX) size = 2 * sizeof(double);
  if (from.tag == PLAIT_STRING) size = from.n + 1;
  if (from.tag == PLAIT_TENSORS) v.u.ts = nullptr;  // keeps its length
  if (from.tag == PLAIT_OBJECT && from.u.o)
    call.objects.push_back(Ref<plait_object>::share(from.u.o));
  if (size) {
    call.memory.emplace_back(new char[size]);
    std::memcpy(call.memory.back().get(), from.u.s, size);
    v.u.s = call.memory.back().get();
  }
  return v;
}

// [save]
// The tensor as its derivative reads it. What the call will overwrite (x.mul_(x)) is copied. Where
// the derivative reads the shape only, a handle without bytes is enough.
Saved saved_input(const plait_call *c, plait_tensor *t, const plait_needs &needs, uint32_t written,
                  uint32_t position) {
  static const Operator clone(engine.runtime, "clone");
  Saved s;
  s.position = position;
  if (!(needs.in & bit_of(position))) {
    check(engine.runtime->tensor_new(c->thread, t->dl.dtype, t->dl.ndim, t->dl.shape, nullptr,
                                     DLDevice{PLAIT_META, 0}, s.bytes.out()));
    return s;
  }
  bool overwritten = false;
  each_input(c, [&](const plait_tensor *other, uint32_t argument, uint32_t, uint32_t) {
    overwritten |= (written >> argument & 1) && other->storage == t->storage;
  });
  const Recording quiet(c->thread, false);
  s.bytes = overwritten ? clone(c->thread, Tensor::share(t)) : alias(c->thread, Tensor::share(t));
  s.version = version(s.bytes.get());
  return s;
}

std::shared_ptr<Call> saved_call(const plait_call *c, const plait_needs &needs, uint32_t written) {
  auto call = std::make_shared<Call>();
  call->op = c->op;
  call->n_results = c->n_out;
  for (uint16_t i = 0; i < c->n_in; i++) call->in.push_back(copied(*call, c->in[i]));
  each_input(c, [&](plait_tensor *t, uint32_t argument, uint32_t item, uint32_t position) {
    if (!((needs.in | needs.meta) & bit_of(position))) return;
    call->saved.push_back(saved_input(c, t, needs, written, position));
    call->saved.back().argument = argument;
    call->saved.back().item = item;
  });
  return call;
}

void save_results(const plait_call *c, Call &call, const plait_needs &needs) {
  each_result(c, [&](plait_tensor *t, uint32_t result, uint32_t item, uint32_t position) {
    if (needs.out & bit_of(position))
      call.saved.push_back(
          {alias(c->thread, Tensor::share(t)), version(t), result, item, position, true});
  });
}
// [/save]

// [attach]
void attach(const plait_call *c, const Ref<Node> &node, uint32_t written) {
  const auto is_written = [&](const plait_tensor *t) {
    bool found = false;
    each_input(c, [&](const plait_tensor *other, uint32_t argument, uint32_t, uint32_t) {
      found |= (written >> argument & 1) && other == t;
    });
    return found;
  };
  each_result(c, [&](plait_tensor *t, uint32_t, uint32_t, uint32_t position) {
    node->outputs.resize(position + 1);
    node->outputs[position] = layout_of(t);
    if (!differentiable(t->dl.dtype)) return;
    plait_tensor *base = t->flags & PLAIT_TENSOR_CUT ? nullptr : t->base;
    if (base && is_written(t))
      write_base(t, requires_grad(base) ? output_of(c->thread, base) : NodeOutput{},
                 {node, position});
    const bool is_window = node->missing && base && has_bit(base);  // as_strided
    set_history(t, is_window ? read_node(c->thread, t) : NodeOutput{node, position});
  });
}
// [/attach]

bool worth_it(const plait_call *c) {  // argmax, detach: no gradient comes back from there
  bool any = false;
  each_result(c, [&](const plait_tensor *t, uint32_t, uint32_t, uint32_t) {
    any |= differentiable(t->dl.dtype) &&
           (c->op->def->vjp || t->base || !(c->op->flags & PLAIT_OP_VIEW));
  });
  return any;
}

// [layer]
plait_status recorded(plait_call *c) {
  uint64_t need = 0;  // which inputs want gradients
  std::vector<Edge> edges;
  const uint32_t positions =
      each_input(c, [&](plait_tensor *t, uint32_t, uint32_t, uint32_t position) {
        if (!requires_grad(t) || !differentiable(t->dl.dtype)) return;
        need |= bit_of(position);
        edges.resize(position + 1);
        edges[position] = {output_of(c->thread, t), layout_of(t)};
      });
  const uint32_t written = written_arguments(c);
  if (written || c->form == PLAIT_OUT) check_writes(c, written, need);
  if (!need) return engine.runtime->call_below(c);
  const plait_op_def *def = c->op->def;
  if (!def->vjp && def->decompose) return engine.runtime->decompose(c);
  const plait_needs needs = plait::needs_of(c, need);
  const auto call = saved_call(c, needs, written);  // before the call: it may write
  const plait_status s = engine.runtime->call_below(c);
  if (s != PLAIT_OK || !worth_it(c)) return s;
  try {
    const Ref<Node> node = new_node(node_name(c->op));
    save_results(c, *call, needs);
    edges.resize(positions);
    node->edges = std::move(edges);
    node->missing = !def->vjp;
    node->call = call;
    attach(c, node, written);
  } catch (...) {  // the caller of a call that failed owns no results
    for (uint16_t i = 0; c->form == PLAIT_FUNCTION && i < c->n_out; i++)
      engine.runtime->release_value(c->out + i);
    throw;
  }
  return s;
}
// [/layer]

}  // namespace

plait_status layer(plait_call *c) {
  return border(c->thread, c->op->name, [c] { return recorded(c); });
}

namespace {
// An output in an input's memory has the function as its history, and is not a view of the input: a
// write through such a view would leave the function out.
void cut(plait_tensor *t, plait_tensor *const *inputs, uint32_t n_in) {
  for (uint32_t i = 0; i < n_in; i++)
    if (inputs[i] == t) return;  // written in place by the function
  for (uint32_t i = 0; i < n_in && !t->base; i++) {
    plait_tensor *from = inputs[i], *root = from && from->base ? from->base : from;
    if (!from || root == t || from->storage != t->storage) continue;
    t->base = root;
    plait_retain(root);
  }
  if (t->base) t->flags |= PLAIT_TENSOR_VIEW | PLAIT_TENSOR_CUT;
}
}  // namespace

// [function]
plait_status record(void *, plait_thread *thread, const char *name, plait_object *callable,
                    plait_tensor *const *inputs, uint32_t n_in, plait_tensor *const *outputs,
                    uint32_t n_out, plait_object **node) {
  return border(thread, name, [&]() -> plait_status {
    if (node) *node = nullptr;
    bool any = false;
    std::vector<Edge> edges(n_in);
    for (uint32_t i = 0; i < n_in; i++) {
      if (!inputs[i] || !requires_grad(inputs[i])) continue;
      any = true;
      edges[i] = {output_of(thread, inputs[i]), layout_of(inputs[i])};
    }
    if (!any || (thread->excluded & engine.bit)) return PLAIT_OK;
    const Ref<Node> result = new_node(name);
    result->edges = std::move(edges);
    result->function = Ref<plait_object>::share(callable);
    result->outputs.resize(n_out);
    for (uint32_t i = 0; i < n_out; i++) {
      plait_tensor *t = outputs[i];
      if (!t) continue;
      bool written = false;
      for (uint32_t k = 0; k < n_in; k++) written |= inputs[k] == t;
      if (written && (t->base || (has_bit(t) && is_leaf(t))))
        raise(
            thread, PLAIT_ERROR, name,
            "output %u of shape %s was written in place and is a leaf or a view; clone() it first",
            unsigned(i), shape_text(t).c_str());
      if (!written && requires_grad(t))
        raise(thread, PLAIT_ERROR, name, "output %u already has a history; return detach() of it",
              unsigned(i));
      result->outputs[i] = layout_of(t);
    }
    for (uint32_t i = 0; i < n_out; i++)
      if (outputs[i] && differentiable(outputs[i]->dl.dtype)) {
        cut(outputs[i], inputs, n_in);
        set_history(outputs[i], {result, i});
      }
    if (node) *node = &Ref<Node>(result).release()->o;
    return PLAIT_OK;
  });
}
// [/function]

}  // namespace plait::tape
