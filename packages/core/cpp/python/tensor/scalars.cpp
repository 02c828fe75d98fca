// Elements as Python numbers and back.
#include <plait/float8.h>

#include <cmath>
#include <string>

#include "tensor/batched.hpp"
#include "tensor/overriding.hpp"

namespace plait::core {
namespace {

template <class T>
T load(const void *p) {
  T x;
  memcpy(&x, p, sizeof x);
  return x;
}

template <class T>
bool store_int(DLDataType d, void *p, PyObject *o) {
  if (PyFloat_Check(o) && !std::isfinite(PyFloat_AS_DOUBLE(o))) {
    PyErr_Format(PyExc_OverflowError, "tensor: %R does not fit %s", o, name(d));
    return false;
  }
  Object n(PyFloat_Check(o) ? PyNumber_Long(o) : PyNumber_Index(o));
  if (!n) return false;
  bool fits;
  T x;
  if constexpr (sizeof(T) == 8 && T(-1) > T(0)) {
    x = T(PyLong_AsUnsignedLongLong(n.get()));
    fits = !PyErr_Occurred();
  } else {
    int overflow = 0;
    const long long v = PyLong_AsLongLongAndOverflow(n.get(), &overflow);
    x = T(v);
    fits = !overflow && static_cast<long long>(x) == v;
  }
  if (!fits) {
    PyErr_Clear();
    PyErr_Format(PyExc_OverflowError, "tensor: %R does not fit %s", o, name(d));
    return false;
  }
  memcpy(p, &x, sizeof x);
  return true;
}

bool store_float(DLDataType d, void *p, PyObject *o) {
  const double x = PyFloat_AsDouble(o);
  if (x == -1.0 && PyErr_Occurred()) return false;
  const auto f = float(x);
  if (d.bits == 64)
    memcpy(p, &x, sizeof x);
  else
    memcpy(p, &f, sizeof f);
  return true;
}

bool store_complex(DLDataType d, void *p, PyObject *o) {
  const Py_complex c = PyComplex_AsCComplex(o);
  if (c.real == -1.0 && PyErr_Occurred()) return false;
  const double wide[] = {c.real, c.imag};
  const float narrow[] = {float(c.real), float(c.imag)};
  if (d.bits == 128)
    memcpy(p, wide, sizeof wide);
  else
    memcpy(p, narrow, sizeof narrow);
  return true;
}

PyObject *list_from(plait_tensor *t, int dim, const char *p) {
  if (dim == t->dl.ndim) return read_element(t->dl.dtype, p);
  const int64_t n = t->dl.shape[dim], step = t->dl.strides[dim] * itemsize(t->dl.dtype);
  PyObject *list = PyList_New(Py_ssize_t(n));
  for (int64_t i = 0; list && i < n; i++) {
    PyObject *o = list_from(t, dim + 1, p + i * step);
    if (!o) Py_CLEAR(list);
    if (list) PyList_SET_ITEM(list, Py_ssize_t(i), o);
  }
  return list;
}

}  // namespace

PyObject *read_element(DLDataType d, const void *p) {
  switch (key(d)) {
    case key(dtype::bool_): return PyBool_FromLong(load<uint8_t>(p));
    case key(dtype::uint8): return PyLong_FromLong(load<uint8_t>(p));
    case key(dtype::uint16): return PyLong_FromLong(load<uint16_t>(p));
    case key(dtype::uint32): return PyLong_FromUnsignedLong(load<uint32_t>(p));
    case key(dtype::uint64): return PyLong_FromUnsignedLongLong(load<uint64_t>(p));
    case key(dtype::int8): return PyLong_FromLong(load<int8_t>(p));
    case key(dtype::int16): return PyLong_FromLong(load<int16_t>(p));
    case key(dtype::int32): return PyLong_FromLong(load<int32_t>(p));
    case key(dtype::int64): return PyLong_FromLongLong(load<int64_t>(p));
    case key(dtype::float16): return PyFloat_FromDouble(plait_float16_to_float(load<uint16_t>(p)));
    case key(dtype::bfloat16):
      return PyFloat_FromDouble(plait_bfloat16_to_float(load<uint16_t>(p)));
    case key(dtype::float8_e4m3fn):
      return PyFloat_FromDouble(plait_float8_e4m3fn_to_float(load<uint8_t>(p)));
    case key(dtype::float8_e4m3fnuz):
      return PyFloat_FromDouble(plait_float8_e4m3fnuz_to_float(load<uint8_t>(p)));
    case key(dtype::float8_e5m2):
      return PyFloat_FromDouble(plait_float8_e5m2_to_float(load<uint8_t>(p)));
    case key(dtype::float8_e5m2fnuz):
      return PyFloat_FromDouble(plait_float8_e5m2fnuz_to_float(load<uint8_t>(p)));
    case key(dtype::float8_e8m0fnu):
      return PyFloat_FromDouble(plait_float8_e8m0fnu_to_float(load<uint8_t>(p)));
    case key(dtype::float32): return PyFloat_FromDouble(load<float>(p));
    case key(dtype::float64): return PyFloat_FromDouble(load<double>(p));
    case key(dtype::complex64): {
      float c[2];
      memcpy(c, p, sizeof c);
      return PyComplex_FromDoubles(c[0], c[1]);
    }
    case key(dtype::complex128): {
      double c[2];
      memcpy(c, p, sizeof c);
      return PyComplex_FromDoubles(c[0], c[1]);
    }
    default:
      return PyErr_Format(PyExc_NotImplementedError, "item: %s has no Python number", name(d));
  }
}

bool is_storable(DLDataType d) {
  return d.code != kDLBfloat && !same(d, dtype::float16) && !is_float8(d);
}

bool write_element(DLDataType d, void *p, PyObject *o) {
  switch (key(d)) {
    case key(dtype::bool_): {
      const int truth = PyObject_IsTrue(o);
      if (truth >= 0) *static_cast<uint8_t *>(p) = uint8_t(truth);
      return truth >= 0;
    }
    case key(dtype::uint8): return store_int<uint8_t>(d, p, o);
    case key(dtype::uint16): return store_int<uint16_t>(d, p, o);
    case key(dtype::uint32): return store_int<uint32_t>(d, p, o);
    case key(dtype::uint64): return store_int<uint64_t>(d, p, o);
    case key(dtype::int8): return store_int<int8_t>(d, p, o);
    case key(dtype::int16): return store_int<int16_t>(d, p, o);
    case key(dtype::int32): return store_int<int32_t>(d, p, o);
    case key(dtype::int64): return store_int<int64_t>(d, p, o);
    case key(dtype::complex64):
    case key(dtype::complex128): return store_complex(d, p, o);
    default: return store_float(d, p, o);
  }
}

OnHost::OnHost(plait_tensor *t, const char *caller) {
  if (t->dl.device.device_type == PLAIT_META) {
    PyErr_Format(PyExc_RuntimeError,
                 "%s: a tensor with bytes is required, got one on the device meta", caller);
    return;
  }
  if (!refuse_batched(t, caller)) return;
  plait_thread *thread = state.runtime->thread();
  const plait_status s = state.runtime->host_copy(thread, t, &here_);
  if (s < 0) raise(thread, s);
}

PyObject *item(plait_tensor *t, const char *caller) {
  if (numel(t) != 1) {
    plait_thread *thread = state.runtime->thread();
    raise(thread, state.runtime->raise(thread, PLAIT_VALUE_ERROR, caller,
                                       "a tensor with one element is required, got shape %s",
                                       shape_text(t).c_str()));
    return nullptr;
  }
  PyObject *number;
  if (read_watched(t, &number)) return number;
  const OnHost here(t, caller);
  return here ? read_element(t->dl.dtype, here.data()) : nullptr;
}

PyObject *tolist(plait_tensor *t) {
  const OnHost here(t, "tolist");
  return here ? list_from(here.get(), 0, here.data()) : nullptr;
}

int truth(PyObject *self) {
  plait_tensor *t = handle_of(self);
  if (numel(t) != 1) {
    PyErr_Format(PyExc_RuntimeError,
                 "bool: the truth value of a tensor of shape %s is ambiguous; use .any() or .all()",
                 shape_text(t).c_str());
    return -1;
  }
  Object o(item(t, "bool"));
  return o ? PyObject_IsTrue(o.get()) : -1;
}
PyObject *as_int(PyObject *self) {
  Object o(item(handle_of(self), "int"));
  return o ? PyNumber_Long(o.get()) : nullptr;
}
PyObject *as_float(PyObject *self) {
  Object o(item(handle_of(self), "float"));
  return o ? PyNumber_Float(o.get()) : nullptr;
}
PyObject *as_complex(PyObject *self) {
  Object o(item(handle_of(self), "complex"));
  if (!o) return nullptr;
  const Py_complex c = PyComplex_AsCComplex(o.get());
  return PyErr_Occurred() ? nullptr : PyComplex_FromCComplex(c);
}
PyObject *as_index(PyObject *self) {
  plait_tensor *t = handle_of(self);
  const uint8_t code = t->dl.dtype.code;
  if (numel(t) != 1 || (code != kDLInt && code != kDLUInt && code != kDLBool))
    return PyErr_Format(PyExc_TypeError,
                        "index: a tensor with one integer is required, got shape %s of %s",
                        shape_text(t).c_str(), name(t->dl.dtype));
  Object o(item(t, "index"));
  return o ? PyNumber_Index(o.get()) : nullptr;
}

}  // namespace plait::core
