// Arguments whose classes want to make the call themselves (docs/design/0033): which they are, in
// which order they see a call, and modes, which see every call of their thread.
#include <vector>

#include "binding.hpp"

namespace plait::python {
namespace {

// The name of the attribute by which a class requests to see calls, the function that handles these
// calls, and the value of the attribute that means no request. All nullptr: there is no protocol.
struct Protocol {
  PyObject *name, *handler, *disabled;
};
// Never changed and never freed, as any thread may be asking: there are as many as calls of
// `set_protocol`, which is one or two in a process.
const Protocol nobody{};
const Protocol *in_force = &nobody;
const Protocol &protocol() { return *__atomic_load_n(&in_force, __ATOMIC_ACQUIRE); }

thread_local int off = everybody_asked;

using Asking = std::vector<PyObject *>;

// Adds an argument that sees the call: one of each class, subclasses before their bases, else from
// the left to the right.
void add(Asking &result, PyObject *o) {
  for (PyObject *other : result)
    if (Py_TYPE(other) == Py_TYPE(o)) return;
  auto position = result.begin();
  while (position != result.end() && !PyType_IsSubtype(Py_TYPE(o), Py_TYPE(*position))) ++position;
  result.insert(position, o);
}

// Those of one kind among arguments and in their tuples and lists.
Asking asking_in(PyObject *const *args, Py_ssize_t n, int kind) {
  Asking result;
  const auto look = [&](PyObject *o) {
    const int asks = overrides(o);
    if (asks < 0) PyErr_Clear();
    if (asks == kind) add(result, o);
  };
  for (Py_ssize_t i = 0; i < n; i++) {
    if (!PyTuple_Check(args[i]) && !PyList_Check(args[i])) {
      look(args[i]);
      continue;
    }
    const Items items(args[i]);
    if (!items.valid()) PyErr_Clear();
    for (Py_ssize_t k = 0; k < items.size(); k++) look(items[k]);
  }
  return result;
}

Object tuple_of(const Asking &list) {
  Object out(PyTuple_New(Py_ssize_t(list.size())));
  for (size_t i = 0; out && i < list.size(); i++)
    PyTuple_SET_ITEM(out.get(), Py_ssize_t(i), new_reference(list[i]));
  return out;
}

// The handler's answer for modes and for classes with the protocol's attribute, as a new reference;
// nullptr without an exception: no class answered.
PyObject *ask_handler(PyObject *function, const Asking &result, PyObject *args, PyObject *kwargs) {
  PyObject *handler = protocol().handler;
  if (!handler || (result.empty() && !any_mode())) return nullptr;
  const Object list = tuple_of(result);
  if (!list) return nullptr;
  Object answer(PyObject_CallFunctionObjArgs(handler, function, list.get(), args, kwargs, nullptr));
  return answer && answer.get() != Py_NotImplemented ? answer.release() : nullptr;
}

PyObject *set_protocol(PyObject *, PyObject *args) {
  Protocol next;
  if (!PyArg_ParseTuple(args, "OOO:set_protocol", &next.name, &next.handler, &next.disabled))
    return nullptr;
  if (next.name == Py_None) next = {};
  if (next.name && (!PyUnicode_Check(next.name) || !PyCallable_Check(next.handler)))
    return PyErr_Format(PyExc_TypeError,
                        "set_protocol: a name and a callable are required, or None for both");
  Py_XINCREF(next.name);
  Py_XINCREF(next.handler);
  Py_XINCREF(next.disabled);
  __atomic_store_n(&in_force, new Protocol(next), __ATOMIC_RELEASE);
  forget_facts();
  Py_RETURN_NONE;
}

PyObject *count_modes(PyObject *, PyObject *number) {
  const long change = PyLong_AsLong(number);
  if (change == -1 && PyErr_Occurred()) return nullptr;
  return PyLong_FromUnsignedLongLong(
      __atomic_add_fetch(&state.modes, uint64_t(change), __ATOMIC_RELAXED));
}

PyObject *switch_off(PyObject *, PyObject *number) {
  const long next = PyLong_AsLong(number);
  if (next == -1 && PyErr_Occurred()) return nullptr;
  return PyLong_FromLong(std::exchange(off, int(next)));
}

PyObject *ask_function(PyObject *, PyObject *const *args, Py_ssize_t n) {
  if (n != 3 || !PyTuple_Check(args[1]) || !PyDict_Check(args[2]))
    return PyErr_Format(PyExc_TypeError, "ask: (function, tuple, dict) is required");
  std::vector<PyObject *> values(PySequence_Fast_ITEMS(args[1]),
                                 PySequence_Fast_ITEMS(args[1]) + PyTuple_GET_SIZE(args[1]));
  Py_ssize_t at = 0;
  PyObject *key, *value;
  while (PyDict_Next(args[2], &at, &key, &value)) values.push_back(value);
  const Asking result = asking_in(values.data(), Py_ssize_t(values.size()), asks_by_protocol);
  PyObject *answer = off == nobody_asked ? nullptr : ask_handler(args[0], result, args[1], args[2]);
  return answer || PyErr_Occurred() ? answer : new_reference(Py_NotImplemented);
}

PyObject *asking_function(PyObject *, PyObject *sequence) {
  Object list(sequence_of(sequence, "asking: an iterable of arguments is required"));
  if (!list) return nullptr;
  Asking result;
  for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(list.get()); i++) {
    PyObject *o = PySequence_Fast_GET_ITEM(list.get(), i);
    const int asks = overrides(o);
    if (asks < 0) return nullptr;
    if (asks == asks_by_protocol) add(result, o);
  }
  return tuple_of(result).release();
}

PyMethodDef functions[] = {
    {"set_protocol", entry<set_protocol>, METH_VARARGS,
     "set_protocol(name, handler, disabled, /)\n--\n\nAsk classes with this attribute; see "
     "plait_core.overrides."},
    {"count_modes", entry<count_modes>, METH_O,
     "count_modes(change, /)\n--\n\nChange the number of modes of all threads, and return it."},
    {"switch_off", entry<switch_off>, METH_O,
     "switch_off(level, /)\n--\n\nAsk everybody (0), modes alone (1) or nobody (2) in this thread; "
     "the level before."},
    {"ask", function(entry<ask_function>), METH_FASTCALL,
     "ask(function, args, kwargs, /)\n--\n\nThe handler's answer to a call, or NotImplemented."},
    {"asking", entry<asking_function>, METH_O,
     "asking(arguments, /)\n--\n\nThe arguments that see the call, in their order."},
    {nullptr, nullptr, 0, nullptr}};

}  // namespace

int asks_by(PyTypeObject *type) {
  const Protocol &now = protocol();
  if (!now.name) return 0;
  Object result(PyObject_GetAttr(reinterpret_cast<PyObject *>(type), now.name));
  if (result) return result.get() != now.disabled ? asks_by_protocol : 0;
  if (!PyErr_ExceptionMatches(PyExc_AttributeError)) return -1;
  PyErr_Clear();
  return 0;
}

bool protocol_is_off() { return off != everybody_asked; }

// Asks modes and arguments about a call, until one does not return NotImplemented. nullptr without
// an exception: no class answered.
PyObject *ask_overrides(PyObject *self, PyObject *const *args, Py_ssize_t n, PyObject *kwnames) {
  const Py_ssize_t all = n + (kwnames ? PyTuple_GET_SIZE(kwnames) : 0);
  const Asking by_protocol = asking_in(args, all, asks_by_protocol),
               own = asking_in(args, all, asks_by_function);
  const bool modes = any_mode() && off != nobody_asked;
  if (by_protocol.empty() && own.empty() && !modes) return nullptr;
  Object positional(PyTuple_New(n)), keywords(PyDict_New());
  if (!positional || !keywords) return nullptr;
  for (Py_ssize_t i = 0; i < n; i++) PyTuple_SET_ITEM(positional.get(), i, new_reference(args[i]));
  for (Py_ssize_t i = n; i < all; i++)
    if (PyDict_SetItem(keywords.get(), PyTuple_GET_ITEM(kwnames, i - n), args[i]) < 0)
      return nullptr;
  if (modes || !by_protocol.empty()) {
    PyObject *answer = ask_handler(self, by_protocol, positional.get(), keywords.get());
    if (answer || PyErr_Occurred()) return answer;
  }
  for (PyObject *o : own) {
    Object answer(PyObject_CallMethodObjArgs(o, state.str_function, self, positional.get(),
                                             keywords.get(), nullptr));
    if (!answer || answer.get() != Py_NotImplemented) return answer.release();
  }
  return nullptr;
}

bool add_asking(PyObject *module) { return PyModule_AddFunctions(module, functions) == 0; }

}  // namespace plait::python
