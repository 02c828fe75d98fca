// Access to single elements, for gradcheck, which perturbs one number at a time.
#include <algorithm>

#include "binding.hpp"

namespace plait::autograd::python {
namespace {

// A 0-d tensor on the i-th element in C order; NULL with an exception.
Tensor element_of(plait_tensor *t, int64_t i) {
  if (i < 0 || i >= numel(t))
    return PyErr_SetString(PyExc_IndexError, "gradcheck: no such element"), Tensor();
  int64_t at = 0;
  for (int32_t d = t->dl.ndim - 1; d >= 0; d--) {
    at += i % t->dl.shape[d] * t->dl.strides[d];
    i /= t->dl.shape[d];
  }
  Tensor out;
  const plait_status s = state.runtime->tensor_on(
      this_thread(), t->storage, static_cast<char *>(t->dl.data) + at * itemsize(t->dl.dtype),
      t->dl.dtype, 0, nullptr, nullptr, out.out());
  if (s < 0) raise(s);
  return out;
}

// Calls an operator that writes into its first argument.
plait_status write(const char *name, std::initializer_list<plait_value> in) {
  const plait_op *op = state.runtime->op(name);
  if (!op)
    return state.runtime->raise(this_thread(), PLAIT_NOT_IMPLEMENTED, "gradcheck",
                                "the operator %s is not defined", name);
  plait_value args[3], out = plait_value{PLAIT_NONE, 0, {0}};
  std::copy(in.begin(), in.end(), args);
  plait_call c{};
  c.size = sizeof c;
  c.n_in = uint16_t(in.size());
  c.n_out = 1;
  c.op = op;
  c.in = args;
  c.out = &out;
  c.thread = this_thread();
  const plait_status s = state.runtime->call(&c);
  state.runtime->release_value(&out);
  return s;
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
  const Tensor one = t ? element_of(t, i) : Tensor();
  if (!one) return nullptr;
  Tensor here;
  const plait_status s = state.runtime->host_copy(this_thread(), one.get(), here.out());
  if (s < 0) return raise(s);
  const void *p = here.get()->dl.data;
  if (same(t->dl.dtype, dtype::float64)) return PyFloat_FromDouble(*static_cast<const double *>(p));
  if (same(t->dl.dtype, dtype::float32))
    return PyFloat_FromDouble(double(*static_cast<const float *>(p)));
  if (same(t->dl.dtype, dtype::complex128)) {
    const auto *z = static_cast<const double *>(p);
    return PyComplex_FromDoubles(z[0], z[1]);
  }
  if (same(t->dl.dtype, dtype::complex64)) {
    const auto *z = static_cast<const float *>(p);
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
  const Tensor one = t ? element_of(t, i) : Tensor();
  if (!one) return nullptr;
  Tensor here;
  plait_status s = state.runtime->tensor_new(this_thread(), t->dl.dtype, 0, nullptr, nullptr,
                                             {kDLCPU, 0}, here.out());
  if (s < 0) return raise(s);
  void *p = here.get()->dl.data;
  if (same(t->dl.dtype, dtype::float64))
    *static_cast<double *>(p) = x.real;
  else if (same(t->dl.dtype, dtype::float32))
    *static_cast<float *>(p) = float(x.real);
  else if (same(t->dl.dtype, dtype::complex128)) {
    static_cast<double *>(p)[0] = x.real;
    static_cast<double *>(p)[1] = x.imag;
  } else if (same(t->dl.dtype, dtype::complex64)) {
    static_cast<float *>(p)[0] = float(x.real);
    static_cast<float *>(p)[1] = float(x.imag);
  } else
    return wrong_dtype(t);
  s = write("copy_", {value(one.get()), value(here.get()), value(false)});
  if (s < 0) return raise(s);
  Py_RETURN_NONE;
}

PyObject *count(PyObject *, PyObject *o) {
  const plait_tensor *t = tensor_from(o, "gradcheck: argument");
  return t ? PyLong_FromLongLong(numel(t)) : nullptr;
}

PyObject *is_floating(PyObject *, PyObject *o) {
  const plait_tensor *t = tensor_from(o, "gradcheck: argument");
  return t ? PyBool_FromLong(plait::is_floating(t->dl.dtype)) : nullptr;
}

PyObject *is_complex(PyObject *, PyObject *o) {
  const plait_tensor *t = tensor_from(o, "gradcheck: argument");
  return t ? PyBool_FromLong(t->dl.dtype.code == kDLComplex) : nullptr;
}

PyObject *zeros_like(PyObject *, PyObject *o) {
  plait_tensor *t = tensor_from(o, "gradcheck: argument"), *result = nullptr;
  if (!t) return nullptr;
  plait_status s = state.runtime->tensor_new(this_thread(), t->dl.dtype, t->dl.ndim, t->dl.shape,
                                             nullptr, t->dl.device, &result);
  if (s < 0) return raise(s);
  s = write("fill_", {value(result), value(0.0)});
  if (s < 0) return plait_release(result), raise(s);
  return state.python->wrap(result);
}

}  // namespace

PyMethodDef element_functions[] = {
    {"element", entry<element>, METH_VARARGS, "The i-th element in C order."},
    {"set_element", entry<set_element>, METH_VARARGS, "Writes the i-th element in C order."},
    {"count", entry<count>, METH_O, "How many elements there are."},
    {"is_floating", entry<is_floating>, METH_O, "Whether the dtype is floating point."},
    {"is_complex", entry<is_complex>, METH_O, "Whether the dtype is complex."},
    {"zeros_like", entry<zeros_like>, METH_O, "A new tensor of zeros of this shape."},
    {nullptr, nullptr, 0, nullptr}};

}  // namespace plait::autograd::python
