// x[key] taken apart: ints, slices, None and Ellipsis become views one after the other; arrays are
// collected.
#include <vector>

#include <plait/index.hpp>

#include "tensor/batched.hpp"
#include "tensor/tensor.hpp"

namespace plait::core {
namespace {

struct Key {
  PyObject *object;       // borrowed
  plait_tensor *array;    // owned; NULL unless the key is an array or a bool
};
// Whether keys mean what they mean in PyTorch, where uint8 arrays are masks and some lists tuples.
bool pytorch_keys = false;

// What a key is made into is not shown to the layer of `watch_classes`.
class Unseen {
 public:
  Unseen() : thread_(state.runtime->thread()), excluded_(thread_->excluded) {
    thread_->excluded |= state.watching_layer;
  }
  Unseen(const Unseen &) = delete;
  ~Unseen() { thread_->excluded = excluded_; }

 private:
  plait_thread *thread_;
  uint64_t excluded_;
};

bool is_mask(const plait_tensor *t) { return t->dl.dtype.code == kDLBool; }
bool is_integer(const plait_tensor *t) {
  return t->dl.dtype.code == kDLInt || t->dl.dtype.code == kDLUInt;
}

bool is_array(PyObject *o) {
  if (o == Py_None || o == Py_Ellipsis || PySlice_Check(o)) return false;
  if (PyLong_Check(o)) return PyBool_Check(o);
  if (is_tensor(o)) return true;
  if (PyList_Check(o) || PyTuple_Check(o) || PyRange_Check(o)) return true;
  auto *type = reinterpret_cast<PyObject *>(Py_TYPE(o));
  return PyObject_HasAttrString(type, "__dlpack__") || PyObject_HasAttrString(type, "__array__");
}

// Whether a key is a number that is no int, as NumPy's scalars are; an array is a sequence.
bool is_scalar(PyObject *o) { return !is_tensor(o) && PyIndex_Check(o) && !PySequence_Check(o); }

bool as_array(PyObject *o, plait_tensor **out) {
  if (is_tensor(o)) {
    plait_retain(handle_of(o));
    *out = handle_of(o);
  } else {
    const Object list(PyRange_Check(o) ? PySequence_List(o) : new_reference(o));
    *out = list ? from_data(list.get(), nullptr) : nullptr;
  }
  if (!*out) return false;
  if (pytorch_keys && same((*out)->dl.dtype, dtype::uint8) && !is_scalar(o)) {
    if (!warn("indexing with dtype torch.uint8 is now deprecated, please use a dtype torch.bool "
              "instead."))
      return false;
    const Unseen unseen;
    plait_tensor *mask = cast(*out, dtype::bool_);
    plait_release(*out);
    return (*out = mask);
  }
  if (is_mask(*out) || is_integer(*out)) return true;
  if (numel(*out) == 0 && !is_tensor(o)) {  // an empty list has no dtype
    plait_tensor *ints = cast(*out, dtype::int64);
    plait_release(*out);
    return (*out = ints);
  }
  PyErr_Format(PyExc_IndexError, "index: bool or integer arrays are required, got %s",
               name((*out)->dl.dtype));
  return false;
}

class Walk {  // the state while keys are applied: the view so far
 public:
  explicit Walk(Keys &keys) : keys_(keys) {}

  bool step(Key &k, int left) {
    PyObject *o = k.object;
    if (k.array && is_mask(k.array)) return mask(k.array);
    // an int that differs between samples is no view of the memory of all samples
    if (k.array && (k.array->dl.ndim || is_batched(k.array)))
      return array(std::exchange(k.array, nullptr));
    if (o == Py_None) return new_dimension() && ++dim_;
    if (o == Py_Ellipsis) return dim_ = keys_.view->dl.ndim - left, true;
    return PySlice_Check(o) ? slice(o) : integer(o);
  }

 private:
  bool replace(plait_tensor *t) {
    if (!t) return false;
    plait_release(keys_.view);
    keys_.view = t;
    return true;
  }
  bool new_dimension() {
    return replace(call(op_unsqueeze, {value(keys_.view), value(int64_t(dim_))}));
  }
  bool integer(PyObject *o) {
    const Object number(python::index_of(o));
    if (!number) return false;
    // an int that does not fit 64 bits is out of bounds
    const Py_ssize_t i = PyNumber_AsSsize_t(number.get(), nullptr);
    if (i == -1 && PyErr_Occurred()) return false;
    const int64_t size = keys_.view->dl.shape[dim_];
    if (i < -size || i >= size) {
      PyErr_Format(PyExc_IndexError, "index: %R is out of bounds for dimension %d of shape %s", o,
                   dim_, shape_text(keys_.view).c_str());
      return false;
    }
    return replace(call(op_select, {value(keys_.view), value(int64_t(dim_)), value(int64_t(i))}));
  }
  bool slice(PyObject *o) {
    auto *s = reinterpret_cast<PySliceObject *>(o);
    const bool all = s->start == Py_None && s->stop == Py_None && s->step == Py_None;
    if (!all && !replace(take_slice(keys_.view, dim_, o))) return false;
    dim_++;
    return true;
  }
  bool array(plait_tensor *t) {  // steals
    if (t = moved(t, keys_.view->dl.device); !t) return false;
    while (keys_.n < dim_) keys_.indices[keys_.n++] = nullptr;
    keys_.indices[dim_++] = t;
    keys_.n = dim_;
    return true;
  }
  // A mask of k dimensions becomes k arrays of the indices where it is true.
  bool mask(plait_tensor *m) {
    if (m->dl.ndim == 0) {
      const OnHost here(m, "index");
      return here && flag(*here.data() != 0);
    }
    if (m->dl.device.device_type == PLAIT_META) return bool(OnHost(m, "index"));
    const int width = m->dl.ndim;
    for (int i = 0; i < width; i++)
      if (m->dl.shape[i] != keys_.view->dl.shape[dim_ + i]) {
        PyErr_Format(PyExc_IndexError,
                     "index: a mask of shape %s does not fit dimension %d of shape %s",
                     shape_text(m).c_str(), dim_, shape_text(keys_.view).c_str());
        return false;
      }
    if (is_watched(keys_.view)) return whole_mask(m);
    const bool merged = width > 1 && merge(width);
    if (width > 1 && !merged && PyErr_Occurred()) return false;
    const int64_t flat = -1;
    plait_tensor *rows = nullptr;
    if (merged) {
      plait_tensor *line = call(op_reshape, {value(m), ints(&flat, 1)});
      rows = line ? call(op_nonzero, {value(line)}) : nullptr;
      plait_release(line);
    } else {
      rows = call(op_nonzero, {value(m)});
    }
    return columns(rows, merged ? 1 : width);
  }
  // Steals the rows of `nonzero`, and takes their columns for arrays.
  bool columns(plait_tensor *rows, int width) {
    bool fine = rows;
    for (int i = 0; fine && i < width; i++) {
      plait_tensor *column = call(op_select, {value(rows), value(int64_t(1)), value(int64_t(i))});
      fine = column && array(column);
    }
    plait_release(rows);
    return fine;
  }
  // A mask for a layer, which sees one call with the mask in it.
  bool whole_mask(plait_tensor *m) {
    const int dim = dim_;
    {
      const Unseen unseen;
      if (!columns(call(op_nonzero, {value(m)}), m->dl.ndim)) return false;
    }
    plait_retain(m);
    keys_.masks[keys_.n_masks++] = {dim, m};
    return true;
  }
  // True and False index a new dimension: all of it, or nothing.
  bool flag(bool all) {
    if (!new_dimension()) return false;
    plait_thread *thread = state.runtime->thread();
    plait_tensor *t = nullptr;
    const int64_t n = all;
    const plait_status s =
        state.runtime->tensor_new(thread, dtype::int64, 1, &n, nullptr, {kDLCPU, 0}, &t);
    if (s < 0) return raise(thread, s), false;
    if (all) *static_cast<int64_t *>(t->dl.data) = 0;
    return array(t);
  }
  // Merges `width` contiguous dimensions into one, so that one index array is enough.
  bool merge(int width) {
    const DLTensor &t = keys_.view->dl;
    int64_t shape[PLAIT_MAX_DIMS];
    int n = 0;
    for (int d = 0; d < dim_; d++) shape[n++] = t.shape[d];
    shape[n] = 1;
    for (int d = dim_; d < dim_ + width; d++) {
      if (t.shape[d] == 0) return false;
      if (d + 1 < dim_ + width && t.strides[d] != t.strides[d + 1] * t.shape[d + 1]) return false;
      shape[n] *= t.shape[d];
    }
    n++;
    for (int d = dim_ + width; d < t.ndim; d++) {
      if (t.shape[d] == 0) return false;
      shape[n++] = t.shape[d];
    }
    for (int d = 0; d < dim_; d++)
      if (t.shape[d] == 0) return false;
    return replace(call(op_view, {value(keys_.view), ints(shape, n)}));
  }

  Keys &keys_;
  int dim_ = 0;
};

// Number of dimensions of the tensor that a key uses.
int width_of(const Key &k) {
  if (k.array && is_mask(k.array)) return k.array->dl.ndim;
  return k.object == Py_None || k.object == Py_Ellipsis ? 0 : 1;
}

bool check_kind(PyObject *o) {
  if (o == Py_None || o == Py_Ellipsis || PySlice_Check(o) || PyIndex_Check(o)) return true;
  PyErr_Format(
      PyExc_IndexError,
      "index: ints, slices, None, Ellipsis, and bool or integer arrays are accepted, got %s",
      Py_TYPE(o)->tp_name);
  return false;
}

bool walk(plait_tensor *t, std::vector<Key> &list, Keys &keys) {
  int taken = 0, dots = 0;
  for (const Key &k : list) {
    taken += width_of(k);
    dots += k.object == Py_Ellipsis;
  }
  if (taken > t->dl.ndim || dots > 1) {
    PyErr_Format(PyExc_IndexError,
                 dots > 1 ? "index: only one Ellipsis is accepted for shape %s"
                          : "index: too many indices for shape %s: %d were given",
                 shape_text(t).c_str(), taken);
    return false;
  }
  Walk w(keys);
  for (Key &k : list) {
    taken -= width_of(k);
    if (!w.step(k, taken)) return false;
  }
  return true;
}

}  // namespace

bool set_pytorch_keys(bool mode) { return std::exchange(pytorch_keys, mode); }

bool is_watched(const plait_tensor *t) {
  const plait_thread *thread = state.runtime->thread();
  return (t->layers | thread->included) & state.watching_layer & ~thread->excluded;
}

Keys::~Keys() {
  plait_release(view);
  for (int i = 0; i < n; i++) plait_release(indices[i]);
  for (int i = 0; i < n_masks; i++) plait_release(masks[i].mask);
}

static thread_local const Keys *shown;  // those of the call that runs

ShownKeys::ShownKeys(const Keys &keys) : before_(std::exchange(shown, &keys)) {}
ShownKeys::~ShownKeys() { shown = before_; }

// The indices of a call with the masks from which some of them come.
static PyObject *whole_masks(PyObject *, PyObject *indices) {
  const Object given(PySequence_Tuple(indices));
  Object out(given ? PyList_New(0) : nullptr);
  if (!out) return nullptr;
  int next = 0;
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(given.get()); i++) {
    PyObject *item = PyTuple_GET_ITEM(given.get(), i);
    const bool found = shown && next < shown->n_masks && shown->masks[next].dim == i &&
                       is_tensor(item) && handle_of(item) == shown->indices[i];
    plait_tensor *mask = found ? shown->masks[next++].mask : nullptr;
    if (mask) plait_retain(mask);
    const Object entry(mask ? wrap(mask) : new_reference(item));
    if (!entry || PyList_Append(out.get(), entry.get()) < 0) return nullptr;
    if (mask) i += mask->dl.ndim - 1;
  }
  return out.release();
}

PyMethodDef key_functions[] = {
    {"_whole_masks", entry<whole_masks>, METH_O,
     "_whole_masks(indices, /)\n--\n\nThe indices of a call that a layer sees, with masks whole."},
    {nullptr, nullptr, 0, nullptr}};

// A slice of ints and None, with those of sizes that a recording follows.
static PyObject *plain_slice(PySliceObject *s) {
  if (!python::is_recorded_size(s->start) && !python::is_recorded_size(s->stop) &&
      !python::is_recorded_size(s->step))
    return new_reference(reinterpret_cast<PyObject *>(s));
  const auto plain = [](PyObject *o) {
    return Object(python::is_recorded_size(o) ? python::index_of(o) : new_reference(o));
  };
  const Object start = plain(s->start), stop = plain(s->stop), step = plain(s->step);
  return start && stop && step ? PySlice_New(start.get(), stop.get(), step.get()) : nullptr;
}

plait_tensor *take_slice(plait_tensor *t, int dim, PyObject *o) {
  auto *s = reinterpret_cast<PySliceObject *>(o);
  Py_ssize_t start, stop, step;
  const Object plain(plain_slice(s));
  if (!plain || PySlice_Unpack(plain.get(), &start, &stop, &step) < 0) return nullptr;
  return call(op_slice,
              {value(t), value(int64_t(dim)), s->start == Py_None ? none() : value(int64_t(start)),
               s->stop == Py_None ? none() : value(int64_t(stop)), value(int64_t(step))});
}

// Whether PyTorch takes a list for a tuple of keys: one with a key that is no number.
static bool is_list_of_keys(PyObject *o) {
  if (!pytorch_keys || !PyList_CheckExact(o) || PyList_GET_SIZE(o) >= 32) return false;
  for (Py_ssize_t i = 0; i < PyList_GET_SIZE(o); i++) {
    PyObject *item = PyList_GET_ITEM(o, i);
    if (item == Py_None || item == Py_Ellipsis || PySlice_Check(item) || is_tensor(item) ||
        PySequence_Check(item))
      return true;
  }
  return false;
}

bool take_apart(plait_tensor *t, PyObject *list_or_key, Keys &keys) {
  const Object key_object(is_list_of_keys(list_or_key) ? PyList_AsTuple(list_or_key)
                                                       : new_reference(list_or_key));
  PyObject *key = key_object.get();
  if (!key) return false;
  plait_retain(t);
  keys.view = t;
  const bool many = PyTuple_Check(key);
  const Py_ssize_t n = many ? PyTuple_GET_SIZE(key) : 1;
  if (n > max_keys) {
    PyErr_Format(PyExc_IndexError, "index: at most %d keys are accepted, got %zd", max_keys, n);
    return false;
  }
  std::vector<Key> list;
  list.reserve(size_t(n));
  bool fine = true;
  for (Py_ssize_t i = 0; fine && i < n; i++) {
    Key k{many ? PyTuple_GET_ITEM(key, i) : key, nullptr};
    fine = is_array(k.object) ? as_array(k.object, &k.array) : check_kind(k.object);
    list.push_back(k);
  }
  fine = fine && walk(t, list, keys);
  for (Key &k : list) plait_release(k.array);
  return fine;
}

}  // namespace plait::core
