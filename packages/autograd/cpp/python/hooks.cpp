// Hooks of tensors and nodes: the functions that plait_autograd._hooks uses.
#include "binding.hpp"

namespace plait::autograd::python {
namespace {

constexpr const char *kHook = "plait_autograd.hook";

PyObject *no_introspection() {
  PyErr_SetString(PyExc_NotImplementedError,
                  "hooks: the engine in use has none; plait_autograd's is required");
  return nullptr;
}

void drop_capsule(PyObject *capsule) {
  plait_release_object(static_cast<plait_object *>(PyCapsule_GetPointer(capsule, kHook)));
}

PyObject *hook(const Introspection *engine, plait_object *node, unsigned when, unsigned index,
               PyObject *callable) {
  plait_object *object = state.python->hold(callable), *result = nullptr;
  const plait_status s = engine->hook(this_thread(), node, when, index, object, &result);
  plait_release_object(object);
  if (s < 0) return raise(s);
  PyObject *capsule = PyCapsule_New(result, kHook, drop_capsule);
  if (!capsule) plait_release_object(result);
  return capsule;
}

// hook_node(node, when, callable) -> capsule for unhook
PyObject *hook_node(PyObject *, PyObject *args) {
  PyObject *o, *callable;
  unsigned when = 0;
  if (!PyArg_ParseTuple(args, "OIO", &o, &when, &callable)) return nullptr;
  const Introspection *engine = introspection();
  if (!engine) return no_introspection();
  const NodeReference node = node_from(o);
  return node ? hook(engine, node.get(), when, 0, callable) : nullptr;
}

// hook_tensor(tensor, when, callable) -> capsule for unhook: at the output where its gradient
// arrives
PyObject *hook_tensor(PyObject *, PyObject *args) {
  PyObject *o, *callable;
  unsigned when = 0;
  if (!PyArg_ParseTuple(args, "OIO", &o, &when, &callable)) return nullptr;
  const Introspection *engine = introspection();
  if (!engine) return no_introspection();
  plait_tensor *t = tensor_from(o, "register_hook: argument");
  if (!t) return nullptr;
  plait_object *node = nullptr;
  uint32_t index = 0;
  const plait_status s = engine->gradient_edge(this_thread(), t, &node, &index);
  if (s < 0) return raise(s);
  if (!node)
    return PyErr_SetString(PyExc_RuntimeError,
                           "register_hook: a tensor that requires grad is required"),
           nullptr;
  PyObject *capsule = hook(engine, node, when, index, callable);
  plait_release_object(node);
  if (capsule) track(o);
  return capsule;
}

PyObject *unhook(PyObject *, PyObject *capsule) {
  auto *result = static_cast<plait_object *>(PyCapsule_GetPointer(capsule, kHook));
  const Introspection *engine = result ? introspection() : nullptr;
  if (PyErr_Occurred()) return nullptr;
  if (engine) engine->unhook(result);
  Py_RETURN_NONE;
}

// gradient_edge(tensor) -> (node or None, output number); leaves have a node too
PyObject *gradient_edge(PyObject *, PyObject *o) {
  const Introspection *engine = introspection();
  if (!engine) return no_introspection();
  plait_tensor *t = tensor_from(o, "gradient edge: argument");
  if (!t) return nullptr;
  plait_object *node = nullptr;
  uint32_t index = 0;
  const plait_status s = engine->gradient_edge(this_thread(), t, &node, &index);
  if (s < 0) return raise(s);
  Object result(node_object(node));
  return result ? Py_BuildValue("(OI)", result.get(), unsigned(index)) : nullptr;
}

PyObject *retained(PyObject *, PyObject *o) {
  const Introspection *engine = introspection();
  if (!engine) Py_RETURN_FALSE;
  plait_tensor *t = tensor_from(o, "retains_grad: argument");
  int result = 0;
  const plait_status s = t ? engine->retained(this_thread(), t, &result) : plait_status(PLAIT_OK);
  if (s < 0) return raise(s);
  return t ? PyBool_FromLong(result) : nullptr;
}

PyObject *hooked(PyObject *, PyObject *o) {
  const Introspection *engine = introspection();
  if (!engine) Py_RETURN_FALSE;
  plait_tensor *t = tensor_from(o, "has_hooks: argument");
  int result = 0;
  const plait_status s = t ? engine->hooked(this_thread(), t, &result) : plait_status(PLAIT_OK);
  if (s < 0) return raise(s);
  return t ? PyBool_FromLong(result) : nullptr;
}

PyObject *pass(PyObject *, PyObject *) {
  const Introspection *engine = introspection();
  return PyLong_FromUnsignedLongLong(engine ? engine->pass() : 0);
}

PyObject *will_run(PyObject *, PyObject *o) {
  const NodeReference node = node_from(o);
  const Introspection *engine = node ? introspection() : nullptr;
  return node ? PyBool_FromLong(engine && engine->will_run(node.get())) : nullptr;
}

PyObject *running_node(PyObject *, PyObject *) {
  const Introspection *engine = introspection();
  plait_object *node = engine ? engine->running() : nullptr;
  if (node) plait_retain_object(node);
  return shown_node(node);
}

PyObject *at_end_of_pass(PyObject *, PyObject *callable) {
  const Introspection *engine = introspection();
  if (!engine) return no_introspection();
  plait_object *held = state.python->hold(callable);
  const plait_status s = engine->at_end(this_thread(), held);
  plait_release_object(held);
  if (s < 0) return raise(s);
  Py_RETURN_NONE;
}

// set_gradient_place(node, tensor or None)
PyObject *set_gradient_place(PyObject *, PyObject *args) {
  PyObject *o, *p;
  if (!PyArg_ParseTuple(args, "OO", &o, &p)) return nullptr;
  const Introspection *engine = introspection();
  if (!engine) return no_introspection();
  const NodeReference node = node_from(o);
  plait_tensor *place =
      node && p != Py_None ? tensor_from(p, "set_gradient_place: `place`") : nullptr;
  if (!node || PyErr_Occurred()) return nullptr;
  const plait_status s = engine->set_place(this_thread(), node.get(), place);
  if (s < 0) return raise(s);
  Py_RETURN_NONE;
}

PyObject *touch(PyObject *, PyObject *o) {
  plait_tensor *t = tensor_from(o, "increment_version: argument");
  if (!t) return nullptr;
  wrote(t);
  Py_RETURN_NONE;
}

}  // namespace

PyMethodDef hook_functions[] = {
    {"hook_node", entry<hook_node>, METH_VARARGS, "Hangs a callable on a node."},
    {"hook_tensor", entry<hook_tensor>, METH_VARARGS, "Hangs a callable on a tensor's gradient."},
    {"unhook", entry<unhook>, METH_O, "Takes a hook away."},
    {"gradient_edge", entry<gradient_edge>, METH_O,
     "The node and output number where a tensor's gradients go."},
    {"hooked", entry<hooked>, METH_O, "Whether a hook gets the gradient of a tensor."},
    {"retained", entry<retained>, METH_O,
     "Whether retain_grad was called on a tensor that is no leaf."},
    {"running_pass", entry<pass>, METH_NOARGS,
     "The number of the pass that this thread is in, or 0."},
    {"will_run", entry<will_run>, METH_O, "Whether that pass is at the node or will come to it."},
    {"running_node", entry<running_node>, METH_NOARGS, "The node that this pass is at, or None."},
    {"at_end_of_pass", entry<at_end_of_pass>, METH_O,
     "Lets a callable be called once when that pass has ended."},
    {"set_gradient_place", entry<set_gradient_place>, METH_VARARGS,
     "Says where new gradients of a leaf's node lie."},
    {"touch", entry<touch>, METH_O, "Says that a tensor was written in place."},
    {nullptr, nullptr, 0, nullptr}};

}  // namespace plait::autograd::python
