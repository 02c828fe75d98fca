#include "python/guard.hpp"

#include <algorithm>

namespace py = pybind11;

namespace plait::graph {

namespace {

const plait_tensor *tensor_at(const plait_python *python, const py::tuple &args, size_t i) {
  const plait_tensor *t = python->unwrap(PyTuple_GET_ITEM(args.ptr(), Py_ssize_t(i)));
  if (!t && PyErr_Occurred()) throw py::error_already_set();
  return t;
}

size_t first_in_storage(const plait_python *python, const py::tuple &args, size_t i,
                        const plait_tensor *t) {
  for (size_t k = 0; k < i; k++)
    if (tensor_at(python, args, k)->storage == t->storage) return k;
  return i;
}

ptrdiff_t distance_between(const plait_tensor *from, const plait_tensor *to) {
  return static_cast<char *>(to->dl.data) - static_cast<char *>(from->dl.data);
}

bool has_grad(plait_thread *thread, plait_tensor *t) {
  const plait_engine *e = role<plait_engine>(runtime);
  if (!e) return false;
  plait_tensor *grad = nullptr;
  if (e->grad(e->ctx, thread, t, &grad) < 0) runtime->clear(thread);
  plait_release(grad);
  return grad != nullptr;
}

bool entry_holds(PyObject *entry) {
  PyObject *of = PyTuple_GET_ITEM(entry, 0), *second = PyTuple_GET_ITEM(entry, 1);
  if (PyTuple_GET_SIZE(entry) == 3 && PyList_Check(of)) {
    const Py_ssize_t i = PyLong_AsSsize_t(second);
    return i < PyList_GET_SIZE(of) && PyList_GET_ITEM(of, i) == PyTuple_GET_ITEM(entry, 2);
  }
  if (PyTuple_GET_SIZE(entry) == 3) {
    PyObject *now = python::value_in(of, second);
    if (!now && PyErr_Occurred()) throw py::error_already_set();
    Py_XDECREF(now);
    return now == PyTuple_GET_ITEM(entry, 2);
  }
  if (PyCell_Check(of)) return PyCell_GET(of) == second;
  const Py_ssize_t size = PyObject_Size(of);
  if (size < 0) throw py::error_already_set();
  return size == PyLong_AsSsize_t(second);
}

// A number that changes with each change of a dict: PEP 509. 0: there is none for this object.
uint64_t version_of([[maybe_unused]] PyObject *of) {
#if PY_VERSION_HEX < 0x030D0000 && !defined(PYPY_VERSION)
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"
  if (PyDict_CheckExact(of) || PyODict_CheckExact(of))
    return reinterpret_cast<PyDictObject *>(of)->ma_version_tag;
#pragma GCC diagnostic pop
#endif
  return 0;
}

}  // namespace

Guard::Type::Type(const plait_tensor *t)
    : dtype(t->dl.dtype),
      device(t->dl.device),
      layers(t->layers),
      begins(t->dl.data == t->storage->data),
      sizes(t->dl.shape, t->dl.shape + t->dl.ndim) {
  sizes.insert(sizes.end(), t->dl.strides, t->dl.strides + t->dl.ndim);
}

bool Guard::Type::fits(const plait_tensor *t) const {
  const auto ndim = size_t(t->dl.ndim);
  return same(t->dl.dtype, dtype) && same(t->dl.device, device) && t->layers == layers &&
         (t->dl.data == t->storage->data) == begins && sizes.size() == 2 * ndim &&
         std::equal(t->dl.shape, t->dl.shape + ndim, sizes.begin()) &&
         std::equal(t->dl.strides, t->dl.strides + ndim, sizes.begin() + ptrdiff_t(ndim));
}

Guard::Guard(const plait_python *python, const py::tuple &args, const py::list &kept,
             const py::list &grads, const py::list &entries)
    : python_(python), entries_(py::tuple(entries)) {
  plait_thread *thread = runtime->thread();
  excluded_ = thread->excluded;
  included_ = thread->included;
  device_ = thread->device;
  default_dtype_ = *runtime->default_dtype;
  const auto required = [&](PyObject *o) {
    plait_tensor *t = python->unwrap(o);
    if (t) return t;
    if (PyErr_Occurred()) throw py::error_already_set();
    throw py::type_error("Guard: tensors are required");
  };
  for (size_t i = 0; i < args.size(); i++) {
    const plait_tensor *t = required(PyTuple_GET_ITEM(args.ptr(), Py_ssize_t(i)));
    const size_t first = first_in_storage(python, args, i, t);
    arguments_.push_back({Type(t), first, distance_between(tensor_at(python, args, first), t)});
  }
  for (const py::handle each : kept) {
    plait_tensor *t = required(each.ptr());
    kept_.emplace_back(Tensor::share(t), Type(t));
  }
  for (const py::handle each : grads) {
    plait_tensor *t = required(PyTuple_GET_ITEM(each.ptr(), 0));
    grads_.emplace_back(Tensor::share(t), PyTuple_GET_ITEM(each.ptr(), 1) == Py_True);
  }
  for (const py::handle each : entries_) {
    if (!PyTuple_Check(each.ptr()) || PyTuple_GET_SIZE(each.ptr()) < 2)
      throw py::type_error("Guard: an entry is a tuple");
    PyObject *of = PyTuple_GET_ITEM(each.ptr(), 0);
    if (containers_.empty() || containers_.back().of != of) containers_.push_back({of, 0, {}});
    containers_.back().entries.push_back(each.ptr());
  }
}

bool Guard::containers_hold() const {
  for (const Container &each : containers_) {
    const uint64_t version = version_of(each.of);
    if (version && version == each.version) continue;
    for (PyObject *entry : each.entries)
      if (!entry_holds(entry)) return false;
    each.version = version;
  }
  return true;
}

bool Guard::rest_holds() const {
  plait_thread *thread = runtime->thread();
  if (thread->excluded != excluded_ || thread->included != included_ ||
      !same(thread->device, device_) || !same(*runtime->default_dtype, default_dtype_))
    return false;
  for (const auto &[tensor, type] : kept_)
    if (!type.fits(tensor.get())) return false;
  for (const auto &[tensor, had] : grads_)
    if (has_grad(thread, tensor.get()) != had) return false;
  return containers_hold();
}

bool Guard::holds(const py::tuple &args) const {
  if (args.size() != arguments_.size()) return false;
  for (size_t i = 0; i < arguments_.size(); i++) {
    const Argument &a = arguments_[i];
    const plait_tensor *t = tensor_at(python_, args, i);
    if (!t || !a.type.fits(t) || first_in_storage(python_, args, i, t) != a.first ||
        distance_between(tensor_at(python_, args, a.first), t) != a.distance)
      return false;
  }
  return rest_holds();
}

}  // namespace plait::graph
