// Gradients of tensors that samples share: the layer above the engine's (docs/design/0043).
#include <algorithm>
#include <vector>

#include "batched.hpp"

namespace plait::func {
namespace {

// The levels at which a tensor is batched, or all of several.
class Levels {
 public:
  void add(const plait_tensor *t) {
    for (const Batch *b = batch_of(t); b; b = batch_of(b->value))
      if (!has(b->level)) levels_.push_back(b->level);
  }
  bool has(int64_t level) const {
    return std::find(levels_.begin(), levels_.end(), level) != levels_.end();
  }
  bool empty() const { return levels_.empty(); }
  bool within(const Levels &other) const {
    return std::all_of(levels_.begin(), levels_.end(), [&](int64_t l) { return other.has(l); });
  }
  // a list of them
  PyObject *list() const {
    Object result(PyList_New(Py_ssize_t(levels_.size())));
    for (size_t i = 0; result && i < levels_.size(); i++) {
      PyObject *number = PyLong_FromLongLong(levels_[i]);
      if (!number) return nullptr;
      PyList_SET_ITEM(result.get(), Py_ssize_t(i), number);
    }
    return result.release();
  }

 private:
  std::vector<int64_t> levels_;
};

bool has_history(const plait_tensor *t, const plait_engine *e) { return t->layers >> e->layer & 1; }

// An input with history: its index, as the derivative counts inputs, and its levels before the
// call, which may write to it. A view may have its history from a write to its base.
struct Input {
  long index;
  Levels levels;
};

std::vector<Input> inputs_with_history(const plait_call *c, const plait_engine *e) {
  std::vector<Input> results;
  long index = 0;
  const auto see = [&](const plait_tensor *t) {
    if (t && (has_history(t, e) || (t->base && has_history(t->base, e)))) {
      results.push_back({index, {}});
      results.back().levels.add(t);
    }
    index++;
  };
  for (uint16_t i = 0; i < c->n_in; i++) {
    const plait_value &v = c->in[i];
    const uint8_t kind = plait_arg_at(c->op, i)->kind;
    if (v.tag == PLAIT_TENSORS)
      for (uint32_t k = 0; k < v.n; k++) see(v.u.ts[k]);
    else if (v.tag == PLAIT_TENSOR || kind == PLAIT_KIND_TENSOR || kind == PLAIT_KIND_OPERAND)
      see(v.tag == PLAIT_TENSOR ? v.u.t : nullptr);
  }
  return results;
}

// The inputs that samples share: pairs of the index and the levels. nullptr with an exception.
Object shared_inputs(const std::vector<Input> &inputs, const Levels &levels) {
  Object result(PyList_New(0));
  for (const Input &each : inputs) {
    if (levels.within(each.levels)) continue;
    const Object numbers(each.levels.list());
    const Object pair(numbers ? Py_BuildValue("lO", each.index, numbers.get()) : nullptr);
    if (!result || !pair || PyList_Append(result.get(), pair.get()) < 0) return Object();
  }
  return result;
}

// A tensor with the node that the call has recorded. A write to a view is recorded by its base.
plait_tensor *first_recorded(const plait_call *c, const plait_engine *e) {
  plait_tensor *first = nullptr;
  each_tensor(c->out, c->n_out, [&](plait_tensor *t) {
    if (first || !has_history(t, e)) return;
    const bool view = t->base && !(c->op->flags & PLAIT_OP_VIEW) && has_history(t->base, e);
    first = view ? t->base : t;
  });
  return first;
}

// The derivative of a call on batched tensors gives a gradient of each sample for inputs that the
// samples share, too: Python sums these before they meet others of the same input. `levels` are
// those of all inputs; what is written may have more of them after the call.
plait_status sum_shared(plait_call *c, const plait_engine *e, const std::vector<Input> &inputs,
                        Levels levels) {
  const plait_status s = c->thread->runtime->call_below(c);
  plait_tensor *result = s < 0 ? nullptr : first_recorded(c, e);
  if (!result) return s;
  each_tensor(c->out, c->n_out, [&](const plait_tensor *t) { levels.add(t); });
  const auto is_single = [&](const Input &each) { return levels.within(each.levels); };
  if (std::all_of(inputs.begin(), inputs.end(), is_single)) return s;
  const plait::python::Gil gil;
  plait_retain(result);
  const Object wrapped(wrap(result)), sum(functions.sum.get()),
      shared(shared_inputs(inputs, levels));
  const Object done(wrapped && shared ? PyObject_CallFunctionObjArgs(sum.get(), wrapped.get(),
                                                                     shared.get(), nullptr)
                                      : nullptr);
  if (done) return s;
  const plait_status kept = state.python->keep(c->thread);
  if (c->form == PLAIT_FUNCTION)
    for (uint16_t i = 0; i < c->n_out; i++) c->thread->runtime->release_value(c->out + i);
  return kept;
}

bool has_samples(const plait_call *c) {
  bool found = false;
  each_tensor(c->in, c->n_in, [&](const plait_tensor *t) { found |= batch_of(t) != nullptr; });
  return found;
}

// An operator that is made of others, of which one may need the values of each sample, or results
// of a shape that depends on them: then it is called for each sample, with its history.
plait_status taken_apart(plait_call *c) {
  const plait_status s = c->thread->runtime->call_below(c);
  if (s >= 0) return s;
  {
    const plait::python::Gil gil;
    state.python->raise(c->thread, s);
    if (!PyErr_ExceptionMatches(PyExc_Exception) || PyErr_ExceptionMatches(PyExc_MemoryError))
      return state.python->keep(c->thread);
    PyErr_Clear();
  }
  return state.python->serve(c, [] { return functions.loop.get(); }, sharing_bit);
}

}  // namespace

// A call that the engine takes apart comes again in its parts.
plait_status share(plait_call *c) {
  const plait_engine *e = role<plait_engine>(c->thread->runtime);
  const plait_runtime *runtime = c->thread->runtime;
  if (!c->op->def->vjp && c->op->def->decompose && has_samples(c)) return taken_apart(c);
  if (!e || !c->op->def->vjp || c->form == PLAIT_OUT || !e->enabled(e->ctx, c->thread))
    return runtime->call_below(c);
  Levels levels;
  each_tensor(c->in, c->n_in, [&](const plait_tensor *t) { levels.add(t); });
  if (levels.empty()) return runtime->call_below(c);
  const std::vector<Input> inputs = inputs_with_history(c, e);
  return inputs.empty() ? runtime->call_below(c) : sum_shared(c, e, inputs, std::move(levels));
}

}  // namespace plait::func
