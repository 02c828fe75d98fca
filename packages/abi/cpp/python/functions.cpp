// Function: wraps a function written in Python so that it does not bind to instances, like
// functions written in C. It has the name, the signature and the attributes of the wrapped
// function.
#include <cstring>

#include "binding.hpp"

#include <structmember.h>

namespace plait::python {
namespace {

struct FunctionObject {
  PyObject_HEAD vectorcallfunc vectorcall;
  PyObject *function;
};
FunctionObject *self_of(PyObject *o) { return reinterpret_cast<FunctionObject *>(o); }

PyObject *vectorcall(PyObject *self, PyObject *const *args, size_t nargsf, PyObject *kwnames) {
  return PyObject_Vectorcall(self_of(self)->function, args, nargsf, kwnames);
}

// Whether an attribute is the wrapper's. All others are those of the wrapped function.
bool is_own(PyObject *name) {
  for (const char *own : {"__class__", "__wrapped__", "__call__", "__reduce__", "__reduce_ex__",
                          "__repr__", "__hash__", "__eq__", "__ne__"})
    if (PyUnicode_CompareWithASCIIString(name, own) == 0) return true;
  return false;
}

PyObject *get_attribute(PyObject *self, PyObject *name) {
  // a class attribute `__get__` would make a method of it
  if (PyUnicode_Check(name) && PyUnicode_CompareWithASCIIString(name, "__get__") == 0) {
    PyErr_SetObject(PyExc_AttributeError, name);
    return nullptr;
  }
  return is_own(name) ? PyObject_GenericGetAttr(self, name)
                      : PyObject_GetAttr(self_of(self)->function, name);
}
int set_attribute(PyObject *self, PyObject *name, PyObject *value) {
  return PyObject_SetAttr(self_of(self)->function, name, value);
}

PyObject *make(PyTypeObject *type, PyObject *args, PyObject *kwargs) {
  PyObject *function = nullptr;
  if (kwargs && PyDict_GET_SIZE(kwargs))
    return PyErr_Format(PyExc_TypeError, "Function: no keyword is accepted");
  if (!PyArg_ParseTuple(args, "O:Function", &function)) return nullptr;
  if (!PyFunction_Check(function))
    return PyErr_Format(PyExc_TypeError,
                        "Function: a function written in Python is required, got %s",
                        Py_TYPE(function)->tp_name);
  PyObject *o = type->tp_alloc(type, 0);
  if (!o) return nullptr;
  self_of(o)->vectorcall = entry<vectorcall>;
  self_of(o)->function = new_reference(function);
  return o;
}

int traverse(PyObject *self, visitproc visit, void *arg) {
  Py_VISIT(self_of(self)->function);
  Py_VISIT(Py_TYPE(self));
  return 0;
}
int clear(PyObject *self) {
  Py_CLEAR(self_of(self)->function);
  return 0;
}
void dealloc(PyObject *self) {
  PyTypeObject *type = Py_TYPE(self);
  PyObject_GC_UnTrack(self);
  clear(self);
  type->tp_free(self);
  Py_DECREF(type);
}

PyObject *repr(PyObject *self) { return PyObject_Repr(self_of(self)->function); }
// pickle stores the global name and looks it up.
PyObject *reduce(PyObject *self, PyObject *) {
  return PyObject_GetAttrString(self_of(self)->function, "__qualname__");
}

PyMethodDef methods[] = {{"__reduce__", entry<reduce>, METH_NOARGS, nullptr},
                         {nullptr, nullptr, 0, nullptr}};
PyMemberDef members[] = {
    {"__vectorcalloffset__", T_PYSSIZET, offsetof(FunctionObject, vectorcall), READONLY, nullptr},
    {"__wrapped__", T_OBJECT_EX, offsetof(FunctionObject, function), READONLY, nullptr},
    {nullptr, 0, 0, 0, nullptr}};
PyType_Slot slots[] = {{Py_tp_new, reinterpret_cast<void *>(entry<make>)},
                       {Py_tp_dealloc, reinterpret_cast<void *>(dealloc)},
                       {Py_tp_traverse, reinterpret_cast<void *>(traverse)},
                       {Py_tp_clear, reinterpret_cast<void *>(clear)},
                       {Py_tp_repr, reinterpret_cast<void *>(entry<repr>)},
                       {Py_tp_call, reinterpret_cast<void *>(PyVectorcall_Call)},
                       {Py_tp_getattro, reinterpret_cast<void *>(entry<get_attribute>)},
                       {Py_tp_setattro, reinterpret_cast<void *>(entry<set_attribute>)},
                       {Py_tp_methods, methods},
                       {Py_tp_members, members},
                       {0, nullptr}};
PyType_Spec spec{"plait_abi.Function", sizeof(FunctionObject), 0,
                 Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_HAVE_VECTORCALL, slots};

}  // namespace

bool add_functions(PyObject *module) {
  const Object type(PyType_FromSpec(&spec));
  return type && PyModule_AddObjectRef(module, "Function", type.get()) == 0 &&
         PyModule_AddObjectRef(module, "unbound", type.get()) == 0;  // as a decorator
}

}  // namespace plait::python
