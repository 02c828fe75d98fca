// Handle: the type of results while no tensor type is registered. It only exchanges its bytes by
// DLPack and the buffer protocol.
#include "binding.hpp"

namespace plait::python {
namespace {

struct HandleObject {
  PyObject_HEAD plait_tensor *handle;
};
plait_tensor *handle_in(PyObject *o) { return reinterpret_cast<HandleObject *>(o)->handle; }

void dealloc(PyObject *self) {
  PyTypeObject *type = Py_TYPE(self);
  plait_release(handle_in(self));
  PyObject_Free(self);
  Py_DECREF(type);
}
PyObject *get_shape(PyObject *self, void *) {
  const DLTensor &dl = handle_in(self)->dl;
  PyObject *shape = PyTuple_New(dl.ndim);
  for (int i = 0; shape && i < dl.ndim; i++)
    PyTuple_SET_ITEM(shape, i, PyLong_FromLongLong(dl.shape[i]));
  return shape;
}
PyObject *get_dtype(PyObject *self, void *) { return dtype_object(handle_in(self)->dl.dtype); }
PyObject *get_device(PyObject *self, void *) { return device_object(handle_in(self)->dl.device); }
PyObject *repr(PyObject *self) {
  return PyUnicode_FromFormat("<plait Handle of shape %s, %s>", shape_text(handle_in(self)).c_str(),
                              name(handle_in(self)->dl.dtype));
}
PyObject *dlpack(PyObject *self, PyObject *args, PyObject *kwargs) {
  PyObject *stream = nullptr, *max_version = nullptr, *device = nullptr, *copy = nullptr;
  static const char *names[] = {"stream", "max_version", "dl_device", "copy", nullptr};
  if (!PyArg_ParseTupleAndKeywords(args, kwargs, "|$OOOO:__dlpack__", const_cast<char **>(names),
                                   &stream, &max_version, &device, &copy))
    return nullptr;
  if (copy == Py_True)
    return PyErr_Format(PyExc_BufferError, "__dlpack__: `copy=True` is not supported by a Handle");
  if (hand_over(handle_in(self), stream) < 0) return nullptr;
  const bool versioned = max_version && PyTuple_Check(max_version) &&
                         PyTuple_GET_SIZE(max_version) == 2 &&
                         PyLong_AsLong(PyTuple_GET_ITEM(max_version, 0)) >= 1;
  return PyErr_Occurred() ? nullptr : export_dlpack(handle_in(self), versioned, 0);
}
PyObject *dlpack_device(PyObject *self, PyObject *) {
  const DLDevice d = handle_in(self)->dl.device;
  return Py_BuildValue("ii", int(d.device_type), int(d.device_id));
}

plait_tensor *unwrap_handle(PyObject *o) { return handle_in(o); }
const plait_tensor_type handle_table{PLAIT_HEADER(plait_tensor_type), unwrap_handle, wrap_handle,
                                     offsetof(HandleObject, handle)};

PyGetSetDef getters[] = {{"shape", entry<get_shape>, nullptr, nullptr, nullptr},
                         {"dtype", entry<get_dtype>, nullptr, nullptr, nullptr},
                         {"device", entry<get_device>, nullptr, nullptr, nullptr},
                         {nullptr, nullptr, nullptr, nullptr, nullptr}};
PyMethodDef methods[] = {
    {"__dlpack__", reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(entry<dlpack>)),
     METH_VARARGS | METH_KEYWORDS, nullptr},
    {"__dlpack_device__", entry<dlpack_device>, METH_NOARGS, nullptr},
    {nullptr, nullptr, 0, nullptr}};
PyType_Slot slots[] = {
    {Py_tp_dealloc, reinterpret_cast<void *>(dealloc)},
    {Py_tp_repr, reinterpret_cast<void *>(entry<repr>)},
    {Py_tp_getset, getters},
    {Py_tp_methods, methods},
    {Py_tp_doc,
     const_cast<char *>("A result without a tensor type: exchange it by DLPack.\n\n"
                        "Operators return it while no package with a tensor type is loaded.\n\n"
                        "Example:\n"
                        "    >>> import plait_abi\n"
                        "    >>> hasattr(plait_abi.Handle, '__dlpack__')\n"
                        "    True")},
    {0, nullptr}};
PyType_Spec spec{"plait_abi.Handle", sizeof(HandleObject), 0,
                 Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION, slots};

}  // namespace

PyObject *wrap_handle(plait_tensor *t) {
  auto *o = PyObject_New(HandleObject, state.handle_type);
  if (o)
    o->handle = t;
  else
    plait_release(t);
  return reinterpret_cast<PyObject *>(o);
}

bool add_handle_type(PyObject *module) {
  state.handle_type = reinterpret_cast<PyTypeObject *>(PyType_FromSpec(&spec));
  Object capsule(
      PyCapsule_New(const_cast<plait_tensor_type *>(&handle_table), "plait.tensor", nullptr));
  auto *type = reinterpret_cast<PyObject *>(state.handle_type);
  return type && capsule && PyObject_SetAttr(type, state.str_tensor, capsule.get()) == 0 &&
         PyModule_AddObjectRef(module, "Handle", type) == 0;
}

}  // namespace plait::python
