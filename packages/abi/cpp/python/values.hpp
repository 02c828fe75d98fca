// The values of a call as Python objects, for functions in Python that serve calls.
#pragma once
#include "binding.hpp"

namespace plait::python {

template <class F>
PyObject *tuple_of(uint32_t n, F &&item) {
  Object all(PyTuple_New(Py_ssize_t(n)));
  for (uint32_t i = 0; all && i < n; i++) {
    PyObject *o = item(i);
    if (!o) return nullptr;
    PyTuple_SET_ITEM(all.get(), Py_ssize_t(i), o);
  }
  return all.release();
}

// `tensor` makes the object of a tensor, which may be nullptr in a list.
template <class F>
PyObject *object_from(const plait_value &v, F &&tensor) {
  switch (v.tag) {
    case PLAIT_TENSOR: return tensor(v.u.t);
    case PLAIT_TENSORS: return tuple_of(v.n, [&](uint32_t i) { return tensor(v.u.ts[i]); });
    case PLAIT_BOOL: return PyBool_FromLong(v.u.i != 0);
    case PLAIT_INT: return PyLong_FromLongLong(v.u.i);
    case PLAIT_FLOAT: return PyFloat_FromDouble(v.u.f);
    case PLAIT_COMPLEX: return PyComplex_FromDoubles(v.u.fs[0], v.u.fs[1]);
    case PLAIT_INTS:
      return tuple_of(v.n, [&](uint32_t i) { return PyLong_FromLongLong(v.u.is[i]); });
    case PLAIT_FLOATS:
      return tuple_of(v.n, [&](uint32_t i) { return PyFloat_FromDouble(v.u.fs[i]); });
    case PLAIT_STRING: return PyUnicode_FromStringAndSize(v.u.s, v.n);
    case PLAIT_DTYPE: return dtype_object(v.u.dtype);
    case PLAIT_DEVICE: return device_object(v.u.device);
    case PLAIT_OBJECT:
      plait_retain(v.u.o);
      return generator_object(reinterpret_cast<plait_generator *>(v.u.o));
    default: Py_RETURN_NONE;
  }
}

}  // namespace plait::python
