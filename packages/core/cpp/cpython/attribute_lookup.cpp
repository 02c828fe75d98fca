// Calls and attribute lookup of modules: members come from dicts in the instance's __dict__,
// without a call of Python code. It does what object.__getattribute__ and then Module.__getattr__
// do, and leaves what is unusual to the latter. CPython restores the slot when __getattr__,
// __getattribute__ or the bases of a class, or of one of its bases, are assigned; and that of calls
// with __call__.
//
// Private parts of CPython, 3.10 to 3.14, the versions that are tested: the look-up in a type
// through its cache, and slots that are set in a class that exists. On other versions `install`
// does nothing, and modules run their __getattr__ and __call__ in Python: the public way, which is
// as right and takes 0.4 microseconds for a member.
#include <pybind11/pybind11.h>

#include <vector>

#include "tensor/tensor.hpp"

namespace py = pybind11;

namespace plait::core {
namespace {

PyObject *registries[3];  // names of the dicts of members, in the order of the search
PyObject *hooks[4];  // names of the dicts of hooks that a call runs
PyObject *forward, *getattr_name, *getattribute_name, *call_name;
PyObject *usual_getattribute;  // that of object
// of modules: __call__, a function that notes the module on an exception, and the hooks of all
// modules
PyObject *usual_call, *note_exception, *global_hooks[4];

// Looks a name up in a dict. 1: found (a new reference), 0: absent, -1: an error.
int find(PyObject *dict, PyObject *name, PyObject **result) {
#if PY_VERSION_HEX >= 0x030D0000
  return PyDict_GetItemRef(dict, name, result);
#else
  *result = PyDict_GetItemWithError(dict, name);
  if (!*result) return PyErr_Occurred() ? -1 : 0;
  Py_INCREF(*result);
  return 1;
#endif
}

// The class attribute of a name in the MRO, through CPython's cache; a new reference or null.
// Neither function is documented; they are exported since 2.3 and 3.13. On other versions `install`
// does nothing.
#if defined(PYPY_VERSION) || PY_VERSION_HEX >= 0x030F0000
constexpr bool kHasTypeLookup = false;
Object in_type(PyTypeObject *, PyObject *) { return Object(); }
#elif PY_VERSION_HEX >= 0x030D0000
constexpr bool kHasTypeLookup = true;
Object in_type(PyTypeObject *type, PyObject *name) { return Object(_PyType_LookupRef(type, name)); }
#else
constexpr bool kHasTypeLookup = true;
Object in_type(PyTypeObject *type, PyObject *name) {
  PyObject *result = _PyType_Lookup(type, name);
  Py_XINCREF(result);
  return Object(result);
}
#endif

// The value of a descriptor. 1: found, 0: it raised AttributeError, -1: another error.
int value_of(descrgetfunc get, PyObject *descriptor, PyObject *self, PyObject **result) {
  *result = get(descriptor, self, reinterpret_cast<PyObject *>(Py_TYPE(self)));
  if (*result) return 1;
  if (!PyErr_ExceptionMatches(PyExc_AttributeError)) return -1;
  PyErr_Clear();
  return 0;
}

// The lookup of object.__getattribute__. 1: found (a new reference), 0: absent, -1: an error.
int ordinary(PyObject *self, PyObject *attributes, PyObject *name, PyObject **result) {
  const Object of_type = in_type(Py_TYPE(self), name);
  const descrgetfunc get = of_type ? Py_TYPE(of_type.get())->tp_descr_get : nullptr;
  if (get && PyDescr_IsData(of_type.get())) return value_of(get, of_type.get(), self, result);
  const int there = find(attributes, name, result);
  if (there || !of_type) return there;
  if (get) return value_of(get, of_type.get(), self, result);
  *result = new_reference(of_type.get());
  return 1;
}

// The lookup of Module.__getattr__. 1: found (a new reference), 0: absent, -1: an error, kUnusual:
// Python code must look.
constexpr int kUnusual = 2;
int in_registries(PyObject *attributes, PyObject *name, PyObject **result) {
  for (PyObject *kind : registries) {
    PyObject *members = nullptr;
    const int there = find(attributes, kind, &members);
    if (there < 0) return -1;
    if (!there) continue;
    const Object held(members);
    if (!PyDict_CheckExact(members)) return kUnusual;  // it may define __contains__
    if (PyDict_GET_SIZE(members) == 0) continue;
    const int done = find(members, name, result);
    if (done) return done;
  }
  return 0;
}

// Ends a lookup as Python does: by the __getattr__ of the type.
PyObject *by_getattr(PyObject *self, PyObject *name) {
  const Object method = in_type(Py_TYPE(self), getattr_name);
  if (!method) {
    PyErr_SetObject(PyExc_AttributeError, name);
    return nullptr;
  }
  const descrgetfunc get = Py_TYPE(method.get())->tp_descr_get;
  if (!get) return PyObject_CallFunctionObjArgs(method.get(), name, nullptr);
  const Object bound(get(method.get(), self, reinterpret_cast<PyObject *>(Py_TYPE(self))));
  return bound ? PyObject_CallFunctionObjArgs(bound.get(), name, nullptr) : nullptr;
}

// The slot tp_getattro of modules.
PyObject *get_attribute(PyObject *self, PyObject *name) {
  if (!PyUnicode_CheckExact(name)) {  // a subclass of str may define __eq__ and __hash__
    PyObject *value = PyObject_GenericGetAttr(self, name);
    if (value || !PyErr_ExceptionMatches(PyExc_AttributeError)) return value;
    PyErr_Clear();
    return by_getattr(self, name);
  }
  const Object attributes(PyObject_GenericGetDict(self, nullptr));
  if (!attributes) return nullptr;
  PyObject *value = nullptr;
  int there = ordinary(self, attributes.get(), name, &value);
  if (!there) there = in_registries(attributes.get(), name, &value);
  if (there == 0 || there == kUnusual) return by_getattr(self, name);
  return there > 0 ? value : nullptr;
}

// Whether a module has hooks that a call runs, or Python code must look.
bool is_hooked(PyObject *attributes) {
  for (PyObject *of_all : global_hooks)
    if (PyDict_GET_SIZE(of_all)) return true;
  for (PyObject *kind : hooks) {
    PyObject *own = nullptr;
    if (find(attributes, kind, &own) <= 0) return true;
    const Object held(own);
    // an OrderedDict is a dict that defines no size of its own
    if (!(PyODict_CheckExact(own) || PyDict_CheckExact(own)) || PyDict_GET_SIZE(own)) return true;
  }
  return false;
}

// Whether no code of a class runs before the look-up in an instance's __dict__ and in the class.
bool looks_up_as_object(PyTypeObject *type) {
  return type->tp_getattro == get_attribute ||
         in_type(type, getattribute_name).get() == usual_getattribute;
}

// The function that a call of a module without hooks runs; empty where Python code must look.
Object plain_forward(PyObject *self) {
  if (!looks_up_as_object(Py_TYPE(self))) return Object();
  const Object attributes(PyObject_GenericGetDict(self, nullptr));
  PyObject *own = nullptr;
  if (!attributes || is_hooked(attributes.get()) || find(attributes.get(), forward, &own)) {
    Py_XDECREF(own);
    PyErr_Clear();
    return Object();
  }
  Object function = in_type(Py_TYPE(self), forward);
  return function && PyFunction_Check(function.get()) ? std::move(function) : Object();
}

// function(first, *args, **kwargs)
PyObject *call_with(PyObject *function, PyObject *first, PyObject *args, PyObject *kwargs) {
  constexpr Py_ssize_t few = 8;
  PyObject *room[few];
  const Py_ssize_t n = PyTuple_GET_SIZE(args);
  std::vector<PyObject *> more(n < few ? 0 : size_t(n) + 1);
  PyObject **all = n < few ? room : more.data();
  all[0] = first;
  for (Py_ssize_t i = 0; i < n; i++) all[i + 1] = PyTuple_GET_ITEM(args, i);
  return PyObject_VectorcallDict(function, all, size_t(n) + 1, kwargs);
}

// Adds the module to the exception that is set.
void note(PyObject *self) {
#if PY_VERSION_HEX >= 0x030C0000
  PyObject *error = PyErr_GetRaisedException();
  PyObject *args[] = {error, self};
  const Object done(PyObject_Vectorcall(note_exception, args, 2, nullptr));
  if (done) return PyErr_SetRaisedException(error);
  Py_DECREF(error);
#else
  PyObject *type, *error, *trace;
  PyErr_Fetch(&type, &error, &trace);
  PyErr_NormalizeException(&type, &error, &trace);
  if (trace) PyException_SetTraceback(error, trace);
  PyObject *args[] = {error, self};
  const Object done(PyObject_Vectorcall(note_exception, args, 2, nullptr));
  if (done) return PyErr_Restore(type, error, trace);
  Py_XDECREF(type);
  Py_XDECREF(error);
  Py_XDECREF(trace);
#endif
}

// The slot tp_call of modules.
PyObject *call_module(PyObject *self, PyObject *args, PyObject *kwargs) {
  const Object function = plain_forward(self);
  if (!function) return call_with(usual_call, self, args, kwargs);
  PyObject *result = call_with(function.get(), self, args, kwargs);
  if (!result && PyErr_ExceptionMatches(PyExc_Exception)) note(self);
  return result;
}

// hasattr without making an AttributeError.
bool has(const py::object &self, const py::object &name) {
  PyObject *value = nullptr;
  int there = kUnusual;
  if (Py_TYPE(self.ptr())->tp_getattro == get_attribute && PyUnicode_CheckExact(name.ptr())) {
    const Object attributes(PyObject_GenericGetDict(self.ptr(), nullptr));
    there = attributes ? ordinary(self.ptr(), attributes.get(), name.ptr(), &value) : -1;
    if (!there) there = in_registries(attributes.get(), name.ptr(), &value);
  }
  if (there == kUnusual) {
    value = PyObject_GetAttr(self.ptr(), name.ptr());
    there = value ? 1 : PyErr_ExceptionMatches(PyExc_AttributeError) ? 0 : -1;
    if (!there) PyErr_Clear();
  }
  Py_XDECREF(value);
  if (there < 0) throw py::error_already_set();
  return there;
}

bool install(const py::object &cls, const py::object &getattr) {
  if (!PyType_Check(cls.ptr())) throw py::type_error("install: `cls` must be a class");
  auto *type = reinterpret_cast<PyTypeObject *>(cls.ptr());
  if (!kHasTypeLookup || !PyType_HasFeature(type, Py_TPFLAGS_HEAPTYPE)) return false;
  if (in_type(type, getattr_name).get() != getattr.ptr() ||
      in_type(type, getattribute_name).get() != usual_getattribute)
    return false;
  type->tp_getattro = get_attribute;
  PyType_Modified(type);
  return true;
}

bool install_calls(const py::object &cls, const py::object &call, const py::object &noted,
                   const py::dict &attributes) {
  if (!PyType_Check(cls.ptr())) throw py::type_error("install_calls: `cls` must be a class");
  auto *type = reinterpret_cast<PyTypeObject *>(cls.ptr());
  if (in_type(type, call_name).get() != call.ptr() || !looks_up_as_object(type)) return false;
  if (!usual_call) {  // for the life of the process
    for (int i = 0; i < 4; i++) {
      PyObject *of_all = PyDict_GetItemWithError(attributes.ptr(), hooks[i]);
      if (!of_all && PyErr_Occurred()) throw py::error_already_set();
      if (!of_all || !PyDict_Check(of_all)) return false;
      global_hooks[i] = new_reference(of_all);
    }
    usual_call = new_reference(call.ptr());
    note_exception = new_reference(noted.ptr());
  }
  if (usual_call != call.ptr()) return false;
  type->tp_call = call_module;
  PyType_Modified(type);
  return true;
}

bool installed(const py::object &cls) {
  return PyType_Check(cls.ptr()) &&
         reinterpret_cast<PyTypeObject *>(cls.ptr())->tp_getattro == get_attribute;
}

}  // namespace

void add_attribute_lookup(py::module_ &m) {
  int n = 0;
  for (const char *name : {"_parameters", "_buffers", "_modules"})
    registries[n++] = PyUnicode_InternFromString(name);
  n = 0;
  for (const char *name :
       {"_backward_pre_hooks", "_backward_hooks", "_forward_hooks", "_forward_pre_hooks"})
    hooks[n++] = PyUnicode_InternFromString(name);
  getattr_name = PyUnicode_InternFromString("__getattr__");
  getattribute_name = PyUnicode_InternFromString("__getattribute__");
  usual_getattribute = in_type(&PyBaseObject_Type, getattribute_name).release();
  forward = PyUnicode_InternFromString("forward");
  call_name = PyUnicode_InternFromString("__call__");
  m.def("_install_module_calls", install_calls, py::arg("cls"), py::arg("call"), py::arg("note"),
        py::arg("attributes"));
  m.def("_has_attribute", has, py::arg("instance"), py::arg("name"));
  m.def("_install_attribute_lookup", install, py::arg("cls"), py::arg("getattr"));
  m.def("_has_attribute_lookup", installed, py::arg("cls"));
}

}  // namespace plait::core
