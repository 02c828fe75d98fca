// Calls of kernels without the dispatcher. What the dispatcher does for a call (it checks the
// arguments, computes shapes and dtypes, tests whether memory overlaps) has the same result at each
// run, as long as shapes are fixed, so that a run may call the kernel that it would choose.
#include <algorithm>

#include <plait/free_threads.h>

#include "program/program.hpp"

namespace plait::graph {

namespace {

bool is_empty(const TensorType &t) {
  return std::find(t.shape.begin(), t.shape.end(), 0) != t.shape.end();
}

bool is_expanded(const TensorType &t) {
  for (size_t i = 0; i < t.shape.size(); i++)
    if (t.shape[i] > 1 && t.strides[i] == 0) return true;
  return false;
}

// Whether the tensor has the dtype, shape and strides.
bool is_like(const plait_tensor *t, const TensorType &type) {
  if (!same(t->dl.dtype, type.dtype) || size_t(t->dl.ndim) != type.shape.size()) return false;
  for (size_t i = 0; i < type.shape.size(); i++)
    if (t->dl.shape[i] != type.shape[i] ||
        (type.shape[i] > 1 && t->dl.strides[i] != type.strides[i]))
      return false;
  return true;
}

bool equal(const plait_value &a, const plait_value &b) {
  return a.tag == b.tag && a.n == b.n && a.u.i == b.u.i;
}

}  // namespace

// `in` has meta tensors. The shape function must leave them as they are: what it casts is computed
// for each call.
bool Program::is_preparable(plait_thread *thread, const Node &n,
                            const std::vector<plait_value> &in) const {
  const plait_op *op = n.op;
  const bool is_pointwise = op->flags & PLAIT_OP_POINTWISE;
  if (!n.runs || n.allocates || n.slots.empty() || n.results.empty() || !n.numbers.empty())
    return false;
  if (n.form == PLAIT_OUT || (n.form == PLAIT_INPLACE && !is_pointwise)) return false;
  if (!op->def->shape || (op->flags & (PLAIT_OP_VIEW | PLAIT_OP_ANY_DEVICE))) return false;
  for (uint16_t i = 0; i < op->n_args; i++)
    if ((plait_arg_at(op, i)->flags & PLAIT_ARG_WRITES) ||
        (n.in[i].tag == PLAIT_DEVICE && n.in[i].u.device.device_type != kDLCPU))
      return false;
  for (const Slot &slot : n.slots)
    if (values_[size_t(slot.value)].type.device.device_type != kDLCPU) return false;

  std::vector<plait_value> after = in, out(n.results.size(), none());
  plait_call c{};
  c.size = sizeof c;
  c.n_in = op->n_args;
  c.n_out = op->n_results;
  c.op = op;
  c.in = after.data();
  c.out = out.data();
  c.thread = thread;
  c.device = {PLAIT_META, 0};
  const plait_status s = op->def->shape(&c);
  bool fits = s == PLAIT_OK && !c.owned;
  if (s < 0) runtime->clear(thread);
  for (size_t i = 0; fits && i < in.size(); i++) fits = equal(after[i], in[i]);
  for (uint16_t i = 0; i < op->n_args; i++)
    if (c.owned >> i & 1) runtime->release_value(&after[i]);
  for (size_t i = 0; fits && i < out.size(); i++) {
    fits = n.results[i].size() == 1 && out[i].tag == PLAIT_TENSOR;
    if (!fits) break;
    const int32_t v = n.form == PLAIT_INPLACE ? n.slots[0].value : n.results[i][0];
    fits = v >= 0;
    if (!fits) break;
    const TensorType &type = values_[size_t(v)].type;
    fits = is_like(out[i].u.t, type) && !is_empty(type) && !is_expanded(type);
  }
  for (plait_value &v : out) runtime->release_value(&v);
  if (!fits || n.form == PLAIT_FUNCTION) return fits;

  // In place: other operands must be the target itself or lie elsewhere. Inputs and weights may
  // share memory that the plan does not know of.
  const Value &target = values_[size_t(n.slots[0].value)];
  const auto is_given = [&](const Value &v) {
    const Where where = memories_[size_t(v.memory)].where;
    return where == Where::input || where == Where::weight;
  };
  return std::all_of(n.slots.begin(), n.slots.end(), [&](const Slot &slot) {
    const Value &v = values_[size_t(slot.value)];
    if (v.memory != target.memory) return !is_given(v) || !is_given(target);
    return v.offset == target.offset && same(v.type.dtype, target.type.dtype) &&
           v.type.shape == target.type.shape && v.type.strides == target.type.strides;
  });
}

// Not while an observer wants to see calls, nor on a host without a global lock, where the
// dispatcher notes which tensors are in use.
bool Program::may_skip_dispatcher() const {
  if (__atomic_load_n(runtime->observed, __ATOMIC_RELAXED) & PLAIT_EVENT_OP) return false;
  if (__atomic_load_n(runtime->settings, __ATOMIC_RELAXED) & PLAIT_SETTING_FREE_THREADS)
    return false;
  if (keeps_outputs_) return true;
  // an output of before may be an input
  for (const int32_t o : outputs_)
    for (size_t i = 0; i < n_inputs(); i++)
      if (size_t(o) != i && tensors_[size_t(o)] &&
          tensors_[size_t(o)]->storage == tensors_[i]->storage)
        return false;
  return true;
}

void Program::call_prepared(plait_thread *thread, Node &n) {
  plait_value in[PLAIT_MAX_ARGS];
  std::copy(n.in.begin(), n.in.end(), in);
  plait_call c{};
  c.size = sizeof c;
  c.n_in = n.op->n_args;
  c.n_out = n.op->n_results;
  c.op = n.op;
  c.in = in;
  c.out = n.out.data();
  c.thread = thread;
  c.form = n.form == PLAIT_FUNCTION ? uint32_t(PLAIT_OUT) : n.form;
  c.device = {kDLCPU, 0};
  if (n.form == PLAIT_INPLACE) {
    const plait_tensor *t = c.out[0].u.t;  // the errors and versions of these are the dispatcher's
    if ((t->storage->flags & PLAIT_STORAGE_READONLY) || (t->flags & PLAIT_TENSOR_DATA))
      return call_node(thread, n);
  }
  const plait_error *before = thread->error;
  plait_status s = PLAIT_DECLINE;
  for (const plait_entry *e = kernel_of(n.op); e && s == PLAIT_DECLINE; e = e->prev) {
    c.self = e;
    s = e->fn(&c);
  }
  if (s == PLAIT_DECLINE) return call_node(thread, n);
  if (s != PLAIT_OK) {
    if (s > 0 || thread->error == before)
      s = runtime->fail(&c, PLAIT_ERROR, "it failed with status %d and gave no text", s);
    throw Error(s);
  }
  for (uint16_t i = 0; i < c.n_out; i++) runtime->touched(c.out[i].u.t->storage);
}

void Program::call_nodes(plait_thread *thread, const Observer &observer) {
  const bool is_prepared = may_skip_dispatcher();
  for (size_t i = 0; i < nodes_.size(); i++) {
    Node &n = nodes_[i];
    if (!n.runs || (n.is_constant && !constants_in_order_)) continue;
    if (n.group >= 0) {
      Group &group = groups_[size_t(n.group)];
      if (group.first == int32_t(i)) run_group(thread, group, is_prepared, observer);
      continue;
    }
    is_prepared &&n.is_prepared ? call_prepared(thread, n) : call_node(thread, n);
    if (observer) observer(i);
  }
}

}  // namespace plait::graph
