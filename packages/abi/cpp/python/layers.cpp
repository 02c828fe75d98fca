// Calls that functions of Python serve for a layer, and a layer written in Python
// (docs/design/0033): one function that sees the calls on tensors that are marked, and every call
// of a thread that asks for it. It runs below the layers that record derivatives, so it sees what
// these compute, backward passes too.
#include <plait/layer.hpp>

#include <vector>

#include "values.hpp"

namespace plait::python {
namespace {

constexpr uint32_t position = 8;  // below "autograd" and "forward"
SharedReference layer_function;
uint64_t layer_bit;  // 0: there is no layer yet

PyObject *tensor_object(plait_tensor *t) {
  if (!t) Py_RETURN_NONE;
  plait_retain(t);
  return wrap(t);
}

bool take_tensor(plait_call *c, PyObject *o, plait_tensor **to) {
  *to = nullptr;
  if (o == Py_None) return true;
  plait_tensor *t = unwrap(o);
  if (!t) {
    if (!PyErr_Occurred())
      PyErr_Format(PyExc_TypeError, "%s: a result must be a Tensor, got %s", c->op->name,
                   Py_TYPE(o)->tp_name);
    return false;
  }
  plait_retain(t);
  *to = t;
  return true;
}

bool take_tensors(plait_call *c, PyObject *o, plait_value *to) {
  Object list(sequence_of(o, "a list of tensors is required as a result"));
  if (!list) return false;
  const Py_ssize_t n = PySequence_Fast_GET_SIZE(list.get());
  std::vector<plait_tensor *> all(static_cast<size_t>(n), nullptr);
  bool fine = true;
  for (Py_ssize_t i = 0; fine && i < n; i++)
    fine = take_tensor(c, PySequence_Fast_GET_ITEM(list.get(), i), &all[size_t(i)]);
  if (fine) {
    const plait_status s = state.runtime->tensors(c->thread, all.data(), uint32_t(n), to);
    if (s < 0) raise(c->thread, s);
    fine = s >= 0;
  }
  for (plait_tensor *t : all) plait_release(t);
  return fine;
}

// One result, by the kind that the operator's definition says.
bool take(plait_call *c, uint32_t i, PyObject *o) {
  const uint32_t kind = plait_result_at(c->op, i)->kind;
  if (kind == PLAIT_KIND_TENSORS) return take_tensors(c, o, c->out + i);
  if (kind == PLAIT_KIND_TENSOR) {
    plait_tensor *t;
    if (!take_tensor(c, o, &t)) return false;
    c->out[i] = t ? value(t) : none();
    return true;
  }
  const int done = number_from(o, nullptr, c->out + i);
  if (done == PLAIT_NOT_CONVERTIBLE)
    PyErr_Format(PyExc_TypeError, "%s: a result must be a number, got %s", c->op->name,
                 Py_TYPE(o)->tp_name);
  return done == PLAIT_CONVERTED;
}

bool take_results(plait_call *c, PyObject *answer) {
  if (c->form != PLAIT_FUNCTION) return true;  // the targets were written
  if (c->n_out == 1) return take(c, 0, answer);
  if (c->n_out == 0) return true;
  Object list(sequence_of(answer, "several results are required"));
  if (!list) return false;
  if (PySequence_Fast_GET_SIZE(list.get()) != c->n_out) {
    PyErr_Format(PyExc_ValueError, "%s: %d results are required, got %zd", c->op->name,
                 int(c->n_out), PySequence_Fast_GET_SIZE(list.get()));
    return false;
  }
  for (uint32_t i = 0; i < c->n_out; i++)
    if (!take(c, i, PySequence_Fast_GET_ITEM(list.get(), i))) {
      for (uint32_t k = 0; k < i; k++) state.runtime->release_value(c->out + k);
      return false;
    }
  return true;
}

plait_status run(plait_call *c) {
  return serve(c, [] { return layer_function.get(); }, layer_bit);
}

const plait_plugin plugin{
    PLAIT_HEADER(plait_plugin), "python-layer", PY_VERSION, 0, nullptr, nullptr};

bool register_layer() {
  plait_thread *thread = state.runtime->thread();
  uint32_t bit = 0;
  plait_status s = state.runtime->attach(thread, &plugin);
  if (s >= 0) s = state.runtime->layer(thread, "python", position, &bit);
  if (s >= 0)
    s = state.runtime->implement(thread, nullptr, PLAIT_SLOT_LAYER + bit, run, nullptr, &plugin,
                                 nullptr);
  if (s >= 0) layer_bit = uint64_t(1) << bit;
  return s >= 0 || raise(thread, s);
}

PyObject *set_layer(PyObject *, PyObject *function) {
  if (function != Py_None && !PyCallable_Check(function))
    return PyErr_Format(PyExc_TypeError, "set_layer: a callable or None is required, got %s",
                        Py_TYPE(function)->tp_name);
  if (!layer_bit && !register_layer()) return nullptr;
  PyObject *next = function == Py_None ? nullptr : new_reference(function);
  Py_XDECREF(layer_function.exchange(next));
  return PyLong_FromUnsignedLongLong(layer_bit);
}

PyObject *watch_thread(PyObject *, PyObject *on) {
  const int truth = PyObject_IsTrue(on);
  if (truth < 0) return nullptr;
  return PyBool_FromLong(watch_calls(state.runtime->thread(), layer_bit, truth != 0));
}

PyObject *unwatched(PyObject *, PyObject *const *args, Py_ssize_t n) {
  if (n != 3)
    return PyErr_Format(PyExc_TypeError, "unwatched: (function, args, kwargs) is required");
  plait_thread *thread = state.runtime->thread();
  const uint64_t before = thread->excluded;
  thread->excluded |= layer_bit;
  PyObject *result = PyObject_Call(args[0], args[1], args[2]);
  thread->excluded = before;
  return result;
}

PyMethodDef functions[] = {
    {"set_layer", entry<set_layer>, METH_O,
     "set_layer(function, /)\n--\n\nLet a function see calls; see plait_core.overrides. Its bit."},
    {"watch_thread", entry<watch_thread>, METH_O,
     "watch_thread(on, /)\n--\n\nLet the layer see every call of this thread; whether it did."},
    {"unwatched", function(entry<unwatched>), METH_FASTCALL,
     "unwatched(function, args, kwargs, /)\n--\n\nThe call, unseen by the layer."},
    {nullptr, nullptr, 0, nullptr}};

}  // namespace

plait_status serve(plait_call *c, PyObject *(*function)(), uint64_t bit) {
  if (interpreter_gone()) return state.runtime->call_below(c);
  Gil gil;
  drain();
  const Object called(function());
  if (!called) return state.runtime->call_below(c);
  Object answer;
  {
    const InsideLayer inside(c->thread, bit);
    Object args(
        tuple_of(c->n_in, [&](uint32_t i) { return object_from(c->in[i], tensor_object); }));
    const uint32_t n_targets = c->form == PLAIT_FUNCTION ? 0 : c->n_out;
    Object targets(
        args
            ? tuple_of(n_targets, [&](uint32_t i) { return object_from(c->out[i], tensor_object); })
            : nullptr);
    answer = Object(targets ? PyObject_CallFunction(called.get(), "sIOO", c->op->name,
                                                    unsigned(c->form), args.get(), targets.get())
                            : nullptr);
  }
  if (!answer) return keep(c->thread);
  if (answer.get() == Py_Ellipsis) {
    const InsideLayer inside(c->thread, bit, true);
    return state.runtime->decompose(c);
  }
  if (answer.get() == Py_NotImplemented) return state.runtime->call_below(c);
  return take_results(c, answer.get()) ? plait_status(PLAIT_OK) : keep(c->thread);
}

bool add_layers(PyObject *module) { return PyModule_AddFunctions(module, functions) == 0; }

}  // namespace plait::python
