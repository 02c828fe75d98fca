// Declarations that the files of plait_func._layer share.
#pragma once
#include <plait/python.h>

#include <plait/entry.hpp>
#include <plait/plait.hpp>

namespace plait::func {

using plait::python::function;
using plait::python::new_reference;
using plait::python::Object;

struct State {  // filled at import
  const plait_python *python;
  const plait_runtime *runtime;
  PyTypeObject *tensor_type;  // plait_core.Tensor
};
extern State state;

inline bool is_tensor(PyObject *o) {
  return Py_TYPE(o) == state.tensor_type || PyType_IsSubtype(Py_TYPE(o), state.tensor_type);
}
inline plait_tensor *handle_of(PyObject *tensor) { return state.python->unwrap(tensor); }
inline PyObject *wrap(plait_tensor *t) { return state.python->wrap(t); }  // steals

}  // namespace plait::func
