// bfloat16 in NumPy arrays: NumPy does not have the dtype, the package ml_dtypes adds it. The bytes
// are exchanged as uint16.
#include "tensor/tensor.hpp"

namespace plait::core {
namespace {

// the same elements under another dtype of the same size
plait_tensor *retagged(plait_tensor *t, DLDataType d) {
  plait_thread *thread = state.runtime->thread();
  plait_tensor *out = nullptr;
  const plait_status s = state.runtime->tensor_on(thread, t->storage, t->dl.data, d, t->dl.ndim,
                                                  t->dl.shape, t->dl.strides, &out);
  return s < 0 ? (raise(thread, s), nullptr) : out;
}

bool is_bfloat_array(PyObject *array) {
  if (strcmp(Py_TYPE(array)->tp_name, "numpy.ndarray") != 0) return false;
  Object dtype(PyObject_GetAttrString(array, "dtype"));
  Object name(dtype ? PyObject_GetAttrString(dtype.get(), "name") : nullptr);
  if (!name) PyErr_Clear();
  return name && PyUnicode_Check(name.get()) &&
         PyUnicode_CompareWithASCIIString(name.get(), "bfloat16") == 0;
}

plait_tensor *import_bfloat(PyObject *array) {
  Object words(PyObject_CallMethod(array, "view", "s", "uint16"));
  plait_tensor *raw =
      words ? state.python->import_array(state.runtime->thread(), words.get()) : nullptr;
  plait_tensor *out = raw ? retagged(raw, dtype::bfloat16) : nullptr;
  plait_release(raw);
  return out;
}

}  // namespace

// dtypes of NumPy itself are imported directly; ml_dtypes is tried if that fails
plait_tensor *import_array(PyObject *array) {
  plait_tensor *t = state.python->import_array(state.runtime->thread(), array);
  if (t) return t;
  PyObject *type, *value, *traceback;
  PyErr_Fetch(&type, &value, &traceback);
  if (!is_bfloat_array(array)) {
    PyErr_Restore(type, value, traceback);
    return nullptr;
  }
  for (PyObject *o : {type, value, traceback}) Py_XDECREF(o);
  return import_bfloat(array);
}

PyObject *bfloat_to_numpy(plait_tensor *t) {
  Object package(PyImport_ImportModule("ml_dtypes"));
  if (!package) {
    if (!PyErr_ExceptionMatches(PyExc_ImportError)) return nullptr;
    PyErr_Clear();
    return PyErr_Format(PyExc_TypeError,
                        "numpy: NumPy has no bfloat16; cast first, as in x.float().numpy(), or "
                        "install ml_dtypes, which brings one");
  }
  plait_tensor *raw = retagged(t, dtype::uint16);
  Object words(raw ? wrap(raw) : nullptr);
  PyObject *module = words ? numpy() : nullptr;
  if (!module) return nullptr;
  Object array(PyObject_CallMethod(module, "asarray", "O", words.get()));
  Object bfloat(array ? PyObject_GetAttrString(package.get(), "bfloat16") : nullptr);
  return bfloat ? PyObject_CallMethod(array.get(), "view", "O", bfloat.get()) : nullptr;
}

}  // namespace plait::core
