#include "python/guard.hpp"

#include <algorithm>

namespace py = pybind11;

namespace plait::graph {

namespace {
size_t first_place(const plait_python *python, PyObject *args, size_t i) {
  const plait_tensor *t = python->unwrap(PyTuple_GET_ITEM(args, Py_ssize_t(i)));
  for (size_t k = 0; k < i; k++)
    if (python->unwrap(PyTuple_GET_ITEM(args, Py_ssize_t(k))) == t) return k;
  return i;
}
}  // namespace

Guard::Guard(const plait_python *python, const py::tuple &tensors, const py::list &entries)
    : python_(python), entries_(entries) {
  const plait_thread *thread = runtime->thread();
  excluded_ = thread->excluded;
  included_ = thread->included;
  default_dtype_ = *runtime->default_dtype;
  for (size_t i = 0; i < tensors.size(); i++) {
    const plait_tensor *t = python->unwrap(PyTuple_GET_ITEM(tensors.ptr(), Py_ssize_t(i)));
    if (!t) {
      if (PyErr_Occurred()) throw py::error_already_set();
      throw py::type_error("Guard: tensors are required");
    }
    Argument a{t->dl.dtype, t->dl.device, t->layers, first_place(python, tensors.ptr(), i), {}};
    a.sizes.assign(t->dl.shape, t->dl.shape + t->dl.ndim);
    a.sizes.insert(a.sizes.end(), t->dl.strides, t->dl.strides + t->dl.ndim);
    arguments_.push_back(std::move(a));
  }
}

bool Guard::entries_hold() const {
  for (const py::handle each : entries_) {
    PyObject *dict = PyTuple_GET_ITEM(each.ptr(), 0), *key = PyTuple_GET_ITEM(each.ptr(), 1);
    PyObject *now = python::value_in(dict, key);
    if (!now && PyErr_Occurred()) throw py::error_already_set();
    const bool same = now == PyTuple_GET_ITEM(each.ptr(), 2);
    Py_XDECREF(now);
    if (!same) return false;
  }
  return true;
}

bool Guard::holds(const py::tuple &args) const {
  const plait_thread *thread = runtime->thread();
  if (args.size() != arguments_.size() || thread->excluded != excluded_ ||
      thread->included != included_ || !same(*runtime->default_dtype, default_dtype_))
    return false;
  for (size_t i = 0; i < arguments_.size(); i++) {
    const Argument &a = arguments_[i];
    const plait_tensor *t = python_->unwrap(PyTuple_GET_ITEM(args.ptr(), Py_ssize_t(i)));
    if (!t) {
      if (PyErr_Occurred()) throw py::error_already_set();
      return false;
    }
    const auto ndim = size_t(t->dl.ndim);
    if (!same(t->dl.dtype, a.dtype) || !same(t->dl.device, a.device) || t->layers != a.layers ||
        a.sizes.size() != 2 * ndim || first_place(python_, args.ptr(), i) != a.first ||
        !std::equal(t->dl.shape, t->dl.shape + ndim, a.sizes.begin()) ||
        !std::equal(t->dl.strides, t->dl.strides + ndim, a.sizes.begin() + Py_ssize_t(ndim)))
      return false;
  }
  return entries_hold();
}

}  // namespace plait::graph
