// Range: a named part of a program, which observers see as an event.
#include <plait/entry.hpp>
#include <vector>

#include "binding.hpp"

namespace plait::python {
namespace {

struct Open {  // an event that has begun; n is 0 if there was no observer
  plait_event event;
  uint64_t tokens[PLAIT_TOKENS];
  uint64_t n;
};
struct RangeObject {
  PyObject_HEAD PyObject *name;
  uint32_t kind;
  std::vector<Open *> *open;  // a range may be entered again before it is left
};
RangeObject *as_range(PyObject *o) { return reinterpret_cast<RangeObject *>(o); }

bool is_observed(uint64_t kinds) {
  return __atomic_load_n(state.runtime->observed, __ATOMIC_RELAXED) & kinds;
}

PyObject *range_new(PyTypeObject *type, PyObject *, PyObject *) {
  Object self(type->tp_alloc(type, 0));
  if (!self) return nullptr;
  as_range(self.get())->kind = PLAIT_EVENT_RANGE;
  as_range(self.get())->name = PyUnicode_FromString("");
  as_range(self.get())->open = new std::vector<Open *>;
  return self.release();
}

int range_init(PyObject *self, PyObject *args, PyObject *keywords) {
  static const char *names[] = {"name", "kind", nullptr};
  PyObject *name;
  int kind = PLAIT_EVENT_RANGE;
  if (!PyArg_ParseTupleAndKeywords(args, keywords, "U|i:Range", const_cast<char **>(names), &name,
                                   &kind))
    return -1;
  if (kind != PLAIT_EVENT_RANGE && kind != PLAIT_EVENT_DATA) {
    PyErr_Format(PyExc_ValueError,
                 "Range: `kind` must be %d (a range) or %d (waiting for data); got %d",
                 PLAIT_EVENT_RANGE, PLAIT_EVENT_DATA, kind);
    return -1;
  }
  if (!PyUnicode_AsUTF8(name)) return -1;
  if (!as_range(self)->open->empty()) {  // its events have the old name
    PyErr_SetString(PyExc_RuntimeError, "Range: it is open, and keeps its name");
    return -1;
  }
  Py_INCREF(name);
  Py_XSETREF(as_range(self)->name, name);
  as_range(self)->kind = uint32_t(kind);
  return 0;
}

void range_dealloc(PyObject *o) {
  if (std::vector<Open *> *open = as_range(o)->open) {
    for (Open *each : *open) delete each;
    delete open;
  }
  Py_XDECREF(as_range(o)->name);
  PyTypeObject *type = Py_TYPE(o);
  type->tp_free(o);
  Py_DECREF(type);
}

PyObject *range_enter(PyObject *self, PyObject *) {
  RangeObject *r = as_range(self);
  r->open->push_back(nullptr);
  if (is_observed(r->kind)) {
    auto *open = new Open{};
    r->open->back() = open;
    open->event.size = sizeof open->event;
    open->event.kind = r->kind;
    open->event.name = PyUnicode_AsUTF8(r->name);
    open->event.device = {kDLCPU, 0};
    open->n = state.runtime->begin(&open->event, open->tokens, PLAIT_TOKENS);
  }
  Py_INCREF(self);
  return self;
}

PyObject *range_exit(PyObject *self, PyObject *const *args, Py_ssize_t n) {
  RangeObject *r = as_range(self);
  if (r->open->empty()) {
    PyErr_Format(PyExc_RuntimeError, "the range %R was not entered", r->name);
    return nullptr;
  }
  Open *open = r->open->back();
  r->open->pop_back();
  if (open) {
    // the end of an iteration is no failure
    const bool failed =
        n > 0 && args[0] != Py_None && !PyErr_GivenExceptionMatches(args[0], PyExc_StopIteration);
    state.runtime->end(&open->event, open->tokens, open->n, failed ? PLAIT_HOST_ERROR : PLAIT_OK);
    delete open;
  }
  Py_RETURN_NONE;
}

PyObject *range_name(PyObject *self, void *) {
  PyObject *name = as_range(self)->name;
  Py_INCREF(name);
  return name;
}

PyMethodDef range_methods[] = {{"__enter__", entry<range_enter>, METH_NOARGS, nullptr},
                               {"__exit__", function(entry<range_exit>), METH_FASTCALL, nullptr},
                               {nullptr, nullptr, 0, nullptr}};
PyGetSetDef range_fields[] = {{"name", range_name, nullptr, "The name.", nullptr},
                              {nullptr, nullptr, nullptr, nullptr, nullptr}};
PyType_Slot range_slots[] = {
    {Py_tp_new, reinterpret_cast<void *>(entry<range_new>)},
    {Py_tp_init, reinterpret_cast<void *>(entry<range_init>)},
    {Py_tp_dealloc, reinterpret_cast<void *>(range_dealloc)},
    {Py_tp_methods, range_methods},
    {Py_tp_getset, range_fields},
    {Py_tp_doc,
     const_cast<char *>(
         "Range(name, kind=16)\n--\n\n"
         "A part of a program that observers, such as profiles, see under a name.\n\n"
         "It costs next to nothing while nobody watches. It ends on the thread that began it, and\n"
         "may be entered again.\n\n"
         "Args:\n"
         "    name: the name.\n"
         "    kind: 16 (a range) or 128 (the program waits for data).\n\n"
         "Example:\n"
         "    >>> import plait_abi\n"
         "    >>> with plait_abi.Range(\"prepare\") as part:\n"
         "    ...     part.name\n"
         "    'prepare'\n")},
    {0, nullptr}};
PyType_Spec range_spec = {"plait_abi.binding.Range", sizeof(RangeObject), 0,
                          Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE, range_slots};

PyObject *observed(PyObject *, PyObject *kinds) {
  const unsigned long long mask = PyLong_AsUnsignedLongLong(kinds);
  if (PyErr_Occurred()) return nullptr;
  return PyBool_FromLong(is_observed(mask));
}

PyMethodDef functions[] = {{"observed", observed, METH_O,
                            "observed(kinds, /)\n--\n\nWhether anybody watches events of `kinds`, "
                            "which are bits.\n\n"
                            "Example:\n"
                            "    >>> import plait_abi\n"
                            "    >>> plait_abi.observed(1)\n"
                            "    False"},
                           {nullptr, nullptr, 0, nullptr}};

}  // namespace

bool add_ranges(PyObject *module) {
  PyObject *type = PyType_FromSpec(&range_spec);
  return type && PyModule_AddObject(module, "Range", type) == 0 &&
         PyModule_AddFunctions(module, functions) == 0;
}

}  // namespace plait::python
