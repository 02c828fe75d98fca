// tensor(data): from numbers, nested sequences and arrays; always a copy.
#include <string>
#include <vector>

#include <plait/index.hpp>

#include "tensor/batched.hpp"
#include "tensor/tensor.hpp"

namespace plait::core {
namespace {

enum Category { of_bool, of_int, of_float, of_complex, of_other };

// The category of Python's own numbers. NumPy's numbers derive from them but have a dtype of their
// own.
Category category(PyObject *o) {
  if (PyBool_Check(o)) return of_bool;
  if (PyLong_CheckExact(o) || python::is_recorded_size(o)) return of_int;
  if (PyFloat_CheckExact(o)) return of_float;
  if (PyComplex_CheckExact(o)) return of_complex;
  return of_other;
}
bool is_list(PyObject *o) { return PyList_Check(o) || PyTuple_Check(o); }

struct Scan {  // the shape and kind of a nested sequence
  std::vector<int64_t> shape;
  Category kind = of_bool;
  bool numbers = true;  // false: there are items that NumPy must convert
  bool tensors = false;
  Py_ssize_t at[PLAIT_MAX_DIMS];  // the current index at each depth

  std::string path(size_t depth) const {
    std::string s = "data";
    for (size_t d = 0; d < depth; d++) s += "[" + std::to_string(at[d]) + "]";
    return s;
  }
};

bool ragged(const Scan &s, size_t depth, const char *got) {
  PyErr_Format(PyExc_ValueError, "tensor: nested sequences must have equal lengths; %s is %s",
               s.path(depth).c_str(), got);
  return false;
}

// Objects of which no tensor can be made at any depth.
bool is_no_data(PyObject *o) {
  return PyUnicode_Check(o) || PyBytes_Check(o) || o == Py_None || PyDict_Check(o) ||
         PyAnySet_Check(o);
}
const char *kind_of(PyObject *o) { return o == Py_None ? "None" : Py_TYPE(o)->tp_name; }

// Compares everything with the lengths along the first path down; false with an exception.
bool scan(PyObject *o, size_t depth, Scan &s) {
  if (!is_list(o)) {
    const Category c = category(o);
    if (c == of_other && is_no_data(o)) {
      PyErr_Format(PyExc_TypeError,
                   "tensor: `data` must hold numbers, arrays or sequences of them; %s is %s",
                   s.path(depth).c_str(), kind_of(o));
      return false;
    }
    s.numbers &= c != of_other;
    s.tensors |= c == of_other && is_tensor(o);
    if (c > s.kind) s.kind = c;
    return depth == s.shape.size() || !s.numbers || ragged(s, depth, "a number beside a sequence");
  }
  if (depth == s.shape.size()) return !s.numbers || ragged(s, depth, "a sequence beside a number");
  const Items items(o);
  if (!items.valid()) return false;
  const Py_ssize_t n = items.size();
  if (n != s.shape[depth])
    return ragged(
        s, depth,
        ("of length " + std::to_string(n) + ", not " + std::to_string(s.shape[depth])).c_str());
  for (Py_ssize_t i = 0; i < n && i < items.size(); i++) {
    s.at[depth] = i;
    if (!scan(items[i], depth + 1, s)) return false;
  }
  return true;
}

bool first_path(PyObject *o, Scan &s) {
  Object first;
  while (is_list(o)) {
    if (s.shape.size() == PLAIT_MAX_DIMS) {
      PyErr_Format(PyExc_ValueError,
                   "tensor: at most %d dimensions are supported, got deeper nesting",
                   PLAIT_MAX_DIMS);
      return false;
    }
    const Items items(o);
    if (!items.valid()) return false;
    s.shape.push_back(items.size());
    if (!items.size()) break;
    first = Object(new_reference(items[0]));
    o = first.get();
  }
  return true;
}

bool fill(PyObject *o, size_t depth, const Scan &s, DLDataType d, char *&to) {
  if (depth == s.shape.size()) {
    if (is_list(o)) {
      PyErr_SetString(PyExc_ValueError, "tensor: the data changed while it was read");
      return false;
    }
    if (!write_element(d, to, o)) return false;
    to += itemsize(d);
    return true;
  }
  const Object items(is_list(o) ? sequence_of(o, "") : nullptr);
  if (!items && PyErr_Occurred()) return false;
  for (Py_ssize_t i = 0; i < s.shape[depth]; i++) {
    if (!items || i >= PySequence_Fast_GET_SIZE(items.get())) {
      PyErr_SetString(PyExc_ValueError, "tensor: the data changed while it was read");
      return false;
    }
    if (!fill(PySequence_Fast_GET_ITEM(items.get(), i), depth + 1, s, d, to)) return false;
  }
  return true;
}

plait_tensor *new_dense(DLDataType d, const std::vector<int64_t> &shape) {
  plait_thread *thread = state.runtime->thread();
  plait_tensor *t = nullptr;
  const plait_status s = state.runtime->tensor_new(thread, d, int32_t(shape.size()), shape.data(),
                                                   nullptr, {kDLCPU, 0}, &t);
  if (s < 0) return raise(thread, s), nullptr;
  note_new(t);
  return t;
}

DLDataType dtype_of(Category c, const Scan &s) {
  bool empty = false;
  for (const int64_t n : s.shape) empty |= n == 0;
  if (empty) return *state.python->default_dtype;
  switch (c) {
    case of_bool: return dtype::bool_;
    case of_int: return dtype::int64;
    case of_complex:
      return same(*state.python->default_dtype, dtype::float64) ? dtype::complex128
                                                                : dtype::complex64;
    default: return *state.python->default_dtype;
  }
}

plait_tensor *cast_away(plait_tensor *t, DLDataType d) {  // steals
  if (!t || same(t->dl.dtype, d)) return t;
  plait_tensor *out = cast(t, d);
  plait_release(t);
  return out;
}

plait_tensor *from_numbers(PyObject *data, const DLDataType *required, const Scan &s) {
  const DLDataType d = required ? *required : dtype_of(s.kind, s);
  const DLDataType stored = is_storable(d) ? d : dtype::float32;
  plait_tensor *t = new_dense(stored, s.shape);
  if (!t) return nullptr;
  char *to = static_cast<char *>(t->dl.data);
  if (!fill(data, 0, s, stored, to)) {
    plait_release(t);
    return nullptr;
  }
  return cast_away(t, d);
}

// an array of another library, or something NumPy can make one of
plait_tensor *from_array(PyObject *data, const DLDataType *required) {
  plait_thread *thread = state.runtime->thread();
  Object array(new_reference(data));
  const auto through_numpy = [&](const char *how) {
    PyObject *module = numpy();
    array = Object(module ? PyObject_CallMethod(module, how, "(O)", data) : nullptr);
    return bool(array);
  };
  if (!PyObject_HasAttrString(data, "__dlpack__")) {
    if (PyObject_HasAttrString(data, "__cuda_array_interface__")) {
      const Object module(PyImport_ImportModule("plait_core._cuda_arrays"));
      array = Object(module ? PyObject_CallMethod(module.get(), "from_cuda_array", "(O)", data)
                            : nullptr);
      return array ? from_data(array.get(), required) : nullptr;
    }
    if (!through_numpy("asarray")) return nullptr;
  }
  plait_tensor *view = import_array(array.get());
  if (!view && PyErr_ExceptionMatches(PyExc_ValueError) &&
      PyObject_HasAttrString(data, "__array__")) {
    PyErr_Clear();  // strides or alignment that only a copy can fix
    view = through_numpy("ascontiguousarray") ? state.python->import_array(thread, array.get())
                                              : nullptr;
  }
  if (!view) return nullptr;
  plait_tensor *t = required && !same(*required, view->dl.dtype) ? cast(view, *required)
                                                                 : call(op_clone, {value(view)});
  plait_release(view);
  return t;
}

// Sequences that hold tensors are stacked, which promotes as operators do.
plait_tensor *from_tensors(PyObject *data, const DLDataType *required) {
  // the parts may be on several devices
  if (!is_list(data)) return moved(from_data(data, required), {kDLCPU, 0});
  std::vector<plait_tensor *> parts;
  const auto release = [&] {
    for (plait_tensor *t : parts) plait_release(t);
  };
  const Items items(data);
  if (!items.valid()) return nullptr;
  for (Py_ssize_t i = 0; i < items.size(); i++) {
    Object item(new_reference(items[i]));
    plait_tensor *t = from_tensors(item.get(), nullptr);
    if (!t) return release(), nullptr;
    parts.push_back(t);
  }
  plait_tensor *stacked = call(op_stack, {tensors(parts.data(), parts.size())});
  release();
  return required ? cast_away(stacked, *required) : stacked;
}

}  // namespace

bool is_there(DLDevice d, const char *caller) {
  if (!is_accelerator(d)) return true;
  int32_t n = 0;
  plait_thread *thread = state.runtime->thread();
  plait_status s = state.runtime->device_count(thread, d.device_type, &n);
  if (s >= 0 && d.device_id < n) return true;
  const std::string device = device_text(state.runtime, d);
  const std::string type = device.substr(0, device.find(':'));
  if (s >= 0 && n)
    s = state.runtime->raise(thread, PLAIT_VALUE_ERROR, caller, "there is no device %s: %s has %d",
                             device.c_str(), type.c_str(), int(n));
  else if (s >= 0)
    s = state.runtime->raise(thread, PLAIT_NOT_IMPLEMENTED, caller,
                             "no component for the device %s is installed; "
                             "without it, only the device cpu can be used",
                             device.c_str());
  raise(thread, s);
  return false;
}

plait_tensor *moved(plait_tensor *t, DLDevice to) {
  if (!t || same(t->dl.device, to)) return t;
  plait_thread *thread = state.runtime->thread();
  plait_tensor *there = nullptr;
  const plait_status s =
      state.runtime->tensor_new(thread, t->dl.dtype, t->dl.ndim, t->dl.shape, nullptr, to, &there);
  if (s < 0) raise(thread, s);
  if (s >= 0 && to.device_type != PLAIT_META) {
    plait_tensor *copied = call(op_copy, {value(there), value(t)}, PLAIT_FUNCTION);
    plait_release(copied);
    if (!copied) plait_release(std::exchange(there, nullptr));
  }
  plait_release(t);
  return there;
}

plait_tensor *from_data(PyObject *data, const DLDataType *required) {
  if (is_tensor(data)) {
    plait_tensor *t = handle_of(data), *plain = nullptr;
    plait_thread *thread = state.runtime->thread();
    const plait_status s = state.runtime->tensor_alias(thread, t, &plain);  // a copy has no history
    if (s < 0) return raise(thread, s), nullptr;
    plait_tensor *out = required && !same(*required, t->dl.dtype) ? cast(plain, *required)
                                                                  : call(op_clone, {value(plain)});
    plait_release(plain);
    return out;
  }
  if (is_no_data(data)) {
    PyErr_Format(
        PyExc_TypeError,
        "tensor: `data` must be a number, a nested sequence of numbers or an array, got %s",
        kind_of(data));
    return nullptr;
  }
  if (is_list(data) || category(data) != of_other) {
    Scan s;
    if (!first_path(data, s) || !scan(data, 0, s)) return nullptr;
    if (s.numbers) return from_numbers(data, required, s);
    if (s.tensors && is_list(data)) return from_tensors(data, required);
  }
  return from_array(data, required);
}

}  // namespace plait::core
