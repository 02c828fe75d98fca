// Asking about calls of Tensor's attributes: finds the attribute that a table's function stands
// for, and hands the call to plait_abi, which knows the classes and modes to call.
#include "tensor/overriding.hpp"

#include <memory>
#include <vector>

namespace plait::core {
namespace {

PyObject *asker;  // plait_abi.binding.ask

// The attribute in the dict of the class Tensor, a new reference.
Object of_tensor(const char *name) {
  return Object(PyObject_GetAttrString(reinterpret_cast<PyObject *>(state.tensor_type), name));
}

// The answer, a new reference; nullptr without an exception if there is none. Takes the function
// and the arguments over.
PyObject *ask(Object function, Object args, Object kwargs) {
  if (!kwargs && !PyErr_Occurred()) kwargs = Object(PyDict_New());
  if (!function || !args || !kwargs) return nullptr;
  PyObject *list[] = {function.get(), args.get(), kwargs.get()};
  Object answer(PyObject_Vectorcall(asker, list, 3, nullptr));
  return answer && answer.get() != Py_NotImplemented ? answer.release() : nullptr;
}
// Whether the call is over: there is an answer, or an exception.
bool is_over(PyObject *answer) { return answer || PyErr_Occurred(); }

Object tuple_of(PyObject *self, PyObject *const *args, Py_ssize_t n) {
  Object out(PyTuple_New(n + 1));
  if (out) PyTuple_SET_ITEM(out.get(), 0, new_reference(self));
  for (Py_ssize_t i = 0; out && i < n; i++)
    PyTuple_SET_ITEM(out.get(), i + 1, new_reference(args[i]));
  return out;
}

template <class F>
Code code_of(F f) {
  return reinterpret_cast<Code>(f);
}

// `__get__`, `__set__` or `__delete__` of the attribute that a function of its table belongs to.
Object accessor(Code code, const char *name) {
  for (const PyGetSetDef *table : {attributes, gradient_attributes})
    for (const PyGetSetDef *row = table; row->name; row++) {
      if (code_of(row->get) != code && code_of(row->set) != code) continue;
      const Object attribute = of_tensor(row->name);
      return Object(attribute ? PyObject_GetAttrString(attribute.get(), name) : nullptr);
    }
  return Object();
}

const PyMethodDef *method_of(Code code) {
  for (const PyMethodDef *table : {methods, exchange_methods, gradient_methods})
    for (const PyMethodDef *row = table; row->ml_name; row++)
      if (code_of(row->ml_meth) == code) return row;
  return nullptr;
}

PyObject *count_modes(PyObject *, PyObject *change) {
  Object binding(PyImport_ImportModule("plait_abi.binding"));
#ifdef Py_GIL_DISABLED
  // the number here must not be that of an earlier moment than the binding's
  static PyMutex mutex;
  PyMutex_Lock(&mutex);
  const std::unique_ptr<PyMutex, void (*)(PyMutex *)> held(&mutex, PyMutex_Unlock);
#endif
  Object count(binding ? PyObject_CallMethod(binding.get(), "count_modes", "O", change) : nullptr);
  if (!count) return nullptr;
  __atomic_store_n(&state.modes, PyLong_AsUnsignedLongLong(count.get()), __ATOMIC_RELAXED);
  choose_fast_operators();
  return count.release();
}

PyObject *watch_classes(PyObject *, PyObject *args) {
  PyObject *name, *value, *read;
  unsigned long long layer;
  if (!PyArg_ParseTuple(args, "UOKO:_watch_classes", &name, &value, &layer, &read)) return nullptr;
  Py_INCREF(name);
  Py_INCREF(value);
  Py_XINCREF(read == Py_None ? nullptr : read);
  Py_XDECREF(std::exchange(state.watched_read, read == Py_None ? nullptr : read));
  Py_XDECREF(std::exchange(state.watched_attribute, name));
  Py_XDECREF(std::exchange(state.unwatched_value, value));
  state.watching_layer = layer;
  Py_RETURN_NONE;
}

PyMethodDef functions[] = {
    {"_count_modes", entry<count_modes>, METH_O,
     "_count_modes(change, /)\n--\n\nChange the number of modes of all threads, and return it."},
    {"_watch_classes", entry<watch_classes>, METH_VARARGS,
     "_watch_classes(name, disabled, layer, read, /)\n--\n\nMark new instances of classes that "
     "have "
     "this attribute for a layer."},
    {nullptr, nullptr, 0, nullptr}};

}  // namespace

bool is_asked(PyObject *o) {
  if (__atomic_load_n(&state.modes, __ATOMIC_RELAXED)) return true;
  if (is_exact(o)) return false;
  const int asks = state.python->overrides(o);
  if (asks < 0) PyErr_Clear();
  return asks == 2;  // by the protocol; `__plait_function__` is for operators alone
}

bool asked_get(Code code, PyObject *self, PyObject **answer) {
  if (!is_asked(self)) return false;
  *answer = ask(accessor(code, "__get__"), tuple_of(self, nullptr, 0), Object());
  return is_over(*answer);
}

bool asked_set(Code code, PyObject *self, PyObject *value, int *answer) {
  if (!is_asked(self)) return false;
  const Object done(ask(accessor(code, value ? "__set__" : "__delete__"),
                        tuple_of(self, &value, value ? 1 : 0), Object()));
  *answer = done ? 0 : -1;
  return is_over(done.get());
}

bool asked_call(Code code, PyObject *self, PyObject *const *args, Py_ssize_t n, PyObject *kwnames,
                PyObject **answer) {
  if (!is_asked(self)) return false;
  const PyMethodDef *row = method_of(code);
  if (!row) return false;
  Object kwargs(PyDict_New());
  for (Py_ssize_t i = 0; kwargs && kwnames && i < PyTuple_GET_SIZE(kwnames); i++)
    if (PyDict_SetItem(kwargs.get(), PyTuple_GET_ITEM(kwnames, i), args[n + i]) < 0)
      kwargs = Object();
  *answer =
      kwargs ? ask(of_tensor(row->ml_name), tuple_of(self, args, n), std::move(kwargs)) : nullptr;
  return is_over(*answer);
}

bool asked_call(Code code, PyObject *self, PyObject *args, PyObject *kwargs, PyObject **answer) {
  if (!is_asked(self)) return false;
  const PyMethodDef *row = method_of(code);
  if (!row) return false;
  Object all = !args ? tuple_of(self, nullptr, 0)
               : row->ml_flags & METH_VARARGS
                   ? tuple_of(self, PySequence_Fast_ITEMS(args), PyTuple_GET_SIZE(args))
                   : tuple_of(self, &args, 1);
  *answer = ask(of_tensor(row->ml_name), std::move(all),
                Object(kwargs ? PyDict_Copy(kwargs) : PyDict_New()));
  return is_over(*answer);
}

bool asked_name(const char *name, std::initializer_list<PyObject *> args, PyObject **answer) {
  if (!is_asked(*args.begin())) return false;
  *answer = ask(of_tensor(name),
                tuple_of(*args.begin(), args.begin() + 1, Py_ssize_t(args.size()) - 1), Object());
  return is_over(*answer);
}
bool asked_name(const char *name, std::initializer_list<PyObject *> args, Py_ssize_t *answer) {
  PyObject *result = nullptr;
  if (!asked_name(name, args, &result)) return false;
  const Object owned(result);
  *answer = result ? PyNumber_AsSsize_t(result, PyExc_OverflowError) : -1;
  return true;
}
bool asked_name(const char *name, std::initializer_list<PyObject *> args, int *answer) {
  PyObject *result = nullptr;
  if (!asked_name(name, args, &result)) return false;
  const Object owned(result);
  *answer = result ? PyObject_IsTrue(result) : -1;
  return true;
}

bool asked_operator(const char *name, const char *reflected, PyObject *a, PyObject *b,
                    PyObject **answer) {
  const bool forward = is_tensor(a);
  *answer = ask(of_tensor(forward ? name : reflected),
                tuple_of(forward ? a : b, forward ? &b : &a, 1), Object());
  if (*answer || !PyErr_Occurred()) return *answer;
  // the other operand may know the operator; an operator that refused a dtype has ended the call
  if (PyErr_ExceptionMatches(PyExc_TypeError) && !PyErr_ExceptionMatches(PyExc_RuntimeError)) {
    PyErr_Clear();
    *answer = new_reference(Py_NotImplemented);
  }
  return true;
}

bool read_watched(plait_tensor *t, PyObject **number) {
  if (!state.watched_read || !(t->layers & state.watching_layer)) return false;
  plait_retain(t);
  const Object self(wrap(t)), read(new_reference(state.watched_read));
  Object answer(self ? PyObject_CallOneArg(read.get(), self.get()) : nullptr);
  if (answer && answer.get() == Py_NotImplemented) return false;
  *number = answer.release();
  return true;
}

bool add_overriding(PyObject *module) {
  Object binding(PyImport_ImportModule("plait_abi.binding"));
  asker = binding ? PyObject_GetAttrString(binding.get(), "ask") : nullptr;
  return asker && PyModule_AddFunctions(module, functions) == 0;
}

}  // namespace plait::core
