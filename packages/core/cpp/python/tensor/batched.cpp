#include "tensor/batched.hpp"

#include <plait/gil.hpp>

namespace plait::core {

plait_batched batched{
    PLAIT_HEADER(plait_batched), nullptr, nullptr, nullptr, nullptr, nullptr, nullptr, nullptr, 0};

namespace {

PyObject *samples(PyObject *, PyObject *o) {
  const auto ask = __atomic_load_n(&batched.samples, __ATOMIC_ACQUIRE);
  if (!ask || !is_tensor(o)) Py_RETURN_NONE;
  int64_t number = 0;
  plait_tensor *all = ask(handle_of(o), &number);
  if (!all) return PyErr_Occurred() ? nullptr : new_reference(Py_None);
  const Object value(wrap(all)), level(PyLong_FromLongLong(number));
  return value && level ? PyTuple_Pack(2, value.get(), level.get()) : nullptr;
}

PyMethodDef functions[] = {
    {"_samples", entry<samples>, METH_O,
     "_samples(tensor, /)\n--\n\n(value, level) of a batched tensor; None for others."},
    {nullptr, nullptr, 0, nullptr}};

}  // namespace

bool note_address(const plait_tensor *t) {
  const auto note = __atomic_load_n(&batched.note_address, __ATOMIC_ACQUIRE);
  if (!note) return true;
  note(t);
  return !PyErr_Occurred();
}

bool refuse_batched(const plait_tensor *t, const char *caller) {
  if (const auto note = __atomic_load_n(&batched.note_read, __ATOMIC_ACQUIRE)) {
    note(t);
    if (PyErr_Occurred()) return false;
  }
  if (!is_batched(t)) return true;
  PyErr_Format(PyExc_RuntimeError,
               "vmap: %s: the function reads the elements of a sample in Python (item(), float(), "
               "bool(), tolist() or numpy(), as in `if x > 0`); that is not possible for all "
               "samples at once: use where() and other operators",
               caller);
  return false;
}

bool add_batched(PyObject *module) {
  PyObject *capsule = PyCapsule_New(&batched, PLAIT_BATCHED_CAPSULE, nullptr);
  if (!capsule) return false;
  if (PyModule_AddObject(module, "batched", capsule) < 0) {
    Py_DECREF(capsule);
    return false;
  }
  return PyModule_AddFunctions(module, functions) == 0;
}

}  // namespace plait::core
