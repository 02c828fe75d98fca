// Ints of Python as arguments of calls. Only extension modules include this file.
#ifndef PLAIT_INDEX_HPP
#define PLAIT_INDEX_HPP
#include <Python.h>

#include <cstring>

namespace plait::python {

// Whether an object is a size that a recording of plait-graph follows: its `__index__` tells the
// recording that Python reads the number, `_argument` that a call gets it.
inline bool is_recorded_size(PyObject *o) {
  return o && !PyLong_Check(o) && o != Py_None &&
         std::strcmp(Py_TYPE(o)->tp_name, "SymbolicSize") == 0;
}

// The int of an object with `__index__`, for an argument of a call: a new reference, or NULL with
// an exception.
inline PyObject *index_of(PyObject *o) {
  return is_recorded_size(o) ? PyObject_CallMethod(o, "_argument", nullptr) : PyNumber_Index(o);
}

}  // namespace plait::python

#endif  // PLAIT_INDEX_HPP
