// dtype objects: one for each dtype, compared by identity.
#include "binding.hpp"

namespace plait::python {
std::string &shown_module() {
  static std::string name = "plait";
  return name;
}

namespace {

struct DTypeObject {
  PyObject_HEAD DLDataType value;
};
constexpr DType all[] = {
    dtype::bool_,           dtype::uint8,       dtype::uint16,          dtype::uint32,
    dtype::uint64,          dtype::int8,        dtype::int16,           dtype::int32,
    dtype::int64,           dtype::float16,     dtype::bfloat16,        dtype::float32,
    dtype::float64,         dtype::complex64,   dtype::complex128,      dtype::float8_e4m3fn,
    dtype::float8_e4m3fnuz, dtype::float8_e5m2, dtype::float8_e5m2fnuz, dtype::float8_e8m0fnu};
constexpr int count = sizeof all / sizeof *all;
PyObject *objects[count];

DLDataType value_of(PyObject *o) { return reinterpret_cast<DTypeObject *>(o)->value; }

struct Alias {
  const char *name;
  DType value;
};
constexpr Alias aliases[] = {
    {"float", dtype::float32}, {"double", dtype::float64},   {"half", dtype::float16},
    {"long", dtype::int64},    {"int", dtype::int32},        {"short", dtype::int16},
    {"bool_", dtype::bool_},   {"cfloat", dtype::complex64}, {"cdouble", dtype::complex128}};

int by_name(const char *text, bool with_aliases, DLDataType *out) {
  for (const DType d : all)
    if (strcmp(text, name(d)) == 0) return *out = d, PLAIT_CONVERTED;
  for (const Alias &a : aliases)
    if (with_aliases && strcmp(text, a.name) == 0) return *out = a.value, PLAIT_CONVERTED;
  return PLAIT_NOT_CONVERTIBLE;
}

int from_type(PyTypeObject *type, DLDataType *out) {
  if (type == &PyBool_Type) return *out = dtype::bool_, PLAIT_CONVERTED;
  if (type == &PyLong_Type) return *out = dtype::int64, PLAIT_CONVERTED;
  if (type == &PyFloat_Type) return *out = dtype::float64, PLAIT_CONVERTED;
  if (type == &PyComplex_Type) return *out = dtype::complex128, PLAIT_CONVERTED;
  if (strcmp(type->tp_name, "numpy.bool_") == 0) return *out = dtype::bool_, PLAIT_CONVERTED;
  if (strcmp(type->tp_name, "numpy.longlong") == 0) return *out = dtype::int64, PLAIT_CONVERTED;
  if (strcmp(type->tp_name, "numpy.ulonglong") == 0) return *out = dtype::uint64, PLAIT_CONVERTED;
  return strncmp(type->tp_name, "numpy.", 6) == 0 ? by_name(type->tp_name + 6, false, out)
                                                  : PLAIT_NOT_CONVERTIBLE;
}

// NumPy's and torch's dtype objects say their name
int from_object(PyObject *o, DLDataType *out) {
  if (strcmp(Py_TYPE(o)->tp_name, "torch.dtype") == 0) {
    Object text(PyObject_Str(o));
    const char *s = text ? PyUnicode_AsUTF8(text.get()) : nullptr;
    return s ? by_name(s + (strncmp(s, "torch.", 6) == 0 ? 6 : 0), false, out)
             : PLAIT_CONVERSION_FAILED;
  }
  // classes of dtypes that other packages add, as ml_dtypes does, have names of their own
  if (strcmp(Py_TYPE(Py_TYPE(o))->tp_name, "numpy._DTypeMeta") != 0) return PLAIT_NOT_CONVERTIBLE;
  Object native(PyObject_GetAttrString(o, "isnative"));
  Object text(PyObject_GetAttrString(o, "name"));
  const char *s = text ? PyUnicode_AsUTF8(text.get()) : nullptr;
  if (!native || !s) return PLAIT_CONVERSION_FAILED;
  if (native.get() != Py_True) {
    PyErr_Format(state.dtype_error, "dtype: the machine's byte order is required, got %R", o);
    return PLAIT_CONVERSION_FAILED;
  }
  return by_name(s, false, out);
}

PyObject *make(PyTypeObject *, PyObject *args, PyObject *kwargs) {
  PyObject *o = nullptr;
  static const char *names[] = {"dtype", nullptr};
  if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O:dtype", const_cast<char **>(names), &o))
    return nullptr;
  DLDataType d;
  const int done = dtype_from(o, &d);
  if (done == PLAIT_CONVERTED) return dtype_object(d);
  if (done == PLAIT_NOT_CONVERTIBLE)
    PyErr_Format(state.dtype_error, "dtype: the name of a dtype is required, got %R", o);
  return nullptr;
}

PyObject *repr(PyObject *self) {
  return PyUnicode_FromFormat("%s.%s", shown_module().c_str(), name(value_of(self)));
}
PyObject *get_name(PyObject *self, void *) { return PyUnicode_FromString(name(value_of(self))); }
PyObject *get_itemsize(PyObject *self, void *) {
  return PyLong_FromLongLong(itemsize(value_of(self)));
}
PyObject *get_floating(PyObject *self, void *) {
  return PyBool_FromLong(is_floating(value_of(self)));
}
PyObject *get_complex(PyObject *self, void *) {
  return PyBool_FromLong(value_of(self).code == kDLComplex);
}
PyObject *get_signed(PyObject *self, void *) { return PyBool_FromLong(is_signed(value_of(self))); }
PyObject *get_numpy(PyObject *self, void *) {
  if (value_of(self).code == kDLBfloat || is_float8(value_of(self))) {
    Object module(PyImport_ImportModule("ml_dtypes"));
    if (!module) {
      PyErr_Format(state.dtype_error,
                   "dtype: NumPy has no %s; install ml_dtypes, or cast to float32 first",
                   name(value_of(self)));
      return nullptr;
    }
    Object scalar(PyObject_GetAttrString(module.get(), name(value_of(self))));
    Object numpy(PyImport_ImportModule("numpy"));
    return scalar && numpy ? PyObject_CallMethod(numpy.get(), "dtype", "O", scalar.get()) : nullptr;
  }
  Object numpy(PyImport_ImportModule("numpy"));
  return numpy ? PyObject_CallMethod(numpy.get(), "dtype", "s", name(value_of(self))) : nullptr;
}
PyObject *reduce(PyObject *self, PyObject *) {
  return Py_BuildValue("O(s)", reinterpret_cast<PyObject *>(state.dtype_type),
                       name(value_of(self)));
}
PyObject *dlpack_data_type(PyObject *self, PyObject *) {
  const DLDataType d = value_of(self);
  return Py_BuildValue("iii", int(d.code), int(d.bits), int(d.lanes));
}

PyObject *shown_module_(PyObject *, PyObject *args) {
  const char *required = nullptr;
  if (!PyArg_ParseTuple(args, "|z:shown_module", &required)) return nullptr;
  PyObject *before = PyUnicode_FromString(shown_module().c_str());
  if (!before || !required) return before;
  shown_module() = required;
  if (!show_named_results(required)) Py_CLEAR(before);
  return before;
}

PyMethodDef functions[] = {
    {"shown_module", entry<shown_module_>, METH_VARARGS,
     "shown_module(name=None, /)\n--\n\nReturn the module that the texts of dtypes, layouts and "
     "sizes and the classes of named results name, \"plait\", and set another one.\n\nExample:\n"
     "    >>> from plait_abi import binding\n"
     "    >>> binding.shown_module()\n"
     "    'plait'"},
    {nullptr, nullptr, 0, nullptr}};

PyGetSetDef getters[] = {
    {"name", entry<get_name>, nullptr, "\"float32\"", nullptr},
    {"itemsize", entry<get_itemsize>, nullptr, "bytes of one element", nullptr},
    {"is_floating_point", entry<get_floating>, nullptr, nullptr, nullptr},
    {"is_complex", entry<get_complex>, nullptr, nullptr, nullptr},
    {"is_signed", entry<get_signed>, nullptr, nullptr, nullptr},
    {"dtype", entry<get_numpy>, nullptr, "NumPy's dtype object; lets NumPy accept a plait dtype",
     nullptr},
    {nullptr, nullptr, nullptr, nullptr, nullptr}};
PyMethodDef methods[] = {
    {"__reduce__", entry<reduce>, METH_NOARGS, nullptr},
    {"__dlpack_data_type__", entry<dlpack_data_type>, METH_NOARGS,
     "__dlpack_data_type__($self, /)\n--\n\n(type code, bits, lanes) of DLPack."},
    {nullptr, nullptr, 0, nullptr}};

PyType_Slot slots[] = {
    {Py_tp_new, reinterpret_cast<void *>(entry<make>)},
    {Py_tp_repr, reinterpret_cast<void *>(entry<repr>)},
    {Py_tp_getset, getters},
    {Py_tp_methods, methods},
    {Py_tp_doc, const_cast<char *>(
                    "dtype(name)\n--\n\nThe kind of a tensor's elements: one object for each."
                    "\n\nExample:\n"
                    "    >>> import plait_core as pc\n"
                    "    >>> pc.dtype(\"float32\") is pc.float32\n"
                    "    True\n"
                    "    >>> pc.int16.itemsize, pc.int16.is_signed, pc.int16.is_floating_point\n"
                    "    (2, True, False)")},
    {0, nullptr}};
PyType_Spec spec{"plait_abi.dtype", sizeof(DTypeObject), 0, Py_TPFLAGS_DEFAULT, slots};

}  // namespace

PyObject *dtype_object(DLDataType d) {
  for (int i = 0; i < count; i++)
    if (same(d, all[i])) return new_reference(objects[i]);
  PyErr_Format(state.dtype_error, "dtype: no dtype has code %d, %d bits and %d lanes", d.code,
               d.bits, d.lanes);
  return nullptr;
}

int dtype_from(PyObject *o, DLDataType *out) {
  if (Py_TYPE(o) == state.dtype_type) return *out = value_of(o), PLAIT_CONVERTED;
  if (PyType_Check(o)) return from_type(reinterpret_cast<PyTypeObject *>(o), out);
  if (PyUnicode_Check(o)) {
    const char *s = PyUnicode_AsUTF8(o);
    return s ? by_name(s, true, out) : PLAIT_CONVERSION_FAILED;
  }
  return from_object(o, out);
}

bool add_dtypes(PyObject *module) {
  state.dtype_type = reinterpret_cast<PyTypeObject *>(PyType_FromSpec(&spec));
  if (!state.dtype_type ||
      PyModule_AddObjectRef(module, "dtype", reinterpret_cast<PyObject *>(state.dtype_type)) < 0)
    return false;
  for (int i = 0; i < count; i++) {
    auto *o = PyObject_New(DTypeObject, state.dtype_type);
    if (!o) return false;
    o->value = all[i];
    objects[i] = reinterpret_cast<PyObject *>(o);
  }
  Object list(PyTuple_New(count));
  for (int i = 0; list && i < count; i++)
    PyTuple_SET_ITEM(list.get(), i, new_reference(objects[i]));
  return list && PyModule_AddObjectRef(module, "dtypes", list.get()) == 0 &&
         PyModule_AddFunctions(module, functions) == 0;
}

}  // namespace plait::python
