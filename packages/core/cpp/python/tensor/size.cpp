// Size: a shape. A tuple of ints that knows how many elements it has.
#include <plait/index.hpp>

#include "tensor/batched.hpp"

namespace plait::core {
namespace {

PyObject *as_size(PyObject *tuple) {  // steals
  Object owned(tuple);
  if (!tuple) return nullptr;
  return PyObject_CallOneArg(reinterpret_cast<PyObject *>(state.size_type), tuple);
}

PyObject *make(PyTypeObject *type, PyObject *args, PyObject *kwargs) {
  Object t(PyTuple_Type.tp_new(type, args, kwargs));
  for (Py_ssize_t i = 0; t && i < PyTuple_GET_SIZE(t.get()); i++) {
    PyObject *o = PyTuple_GET_ITEM(t.get(), i);
    if (PyLong_Check(o) || python::is_recorded_size(o)) continue;
    PyObject *n = PyNumber_Index(o);
    if (!n) return nullptr;
    PyTuple_SET_ITEM(t.get(), i, n);
    Py_DECREF(o);
  }
  return t.release();
}
PyObject *repr(PyObject *self) {
  const Object list(PySequence_List(self)), binding(PyImport_ImportModule("plait_abi.binding"));
  const Object shown(binding ? PyObject_CallMethod(binding.get(), "shown_module", nullptr)
                             : nullptr);
  return list && shown ? PyUnicode_FromFormat("%U.Size(%R)", shown.get(), list.get()) : nullptr;
}
PyObject *count(PyObject *self, PyObject *) {
  Object n(PyLong_FromLong(1));
  for (Py_ssize_t i = 0; n && i < PyTuple_GET_SIZE(self); i++)
    n = Object(PyNumber_Multiply(n.get(), PyTuple_GET_ITEM(self, i)));
  return n.release();
}
PyObject *subscript_size(PyObject *self, PyObject *key) {
  PyObject *o = PyTuple_Type.tp_as_mapping->mp_subscript(self, key);
  return o && PySlice_Check(key) ? as_size(o) : o;
}
PyObject *concat(PyObject *self, PyObject *other) {
  return as_size(PyTuple_Type.tp_as_sequence->sq_concat(self, other));
}
PyObject *repeat(PyObject *self, Py_ssize_t n) {
  return as_size(PyTuple_Type.tp_as_sequence->sq_repeat(self, n));
}

PyMethodDef size_methods[] = {{"numel", entry<count>, METH_NOARGS,
                               "numel($self, /)\n--\n\nThe product of the sizes."
                               "\n\nExample:\n"
                               "    >>> import plait_core as pc\n"
                               "    >>> pc.Size([2, 3]).numel()\n"
                               "    6"},
                              {nullptr, nullptr, 0, nullptr}};
PyType_Slot slots[] = {
    {Py_tp_new, reinterpret_cast<void *>(entry<make>)},
    {Py_tp_repr, reinterpret_cast<void *>(entry<repr>)},
    {Py_tp_methods, size_methods},
    {Py_mp_subscript, reinterpret_cast<void *>(entry<subscript_size>)},
    {Py_sq_concat, reinterpret_cast<void *>(entry<concat>)},
    {Py_sq_repeat, reinterpret_cast<void *>(entry<repeat>)},
    {Py_tp_base, &PyTuple_Type},
    {Py_tp_doc,
     const_cast<char *>("Size(iterable=(), /)\n--\n\nA tensor's shape: a tuple of ints."
                        "\n\nExample:\n"
                        "    >>> import plait_core as pc\n"
                        "    >>> pc.zeros(2, 3).shape.numel(), pc.Size([2, 3]) == (2, 3)\n"
                        "    (6, True)")},
    {0, nullptr}};
PyType_Spec spec{"plait_core.Size", 0, 0, Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE, slots};

}  // namespace

PyObject *size_object(const int64_t *p, int32_t n) {
  PyObject *o = state.size_type->tp_alloc(state.size_type, n);
  for (int32_t i = 0; o && i < n; i++) {
    PyObject *x = size_number(p[i]);
    if (!x) Py_CLEAR(o);
    if (o) PyTuple_SET_ITEM(o, i, x);
  }
  return o;
}

bool add_size(PyObject *module) {
  slots[6].pfunc = &PyTuple_Type;
  state.size_type = reinterpret_cast<PyTypeObject *>(PyType_FromSpec(&spec));
  return state.size_type &&
         PyModule_AddObjectRef(module, "Size", reinterpret_cast<PyObject *>(state.size_type)) == 0;
}

}  // namespace plait::core
