// Forward mode.
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

PyObject *enter_level(PyObject *, PyObject *) {
  const Forward *f = forward_mode();
  uint64_t level = 0;
  if (!f) return nullptr;
  if (const plait_status s = f->enter(this_thread(), &level); s < 0) return raise(s);
  return PyLong_FromUnsignedLongLong(level);
}

PyObject *exit_level(PyObject *, PyObject *) {
  const Forward *f = forward_mode();
  if (!f) return nullptr;
  if (const plait_status s = f->leave(this_thread()); s < 0) return raise(s);
  Py_RETURN_NONE;
}

PyObject *level(PyObject *, PyObject *) {
  const Forward *f = forward_mode();
  return f ? PyLong_FromUnsignedLongLong(f->level(this_thread())) : nullptr;
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

PyObject *set_tangent(PyObject *, PyObject *args) {
  PyObject *tensor, *tangent;
  if (!PyArg_ParseTuple(args, "OO", &tensor, &tangent)) return nullptr;
  const Forward *f = forward_mode();
  plait_tensor *t = f ? tensor_from(tensor, "jvp: a result") : nullptr;
  plait_tensor *d = t ? tensor_from(tangent, "jvp: a tangent") : nullptr;
  if (!d) return nullptr;
  if (const plait_status s = f->set(this_thread(), t, d); s < 0) return raise(s);
  Py_RETURN_NONE;
}

PyObject *carry_tangents(PyObject *, PyObject *on) {
  const int wanted = PyObject_IsTrue(on);
  const Forward *f = wanted < 0 ? nullptr : forward_mode();
  return f ? PyBool_FromLong(f->carry(this_thread(), wanted)) : nullptr;
}

}  // namespace

PyMethodDef dual_functions[] = {
    {"enter_level", enter_level, METH_NOARGS, "Enter a dual level; return its number."},
    {"exit_level", exit_level, METH_NOARGS, "Leave it."},
    {"level", level, METH_NOARGS, "Return the number of this thread's dual level, or 0."},
    {"make_dual", make_dual, METH_VARARGS, "make_dual(tensor, tangent)"},
    {"unpack_dual", unpack_dual, METH_O, "Return a copy without tangent, and the tangent."},
    {"set_tangent", set_tangent, METH_VARARGS, "set_tangent(tensor, tangent)"},
    {"carry_tangents", carry_tangents, METH_O,
     "Set whether this thread does; return whether it did."},
    {nullptr, nullptr, 0, nullptr}};

}  // namespace plait::autograd::python
