// x[key] and x[key] = value.
#include <algorithm>

#include "tensor/tensor.hpp"

namespace plait::core {
namespace {

plait_tensor *selected(plait_tensor *t, PyObject *key) {
  Keys keys;
  if (!take_apart(t, key, keys)) return nullptr;
  if (keys.n) {
    const ShownKeys whole(keys);
    return call(op_index, {value(keys.view), tensors(keys.indices, size_t(keys.n))});
  }
  if (keys.view != t) return std::exchange(keys.view, nullptr);
  return call(op_alias, {value(t)});  // x[...]
}

// The right-hand side of an assignment as an operand; *made gets a new handle if one is made.
bool right_side(PyObject *o, DLDataType d, plait_value *v, plait_tensor **converted) {
  const int done = state.python->operand(state.runtime->thread(), o, v);
  if (done == PLAIT_CONVERSION_FAILED) return false;
  if (done == PLAIT_CONVERTED) return true;
  if (PyComplex_Check(o) && d.code != kDLComplex) {
    PyErr_Format(PyExc_TypeError, "index: %R cannot be written into a tensor of %s", o, name(d));
    return false;
  }
  // what has no dtype of its own gets the tensor's
  const bool is_bare = PyList_Check(o) || PyTuple_Check(o) || PyComplex_CheckExact(o);
  *converted = from_data(o, is_bare ? &d : nullptr);
  if (*converted) *v = value(*converted);
  return *converted;
}

// leading dimensions of size 1 are dropped, as in PyTorch: x[0] = a row of shape (1, 3)
plait_tensor *without_leading_ones(plait_tensor *t, int32_t ndim) {
  plait_retain(t);
  while (t->dl.ndim > ndim && t->dl.shape[0] == 1) {
    plait_tensor *next = call(op_select, {value(t), value(int64_t(0)), value(int64_t(0))});
    plait_release(t);
    if (!next) return nullptr;
    t = next;
  }
  return t;
}

bool assign_view(plait_tensor *view, const plait_value &v) {
  plait_tensor *done;
  if (v.tag != PLAIT_TENSOR) {
    done = call(op_fill, {value(view), v});
  } else {
    plait_tensor *source = without_leading_ones(v.u.t, view->dl.ndim);
    done = source ? call(op_copy, {value(view), value(source)}) : nullptr;
    plait_release(source);
  }
  plait_release(done);
  return done;
}

// Number of dimensions that arrays select: those that are not indexed, and those of the broadcast
// arrays.
int32_t selected_ndim(const Keys &keys) {
  int32_t ndim = keys.view->dl.ndim, common = 0;
  for (int i = 0; i < keys.n; i++) {
    if (!keys.indices[i]) continue;
    ndim--;
    common = std::max(common, keys.indices[i]->dl.ndim);
  }
  return ndim + common;
}

bool assign_arrays(const Keys &keys, const plait_value &v) {
  plait_tensor *source =
      v.tag == PLAIT_TENSOR ? without_leading_ones(v.u.t, selected_ndim(keys)) : nullptr;
  if (source) source = moved(source, keys.view->dl.device);
  if (v.tag == PLAIT_TENSOR && !source) return false;
  const ShownKeys whole(keys);
  plait_tensor *done = call(op_index_put, {value(keys.view), tensors(keys.indices, size_t(keys.n)),
                                           source ? value(source) : v});
  plait_release(source);
  plait_release(done);
  return done;
}

// Whether a key is a mask of the leading dimensions.
bool is_mask_of(const plait_tensor *t, PyObject *key) {
  if (!is_tensor(key)) return false;
  const DLTensor &mask = handle_of(key)->dl;
  if (mask.dtype.code != kDLBool || mask.ndim > t->dl.ndim) return false;
  return std::equal(mask.shape, mask.shape + mask.ndim, t->dl.shape);
}

// Whether a value is one number, which a call on the device of `t` takes.
bool is_number_for(const plait_tensor *t, const plait_value &v) {
  if (v.tag != PLAIT_TENSOR) return true;
  const DLTensor &number = v.u.t->dl;
  return number.ndim == 0 &&
         (number.device.device_type == kDLCPU || same(number.device, t->dl.device));
}

// x[mask] = a number: how often the mask is true, for which the host would wait, need not be known.
bool assign_number(plait_tensor *t, plait_tensor *mask, const plait_value &v) {
  int64_t shape[PLAIT_MAX_DIMS];
  std::fill_n(std::copy_n(mask->dl.shape, mask->dl.ndim, shape), t->dl.ndim - mask->dl.ndim, 1);
  plait_tensor *wide = call(op_reshape, {value(mask), ints(shape, t->dl.ndim)});
  wide = moved(wide, t->dl.device);
  plait_tensor *done =
      wide ? call(op_masked_fill, {value(t), value(wide), v}, PLAIT_INPLACE) : nullptr;
  plait_release(wide);
  plait_release(done);
  return done;
}

bool assign(plait_tensor *t, PyObject *key, PyObject *o) {
  Keys keys;
  plait_value v;
  plait_tensor *converted = nullptr;
  if (!right_side(o, t->dl.dtype, &v, &converted)) return false;
  bool fine;
  if (is_number_for(t, v) && is_mask_of(t, key) && !is_watched(t))
    fine = assign_number(t, handle_of(key), v);
  else if ((fine = take_apart(t, key, keys)))
    fine = keys.n ? assign_arrays(keys, v) : assign_view(keys.view, v);
  plait_release(converted);
  return fine;
}

}  // namespace

PyObject *subscript(PyObject *self, PyObject *key) {
  plait_tensor *t = handle_of(self);
  if (PyLong_CheckExact(key)) {
    const Py_ssize_t i = PyLong_AsSsize_t(key);
    if (i == -1 && PyErr_Occurred()) {
      PyErr_Clear();
      return PyErr_Format(PyExc_IndexError,
                          "index: %R is out of bounds for dimension 0 of shape %s", key,
                          shape_text(t).c_str());
    }
    return get_item(self, i);
  }
  plait_tensor *out = PySlice_Check(key) && t->dl.ndim ? take_slice(t, 0, key) : selected(t, key);
  return out ? wrap(out) : nullptr;
}

PyObject *get_item(PyObject *self, Py_ssize_t i) {
  plait_tensor *t = handle_of(self);
  if (t->dl.ndim == 0)
    return PyErr_Format(PyExc_IndexError,
                        "index: a 0-d tensor has no dimension to index; use item()");
  if (i < -t->dl.shape[0] || i >= t->dl.shape[0])
    return PyErr_Format(PyExc_IndexError, "index: %zd is out of bounds for dimension 0 of shape %s",
                        i, shape_text(t).c_str());
  plait_tensor *out = call(op_select, {value(t), value(int64_t(0)), value(int64_t(i))});
  return out ? wrap(out) : nullptr;
}

int assign_subscript(PyObject *self, PyObject *key, PyObject *v) {
  if (!v) {
    PyErr_SetString(PyExc_TypeError, "index: elements of a tensor cannot be deleted");
    return -1;
  }
  return assign(handle_of(self), key, v) ? 0 : -1;
}

}  // namespace plait::core
