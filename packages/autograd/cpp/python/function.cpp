// The functions that plait_autograd.Function uses.
#include "binding.hpp"

namespace plait::autograd::python {
namespace {

PyObject *is_tensor(PyObject *, PyObject *o) {
  const plait_tensor *t = state.python->unwrap(o);
  return !t && PyErr_Occurred() ? nullptr : PyBool_FromLong(t != nullptr);
}

bool requires_grad_in(const plait_engine *e, plait_tensor *t) {
  if (t->layers >> e->layer & 1) return true;
  // a view that was made before an operator with a history wrote to its base
  return t->base && !e->is_leaf(e->ctx, t);
}
PyObject *requires_grad(PyObject *, PyObject *o) {
  plait_tensor *t = tensor_from(o, "requires_grad: argument");
  const plait_engine *e = t ? engine() : nullptr;
  return e ? PyBool_FromLong(requires_grad_in(e, t)) : nullptr;
}

PyObject *version(PyObject *, PyObject *o) {
  const plait_tensor *t = tensor_from(o, "version: argument");
  if (!t) return nullptr;
  return PyLong_FromUnsignedLongLong(__atomic_load_n(&t->storage->version, __ATOMIC_RELAXED));
}

PyObject *describe(PyObject *, PyObject *o) {
  const plait_tensor *t = tensor_from(o, "describe: argument");
  return t ? PyUnicode_FromFormat("%s, shape %s", plait::name(t->dl.dtype), shape_text(t).c_str())
           : nullptr;
}

PyObject *alias(PyObject *, PyObject *o) {
  plait_tensor *t = tensor_from(o, "alias: argument"), *result = nullptr;
  if (!t) return nullptr;
  const plait_status s = state.runtime->tensor_alias(this_thread(), t, &result);
  return s < 0 ? raise(s) : state.python->wrap(result);
}

PyObject *is_view(PyObject *, PyObject *o) {
  const plait_tensor *t = tensor_from(o, "is_view: argument");
  return t ? PyBool_FromLong(t->base != nullptr) : nullptr;
}

// Whether a write into the tensor, recorded or not, would change a leaf that requires grad.
PyObject *is_part_of_leaf(PyObject *, PyObject *o) {
  plait_tensor *t = tensor_from(o, "is_part_of_leaf: argument");
  const plait_engine *e = t ? engine() : nullptr;
  if (!e) return nullptr;
  plait_tensor *root = t->base && !(t->flags & PLAIT_TENSOR_CUT) ? t->base : t;
  return PyBool_FromLong((root->layers >> e->layer & 1) && e->is_leaf(e->ctx, root));
}

// become(tensor, view, recorded): the tensor takes on the layout of a view of it, and its history
PyObject *become(PyObject *, PyObject *args) {
  PyObject *o, *view_object;
  int recorded = 0;
  if (!PyArg_ParseTuple(args, "OOp", &o, &view_object, &recorded)) return nullptr;
  plait_tensor *t = tensor_from(o, "become: argument");
  plait_tensor *view = t ? tensor_from(view_object, "become: view") : nullptr;
  const Introspection *engine = view && recorded ? introspection() : nullptr;
  if (!view) return nullptr;
  plait_object *node = nullptr;
  uint32_t index = 0;
  plait_status s =
      engine ? engine->gradient_edge(this_thread(), view, &node, &index) : plait_status(PLAIT_OK);
  plait_tensor *base = t->base;
  if (base) plait_retain(base);
  Tensor bare;  // a view of nothing
  if (s >= 0) s = state.runtime->tensor_alias(this_thread(), view, bare.out());
  if (s >= 0) s = state.runtime->tensor_repoint(this_thread(), t, bare.get());
  if (s >= 0) std::swap(t->base, base);
  plait_release(base);
  if (s >= 0) wrote(t);  // nodes that saved the tensor must not read it with this layout
  if (s >= 0 && node) s = engine->attach(this_thread(), node, index, t);
  plait_release_object(node);
  if (s < 0) return raise(s);
  if (recorded) track(o);
  Py_RETURN_NONE;
}

// Another tensor on the bytes of `o`, whose history is set later.
PyObject *share(PyObject *, PyObject *o) {
  plait_tensor *t = tensor_from(o, "share: argument"), *result = nullptr;
  if (!t) return nullptr;
  const plait_status s = state.runtime->tensor_alias(this_thread(), t, &result);
  if (s < 0) return raise(s);
  result->base = t->base ? t->base : t;
  plait_retain(result->base);
  result->flags |= PLAIT_TENSOR_VIEW | PLAIT_TENSOR_CUT;
  return state.python->wrap(result);
}

// The argument if it is a leaf, else another handle with the same history. The call depends on the
// argument as it was before forward, which may change the argument's history by writes, detach_ or
// recorded operators.
PyObject *hold(PyObject *, PyObject *o) {
  plait_tensor *t = tensor_from(o, "hold: argument"), *result = nullptr;
  if (!t) return nullptr;
  const plait_engine *e = engine();
  const bool inner = e && requires_grad_in(e, t) && !e->is_leaf(e->ctx, t);
  const Introspection *engine = inner ? introspection() : nullptr;
  plait_object *node = nullptr;
  uint32_t index = 0;
  plait_status s = engine ? engine->gradient_edge(this_thread(), t, &node, &index) : PLAIT_OK;
  if (s >= 0 && node) s = state.runtime->tensor_alias(this_thread(), t, &result);
  if (s >= 0 && node) s = engine->attach(this_thread(), node, index, result);
  plait_release_object(node);
  if (s < 0) {
    plait_release(result);
    return raise(s);
  }
  return result ? state.python->wrap(result) : Py_NewRef(o);
}

// record(name, callable, inputs, outputs, sparse) -> what the recorded node is known by without
// being kept alive, or None. An output without gradients is None. sparse: the callable gets None,
// not zeros, for missing gradients
PyObject *record(PyObject *, PyObject *args) {
  const char *name;
  PyObject *callable, *inputs_object, *outputs_object;
  int sparse = 0;
  if (!PyArg_ParseTuple(args, "sOOO|p", &name, &callable, &inputs_object, &outputs_object, &sparse))
    return nullptr;
  std::vector<plait_tensor *> inputs, outputs;
  if (!tensors_from(inputs_object, "record: inputs", true, inputs) ||
      !tensors_from(outputs_object, "record: outputs", true, outputs))
    return nullptr;
  const plait_engine *e = engine();
  if (!e) return nullptr;
  plait_object *held = state.python->hold(callable), *node = nullptr;
  const plait_status s =
      e->record(e->ctx, this_thread(), name, held, inputs.data(), uint32_t(inputs.size()),
                outputs.data(), uint32_t(outputs.size()), &node);
  plait_release_object(held);
  if (s < 0) return raise(s);
  const bool result = node != nullptr;
  const Introspection *engine = result ? introspection() : nullptr;
  if (engine && sparse) engine->set_sparse(node);
  for (Py_ssize_t i = 0; result && i < PyTuple_GET_SIZE(outputs_object); i++)
    if (outputs[size_t(i)]) track(PyTuple_GET_ITEM(outputs_object, i));
  PyObject *weak = result ? weak_node(node) : Py_NewRef(Py_None);
  plait_release_object(node);
  return weak;
}

// In a recorded pass, a saved tensor without history would lose a part of the second derivative
// without an error.
bool lost() {
  const plait_engine *e = engine();
  if (e && (introspection() || !e->enabled(e->ctx, this_thread()))) return false;
  if (e)
    PyErr_SetString(PyExc_NotImplementedError,
                    "Function: the engine in use cannot give saved tensors their history back, "
                    "which create_graph needs; plait_autograd's is required");
  return true;
}

PyObject *retains(PyObject *, PyObject *) {
  const Introspection *engine = introspection();
  return PyBool_FromLong(!engine || engine->retains());
}

// account(tensor or None, version): the operator that wrote to the tensor after that version, and
// the site of the running node's call; empty if unknown
PyObject *account(PyObject *, PyObject *args) {
  PyObject *o;
  unsigned long long version = 0;
  if (!PyArg_ParseTuple(args, "OK", &o, &version)) return nullptr;
  const plait_tensor *t = o == Py_None ? nullptr : tensor_from(o, "account: argument");
  if (!t && o != Py_None) return nullptr;
  char by[640] = "", result[640] = "";
  const Introspection *engine = introspection();
  if (engine)
    engine->account(engine->running(), t ? t->storage : nullptr, version, by, result, sizeof by);
  return Py_BuildValue("(ss)", by, result);
}

// as_output(tensor, index, context): a new handle that has the history of that output of the node
// that is running, or, outside of passes, of the context's
PyObject *as_output(PyObject *, PyObject *args) {
  PyObject *o, *context;
  unsigned index = 0;
  if (!PyArg_ParseTuple(args, "OIO", &o, &index, &context)) return nullptr;
  plait_tensor *t = tensor_from(o, "as_output: argument"), *result = nullptr;
  if (!t || lost()) return nullptr;
  const Introspection *engine = introspection();
  plait_object *node = engine ? engine->running() : nullptr;
  const NodeReference own = node || !engine ? NodeReference(nullptr) : node_from(context);
  if (!node) node = own.get();
  PyErr_Clear();  // the node is gone
  plait_status s = state.runtime->tensor_alias(this_thread(), t, &result);
  if (s >= 0 && node) s = engine->attach(this_thread(), node, index, result);
  if (s < 0) {
    plait_release(result);
    return raise(s);
  }
  PyObject *wrapped = state.python->wrap(result);
  if (wrapped && node) track(wrapped);  // a context that keeps the output is a reference cycle
  return wrapped;
}

// as_input(tensor, index): a new handle that has the history of that input of the running node
PyObject *as_input(PyObject *, PyObject *args) {
  PyObject *o;
  unsigned index = 0;
  if (!PyArg_ParseTuple(args, "OI", &o, &index)) return nullptr;
  plait_tensor *t = tensor_from(o, "as_input: argument"), *result = nullptr;
  if (!t || lost()) return nullptr;
  const Introspection *engine = introspection();
  plait_object *node = engine ? engine->running() : nullptr;
  plait_status s = state.runtime->tensor_alias(this_thread(), t, &result);
  uint32_t output = 0;
  plait_object *to = s >= 0 && node ? engine->edge(node, index, &output) : nullptr;
  if (to) s = engine->attach(this_thread(), to, output, result);
  plait_release_object(to);
  if (s >= 0) return state.python->wrap(result);
  plait_release(result);
  return raise(s);
}

// stand_in(node, index): a tensor with that history, for passes
PyObject *stand_in(PyObject *, PyObject *args) {
  PyObject *o;
  unsigned index = 0;
  if (!PyArg_ParseTuple(args, "OI", &o, &index)) return nullptr;
  const NodeReference node = node_from(o);
  const Introspection *engine = node ? introspection() : nullptr;
  if (!node) return nullptr;
  if (!engine)
    return PyErr_Format(PyExc_NotImplementedError,
                        "gradient edges belong to plait_autograd's engine, and another is in use");
  plait_tensor *result = nullptr;
  const plait_status s = engine->stand_in(this_thread(), node.get(), index, &result);
  return s < 0 ? raise(s) : state.python->wrap(result);
}

}  // namespace

PyMethodDef function_functions[] = {
    {"is_tensor", entry<is_tensor>, METH_O, "Whether a tensor type claims the object."},
    {"requires_grad", entry<requires_grad>, METH_O, "Whether gradients flow to the tensor."},
    {"is_view", entry<is_view>, METH_O, "Whether the tensor is a view of another one."},
    {"is_part_of_leaf", entry<is_part_of_leaf>, METH_O,
     "Whether the tensor or what it is a view of is a leaf that requires grad."},
    {"become", entry<become>, METH_VARARGS,
     "Gives a tensor the layout and the history of a view of it."},
    {"version", entry<version>, METH_O, "How often the tensor's storage was written in place."},
    {"describe", entry<describe>, METH_O, "The tensor's dtype and shape, for messages."},
    {"alias", entry<alias>, METH_O, "A new tensor on the same bytes, without history."},
    {"hold", entry<hold>, METH_O,
     "What a call is recorded with, whatever forward writes past histories."},
    {"share", entry<share>, METH_O, "A new tensor on the same bytes, as a view."},
    {"record", entry<record>, METH_VARARGS, "Makes a Python callable the history of outputs."},
    {"retains", entry<retains>, METH_NOARGS, "Whether the running pass keeps the graph."},
    {"account", entry<account>, METH_VARARGS,
     "What is known of a write, and of the running node's call."},
    {"as_output", entry<as_output>, METH_VARARGS, "The tensor as an output of the running node."},
    {"as_input", entry<as_input>, METH_VARARGS, "The tensor as an input of the running node."},
    {"stand_in", entry<stand_in>, METH_VARARGS, "A tensor with the history of a node's output."},
    {nullptr, nullptr, 0, nullptr}};

}  // namespace plait::autograd::python
