// Access to single elements, for gradcheck, which perturbs one number at a time.
#include "binding.hpp"

namespace plait::autograd::python {
namespace {

// The address of the i-th element in C order; NULL with an exception.
char *address(plait_tensor *t, int64_t i) {
  if (t->dl.device.device_type != kDLCPU)
    return PyErr_SetString(PyExc_NotImplementedError, "gradcheck: tensors must be on the CPU"),
           nullptr;
  if (i < 0 || i >= numel(t))
    return PyErr_SetString(PyExc_IndexError, "gradcheck: no such element"), nullptr;
  int64_t at = 0;
  for (int32_t d = t->dl.ndim - 1; d >= 0; d--) {
    at += i % t->dl.shape[d] * t->dl.strides[d];
    i /= t->dl.shape[d];
  }
  return static_cast<char *>(t->dl.data) + at * itemsize(t->dl.dtype);
}

PyObject *wrong_dtype(const plait_tensor *t) {
  return PyErr_Format(PyExc_TypeError,
                      "gradcheck: float64, float32 or their complex dtypes are required, got %s",
                      plait::name(t->dl.dtype));
}

PyObject *element(PyObject *, PyObject *args) {
  PyObject *o;
  long long i = 0;
  if (!PyArg_ParseTuple(args, "OL", &o, &i)) return nullptr;
  plait_tensor *t = tensor_from(o, "gradcheck: argument");
  const char *p = t ? address(t, i) : nullptr;
  if (!p) return nullptr;
  if (same(t->dl.dtype, dtype::float64))
    return PyFloat_FromDouble(*reinterpret_cast<const double *>(p));
  if (same(t->dl.dtype, dtype::float32))
    return PyFloat_FromDouble(double(*reinterpret_cast<const float *>(p)));
  if (same(t->dl.dtype, dtype::complex128)) {
    const auto *z = reinterpret_cast<const double *>(p);
    return PyComplex_FromDoubles(z[0], z[1]);
  }
  if (same(t->dl.dtype, dtype::complex64)) {
    const auto *z = reinterpret_cast<const float *>(p);
    return PyComplex_FromDoubles(double(z[0]), double(z[1]));
  }
  return wrong_dtype(t);
}

PyObject *set_element(PyObject *, PyObject *args) {
  PyObject *o;
  long long i = 0;
  Py_complex x;
  if (!PyArg_ParseTuple(args, "OLD", &o, &i, &x)) return nullptr;
  plait_tensor *t = tensor_from(o, "gradcheck: argument");
  char *p = t ? address(t, i) : nullptr;
  if (!p) return nullptr;
  if (same(t->dl.dtype, dtype::float64))
    *reinterpret_cast<double *>(p) = x.real;
  else if (same(t->dl.dtype, dtype::float32))
    *reinterpret_cast<float *>(p) = float(x.real);
  else if (same(t->dl.dtype, dtype::complex128)) {
    reinterpret_cast<double *>(p)[0] = x.real;
    reinterpret_cast<double *>(p)[1] = x.imag;
  } else if (same(t->dl.dtype, dtype::complex64)) {
    reinterpret_cast<float *>(p)[0] = float(x.real);
    reinterpret_cast<float *>(p)[1] = float(x.imag);
  } else
    return wrong_dtype(t);
  state.runtime->touched(t->storage);
  Py_RETURN_NONE;
}

PyObject *count(PyObject *, PyObject *o) {
  const plait_tensor *t = tensor_from(o, "gradcheck: argument");
  return t ? PyLong_FromLongLong(numel(t)) : nullptr;
}

PyObject *is_floating(PyObject *, PyObject *o) {
  const plait_tensor *t = tensor_from(o, "gradcheck: argument");
  return t ? PyBool_FromLong(t->dl.dtype.code == kDLFloat || t->dl.dtype.code == kDLBfloat)
           : nullptr;
}

PyObject *is_complex(PyObject *, PyObject *o) {
  const plait_tensor *t = tensor_from(o, "gradcheck: argument");
  return t ? PyBool_FromLong(t->dl.dtype.code == kDLComplex) : nullptr;
}

PyObject *zeros_like(PyObject *, PyObject *o) {
  plait_tensor *t = tensor_from(o, "gradcheck: argument"), *made = nullptr;
  if (!t) return nullptr;
  plait_status s = state.runtime->tensor_new(this_thread(), t->dl.dtype, t->dl.ndim, t->dl.shape,
                                             nullptr, t->dl.device, &made);
  if (s < 0) return raise(s);
  if (t->dl.device.device_type == kDLCPU && made->dl.data)
    std::memset(made->dl.data, 0, size_t(numel(made) * itemsize(made->dl.dtype)));
  return state.python->wrap(made);
}

}  // namespace

PyMethodDef element_functions[] = {
    {"element", entry<element>, METH_VARARGS, "The i-th element in C order."},
    {"set_element", entry<set_element>, METH_VARARGS, "Writes the i-th element in C order."},
    {"count", entry<count>, METH_O, "How many elements there are."},
    {"is_floating", entry<is_floating>, METH_O, "Whether the dtype is floating point."},
    {"is_complex", entry<is_complex>, METH_O, "Whether the dtype is complex."},
    {"zeros_like", entry<zeros_like>, METH_O, "A new tensor of zeros on the CPU."},
    {nullptr, nullptr, 0, nullptr}};

}  // namespace plait::autograd::python
