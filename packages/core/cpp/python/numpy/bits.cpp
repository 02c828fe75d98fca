// bfloat16 and float8 in NumPy arrays: NumPy does not have these dtypes, the package ml_dtypes adds
// them. The bytes are exchanged as unsigned integers.
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

// The dtype of ml_dtypes that an array has; false for others.
bool dtype_of_bits(PyObject *array, DLDataType *out) {
  if (strcmp(Py_TYPE(array)->tp_name, "numpy.ndarray") != 0) return false;
  Object dtype(PyObject_GetAttrString(array, "dtype"));
  const bool is_one = dtype && state.python->dtype(dtype.get(), out) == PLAIT_CONVERTED &&
                      (out->code == kDLBfloat || is_float8(*out));
  PyErr_Clear();
  return is_one;
}

plait_tensor *import_bits(PyObject *array, DLDataType dtype) {
  Object words(PyObject_CallMethod(array, "view", "s", dtype.bits == 16 ? "uint16" : "uint8"));
  plait_tensor *raw =
      words ? state.python->import_array(state.runtime->thread(), words.get()) : nullptr;
  plait_tensor *out = raw ? retagged(raw, dtype) : nullptr;
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
  DLDataType dtype;
  if (!dtype_of_bits(array, &dtype)) {
    PyErr_Restore(type, value, traceback);
    return nullptr;
  }
  for (PyObject *o : {type, value, traceback}) Py_XDECREF(o);
  return import_bits(array, dtype);
}

PyObject *bits_to_numpy(plait_tensor *t) {
  Object package(PyImport_ImportModule("ml_dtypes"));
  if (!package) {
    if (!PyErr_ExceptionMatches(PyExc_ImportError)) return nullptr;
    PyErr_Clear();
    return PyErr_Format(PyExc_TypeError,
                        "numpy: NumPy has no %s; cast first, as in x.float().numpy(), or "
                        "install ml_dtypes, which brings one",
                        name(t->dl.dtype));
  }
  plait_tensor *raw = retagged(t, t->dl.dtype.bits == 16 ? dtype::uint16 : dtype::uint8);
  Object words(raw ? wrap(raw) : nullptr);
  PyObject *module = words ? numpy() : nullptr;
  if (!module) return nullptr;
  Object array(PyObject_CallMethod(module, "asarray", "O", words.get()));
  Object scalar(array ? PyObject_GetAttrString(package.get(), name(t->dl.dtype)) : nullptr);
  return scalar ? PyObject_CallMethod(array.get(), "view", "O", scalar.get()) : nullptr;
}

}  // namespace plait::core
