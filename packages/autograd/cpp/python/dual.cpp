// The binding of forward mode.
#include "binding.hpp"

namespace plait::autograd::python {
namespace {

const Forward *forward_mode() {
  if (!engine()) return nullptr;
  if (const Introspection *own = introspection()) return own->forward;
  PyErr_SetString(PyExc_NotImplementedError,
                  "forward mode belongs to plait_autograd's engine, and another one is in use");
  return nullptr;
}

PyObject *enter_level(PyObject *, PyObject *args) {
  int recorded = 1;
  if (!PyArg_ParseTuple(args, "|p", &recorded)) return nullptr;
  const Forward *f = forward_mode();
  uint64_t level = 0;
  if (!f) return nullptr;
  if (const plait_status s = f->enter(this_thread(), recorded, &level); s < 0) return raise(s);
  return PyLong_FromUnsignedLongLong(level);
}

PyObject *exit_level(PyObject *, PyObject *) {
  const Forward *f = forward_mode();
  if (!f) return nullptr;
  if (const plait_status s = f->leave(this_thread()); s < 0) return raise(s);
  Py_RETURN_NONE;
}

PyObject *level(PyObject *, PyObject *) {
  const Introspection *own = introspection();  // another engine has no levels
  return PyLong_FromUnsignedLongLong(own ? own->forward->level(this_thread()) : 0);
}

PyObject *make_dual(PyObject *, PyObject *args) {
  PyObject *tensor, *tangent;
  if (!PyArg_ParseTuple(args, "OO", &tensor, &tangent)) return nullptr;
  const Forward *f = forward_mode();
  plait_tensor *t = f ? tensor_from(tensor, "make_dual: `tensor`") : nullptr;
  plait_tensor *d = t ? tensor_from(tangent, "make_dual: `tangent`") : nullptr;
  if (!d) return nullptr;
  plait_tensor *dual = nullptr;
  if (const plait_status s = f->make(this_thread(), t, d, &dual); s < 0) return raise(s);
  return wrap_new(dual);
}

PyObject *unpack_dual(PyObject *, PyObject *tensor) {
  const Forward *f = forward_mode();
  plait_tensor *t = f ? tensor_from(tensor, "unpack_dual: `tensor`") : nullptr;
  if (!t) return nullptr;
  plait_tensor *primal = nullptr, *tangent = nullptr;
  if (const plait_status s = f->parts(this_thread(), t, &primal, &tangent); s < 0) return raise(s);
  Object first(wrap_new(primal)), second(wrap_new(tangent));
  return first && second ? PyTuple_Pack(2, first.get(), second.get()) : nullptr;
}

PyObject *tangent(PyObject *, PyObject *tensor) {
  const Forward *f = forward_mode();
  plait_tensor *t = f ? tensor_from(tensor, "jvp: an argument") : nullptr, *result = nullptr;
  if (!t) return nullptr;
  if (const plait_status s = f->tangent(this_thread(), t, &result); s < 0) return raise(s);
  return wrap_new(result);
}

PyObject *set_tangent(PyObject *, PyObject *args) {
  PyObject *tensor, *tangent;
  int written = 0;
  if (!PyArg_ParseTuple(args, "OO|p", &tensor, &tangent, &written)) return nullptr;
  const Forward *f = forward_mode();
  plait_tensor *t = f ? tensor_from(tensor, "jvp: a result") : nullptr, *d = nullptr;
  if (!t) return nullptr;
  if (tangent != Py_None && !(d = tensor_from(tangent, "jvp: a tangent"))) return nullptr;
  if (const plait_status s = f->set(this_thread(), t, d, written); s < 0) return raise(s);
  Py_RETURN_NONE;
}

PyObject *carry_tangents(PyObject *, PyObject *on) {
  const int required = PyObject_IsTrue(on);
  const Forward *f = required < 0 ? nullptr : forward_mode();
  return f ? PyBool_FromLong(f->carry(this_thread(), required)) : nullptr;
}

}  // namespace

PyMethodDef dual_functions[] = {
    {"enter_level", entry<enter_level>, METH_VARARGS,
     "enter_level(recorded=True): enter a dual level; return its number."},
    {"exit_level", entry<exit_level>, METH_NOARGS, "Leave the dual level."},
    {"level", entry<level>, METH_NOARGS, "Return the number of this thread's dual level, or 0."},
    {"make_dual", entry<make_dual>, METH_VARARGS, "make_dual(tensor, tangent)"},
    {"unpack_dual", entry<unpack_dual>, METH_O, "Return a copy without tangent, and the tangent."},
    {"tangent", entry<tangent>, METH_O, "Return the tangent, or None."},
    {"set_tangent", entry<set_tangent>, METH_VARARGS,
     "set_tangent(tensor, tangent, written=False)"},
    {"carry_tangents", entry<carry_tangents>, METH_O,
     "Set whether operators of this thread compute tangents; return the old setting."},
    {nullptr, nullptr, 0, nullptr}};

}  // namespace plait::autograd::python
