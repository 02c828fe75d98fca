// What a node keeps of its call: arguments, shapes and saved tensors, as Python objects.
#include "binding.hpp"

namespace plait::autograd::python {
namespace {

// A tuple of what `item` makes for each number below n; NULL if it fails for one.
template <class F>
PyObject *tuple_of(uint32_t n, F &&item) {
  Object all(PyTuple_New(n));
  for (uint32_t i = 0; all && i < n; i++) {
    PyObject *each = item(i);
    if (!each) return nullptr;
    PyTuple_SET_ITEM(all.get(), i, each);
  }
  return all.release();
}

// An argument that is no tensor.
PyObject *object_of(const plait_value &v) {
  switch (v.tag) {
    case PLAIT_BOOL: return PyBool_FromLong(long(v.u.i));
    case PLAIT_INT: return PyLong_FromLongLong(v.u.i);
    case PLAIT_FLOAT: return PyFloat_FromDouble(v.u.f);
    case PLAIT_COMPLEX: return PyComplex_FromDoubles(v.u.fs[0], v.u.fs[1]);
    case PLAIT_INTS:
      return tuple_of(v.n, [&](uint32_t i) { return PyLong_FromLongLong(v.u.is[i]); });
    case PLAIT_FLOATS:
      return tuple_of(v.n, [&](uint32_t i) { return PyFloat_FromDouble(v.u.fs[i]); });
    case PLAIT_STRING: return PyUnicode_FromStringAndSize(v.u.s, Py_ssize_t(v.n));
    case PLAIT_DTYPE: return state.python->dtype_object(v.u.dtype);
    case PLAIT_DEVICE: return state.python->device_object(v.u.device);
    default: Py_RETURN_NONE;
  }
}

// The shape of the tensor that an argument was; None: it is unknown.
PyObject *shape_of(const Introspection *engine, plait_object *node, uint32_t i, uint32_t item) {
  int32_t ndim = 0;
  const int64_t *shape = nullptr;
  if (!engine->shape(node, i, item, &ndim, &shape)) Py_RETURN_NONE;
  return tuple_of(uint32_t(ndim), [&](uint32_t d) { return PyLong_FromLongLong(shape[d]); });
}

// (name, value, shape) of argument `i`; of a list of tensors the shapes.
PyObject *argument_of(const Introspection *engine, plait_object *node, const plait_op *op,
                      const plait_value &v, uint32_t i) {
  const plait_arg *arg = plait_arg_at(op, i);
  Object shape(nullptr);
  if (v.tag == PLAIT_TENSORS) {
    shape = Object(tuple_of(v.n, [&](uint32_t k) { return shape_of(engine, node, i, k); }));
  } else if (v.tag == PLAIT_NONE &&
             (arg->kind == PLAIT_KIND_TENSOR || arg->kind == PLAIT_KIND_OPERAND)) {
    shape = Object(shape_of(engine, node, i, 0));
  } else {
    shape = Object(plait::python::new_reference(Py_None));
  }
  const Object value(shape ? object_of(v) : nullptr);
  return value ? Py_BuildValue("(sOO)", arg->name, value.get(), shape.get()) : nullptr;
}

// node_call(node): None, or the operator's name, its arguments, and for each saved tensor
// (whether it is a result, its name, its number, its number in a list).
PyObject *node_call(PyObject *, PyObject *o) {
  const NodeReference node = node_from(o);
  const Introspection *engine = introspection();
  if (!node) return nullptr;
  const plait_value *in = nullptr;
  uint32_t n_in = 0;
  const plait_op *op = engine ? engine->call(node.get(), &in, &n_in) : nullptr;
  if (!op) Py_RETURN_NONE;
  const Object arguments(
      tuple_of(n_in, [&](uint32_t i) { return argument_of(engine, node.get(), op, in[i], i); }));
  const Object saved(arguments ? PyList_New(0) : nullptr);
  int result = 0;
  uint32_t argument = 0, item = 0;
  for (uint32_t i = 0; saved && engine->saved(node.get(), i, &result, &argument, &item); i++) {
    const plait_arg *arg = result ? plait_result_at(op, argument) : plait_arg_at(op, argument);
    const Object each(
        Py_BuildValue("(OzII)", result ? Py_True : Py_False, arg->name, argument, item));
    if (!each || PyList_Append(saved.get(), each.get()) < 0) return nullptr;
  }
  return saved ? Py_BuildValue("(sOO)", op->name, arguments.get(), saved.get()) : nullptr;
}

// saved_tensor(node, i): the tensor of entry `i` of what `node_call` lists.
PyObject *saved_tensor(PyObject *, PyObject *args) {
  PyObject *o;
  unsigned i = 0;
  if (!PyArg_ParseTuple(args, "OI", &o, &i)) return nullptr;
  const NodeReference node = node_from(o);
  const Introspection *engine = introspection();
  if (!node || !engine) return nullptr;
  plait_tensor *t = nullptr;
  const plait_status s = engine->saved_tensor(this_thread(), node.get(), i, &t);
  return s < 0 ? raise(s) : wrap_new(t);
}

}  // namespace

PyMethodDef saved_functions[] = {
    {"node_call", entry<node_call>, METH_O,
     "node_call(node, /)\n--\n\nThe call of an operator's node: the operator's name, (name, value, "
     "shape) of each argument, (whether a result, name, number, item) of each saved tensor. None: "
     "another node."},
    {"saved_tensor", entry<saved_tensor>, METH_VARARGS,
     "saved_tensor(node, i, /)\n--\n\nThe saved tensor `i`, with its history."},
    {nullptr, nullptr, 0, nullptr}};

}  // namespace plait::autograd::python
