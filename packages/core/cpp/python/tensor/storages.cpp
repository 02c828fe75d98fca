// Functions that read the storage of a tensor, or give a tensor another one.
#include <algorithm>
#include <vector>

#include "tensor/batched.hpp"
#include "tensor/tensor.hpp"

namespace plait::core {
namespace {

bool take_ints(PyObject *o, const char *caller, const char *subject, std::vector<int64_t> &out) {
  Object list(sequence_of(o, "a sequence of ints is required"));
  for (Py_ssize_t i = 0; list && i < PySequence_Fast_GET_SIZE(list.get()); i++) {
    const Py_ssize_t x = PyNumber_AsSsize_t(PySequence_Fast_GET_ITEM(list.get(), i), nullptr);
    if (x == -1 && PyErr_Occurred()) break;
    out.push_back(x);
  }
  if (!PyErr_Occurred() && out.size() <= PLAIT_MAX_DIMS) return true;
  PyErr_Format(PyExc_TypeError, "%s: `%s` must be at most %d ints, got %R", caller, subject,
               PLAIT_MAX_DIMS, o);
  return false;
}

// All bytes of a tensor's storage, as a tensor of uint8.
PyObject *storage_bytes(PyObject *self, PyObject *) {
  plait_thread *thread = state.runtime->thread();
  plait_storage *storage = handle_of(self)->storage;
  const auto n = int64_t(storage->nbytes);
  plait_tensor *t = nullptr;
  const plait_status s =
      state.runtime->tensor_on(thread, storage, storage->data, dtype::uint8, 1, &n, nullptr, &t);
  return s < 0 ? raise(thread, s) : wrap(t);
}

// (address, number of bytes) of the storage; the address is 0 on meta
PyObject *storage_extent(PyObject *self, PyObject *) {
  const plait_storage *s = handle_of(self)->storage;
  return Py_BuildValue("KK", static_cast<unsigned long long>(reinterpret_cast<uintptr_t>(s->data)),
                       static_cast<unsigned long long>(s->nbytes));
}

// A new tensor on this one's storage: (dtype, offset, size, stride), checked against its bounds.
PyObject *on_storage(PyObject *self, PyObject *const *args, Py_ssize_t n) {
  DLDataType d;
  std::vector<int64_t> size, stride;
  if (n != 4)
    return PyErr_Format(PyExc_TypeError, "_on_storage: (dtype, offset, size, stride) is required");
  const int done = state.python->dtype(args[0], &d);
  if (done == PLAIT_NOT_CONVERTIBLE)
    return PyErr_Format(PyExc_TypeError, "_on_storage: `dtype` must be a dtype, got %R", args[0]);
  const Py_ssize_t offset = PyNumber_AsSsize_t(args[1], PyExc_OverflowError);
  if (done != PLAIT_CONVERTED || (offset == -1 && PyErr_Occurred()) ||
      !take_ints(args[2], "set_", "size", size) || !take_ints(args[3], "set_", "stride", stride))
    return nullptr;
  if (size.size() != stride.size())
    return PyErr_Format(
        PyExc_ValueError,
        "set_: `size` and `stride` must have the same number of entries, got %zu and %zu",
        size.size(), stride.size());
  plait_storage *storage = handle_of(self)->storage;
  int64_t at = 0;
  if (offset < 0 || __builtin_mul_overflow(int64_t(offset), itemsize(d), &at) ||
      at > int64_t(storage->nbytes))
    return PyErr_Format(PyExc_ValueError,
                        "set_: `storage_offset` must lie in the storage of %llu bytes, got %zd",
                        static_cast<unsigned long long>(storage->nbytes), offset);
  plait_thread *thread = state.runtime->thread();
  plait_tensor *t = nullptr;
  char *first = storage->data ? static_cast<char *>(storage->data) + at : nullptr;
  const plait_status s = state.runtime->tensor_on(thread, storage, first, d, int32_t(size.size()),
                                                  size.data(), stride.data(), &t);
  return s < 0 ? raise(thread, s) : wrap(t);
}

// Whether each element of the span of a tensor belongs to one index, so that another storage can
// have the same strides.
bool is_dense(const plait_tensor *t) {
  int64_t last = 0;
  for (int32_t i = 0; i < t->dl.ndim; i++) {
    if (t->dl.strides[i] < 0) return false;
    last += (t->dl.shape[i] - 1) * t->dl.strides[i];
  }
  return numel(t) > 0 && last == numel(t) - 1;
}

// A tensor of the same shape and order in memory of the host that is pinned for a device:
// (dtype, device). Its elements are not set.
PyObject *pinned_like(PyObject *self, PyObject *const *args, Py_ssize_t n) {
  DLDataType d;
  DLDevice device;
  if (n != 2 || state.python->dtype(args[0], &d) != PLAIT_CONVERTED ||
      state.python->device(args[1], &device) != PLAIT_CONVERTED)
    return PyErr_Occurred()
               ? nullptr
               : PyErr_Format(PyExc_TypeError, "_pinned_like: (dtype, device) is required");
  if (!is_accelerator(device))
    return PyErr_Format(PyExc_ValueError,
                        "pin_memory: `device` must be an accelerator, got device(%R)", args[1]);
  plait_thread *thread = state.runtime->thread();
  plait_tensor *t = handle_of(self), *out = nullptr;
  plait_storage *storage = nullptr;
  plait_status s =
      state.runtime->pinned_new(thread, device, uint64_t(numel(t) * itemsize(d)), &storage);
  if (s >= 0)
    s = state.runtime->tensor_on(thread, storage, storage->data, d, t->dl.ndim, t->dl.shape,
                                 is_dense(t) ? t->dl.strides : nullptr, &out);
  plait_release(storage);
  return s < 0 ? raise(thread, s) : wrap(out);
}

PyObject *is_pinned(PyObject *self, PyObject *) {
  return PyBool_FromLong((handle_of(self)->storage->flags & PLAIT_STORAGE_PINNED) != 0);
}

bool fits(const plait_tensor *t, int64_t bytes) {
  const auto *begin = static_cast<const char *>(t->storage->data);
  const int64_t at = static_cast<const char *>(t->dl.data) - begin;
  return bytes <= int64_t(t->storage->nbytes) - at;
}

// Copies what both have room for, on whatever device they are.
bool copy_first_bytes(plait_thread *thread, plait_tensor *to, plait_tensor *from) {
  const auto *begin = static_cast<const char *>(from->storage->data);
  const auto *first = static_cast<const char *>(from->dl.data);
  const int64_t n =
      std::min(int64_t(from->storage->nbytes) - (first - begin), int64_t(to->storage->nbytes));
  plait_tensor *bytes[2] = {}, *done = nullptr;
  plait_status s = PLAIT_OK;
  for (int i = 0; i < 2 && s >= 0; i++) {
    const plait_tensor *t = i ? from : to;
    s = state.runtime->tensor_on(thread, t->storage, t->dl.data, dtype::uint8, 1, &n, nullptr,
                                 &bytes[i]);
  }
  if (s < 0)
    raise(thread, s);
  else
    done = call(op_copy, {value(bytes[0]), value(bytes[1])});
  for (plait_tensor *t : bytes) plait_release(t);
  plait_release(done);
  return done;
}

// The tensor whose bytes `resize_` takes: the same bytes if there are enough, else new ones that
// begin with the old ones.
plait_tensor *resized(plait_thread *thread, plait_tensor *t, const std::vector<int64_t> &size,
                      const std::vector<int64_t> &stride, int64_t bytes) {
  plait_tensor *out = nullptr;
  const auto ndim = int32_t(size.size());
  plait_status s;
  if (fits(t, bytes)) {
    s = state.runtime->tensor_on(thread, t->storage, t->dl.data, t->dl.dtype, ndim, size.data(),
                                 stride.data(), &out);
    return s < 0 ? (raise(thread, s), nullptr) : out;
  }
  if (__atomic_load_n(&t->storage->o.refs, __ATOMIC_ACQUIRE) > 1) {
    PyErr_Format(PyExc_RuntimeError,
                 "resize_: %lld bytes are required, the storage has %llu and other tensors or "
                 "arrays share it, or a compiled function is recorded; make a new tensor of that "
                 "size instead, as by new_empty()",
                 static_cast<long long>(bytes),
                 static_cast<unsigned long long>(t->storage->nbytes));
    return nullptr;
  }
  s = state.runtime->tensor_new(thread, t->dl.dtype, ndim, size.data(), stride.data(), t->dl.device,
                                &out);
  if (s < 0) return raise(thread, s), nullptr;
  if (t->dl.data && out->dl.data && !copy_first_bytes(thread, out, t)) {
    plait_release(out);
    return nullptr;
  }
  return out;
}

// resize_ to C order or to another memory format's strides (given): the elements keep their order
// in memory
PyObject *resize_in_place(PyObject *self, PyObject *const *args, Py_ssize_t n) {
  std::vector<int64_t> size, stride;
  if (n != 2 || !take_ints(args[0], "resize_", "size", size) ||
      !take_ints(args[1], "resize_", "stride", stride))
    return PyErr_Occurred() ? nullptr
                            : PyErr_Format(PyExc_TypeError, "_resize: (size, stride) is required");
  plait_tensor *t = handle_of(self);
  if (size.size() != stride.size())
    return PyErr_Format(PyExc_ValueError, "resize_: a stride for each size is required");
  int64_t bytes = itemsize(t->dl.dtype);
  for (const int64_t x : size)
    if (x < 0 || __builtin_mul_overflow(bytes, x, &bytes))
      return PyErr_Format(PyExc_ValueError,
                          "resize_: sizes that are not negative and count fewer than 2**63 bytes "
                          "are required, got %s",
                          text(size.data(), int64_t(size.size())).c_str());
  if (t->storage->flags & PLAIT_STORAGE_READONLY)
    return PyErr_Format(PyExc_ValueError, "resize_: the tensor is read-only; clone() it first");
  if (!note_address(t)) return nullptr;
  plait_thread *thread = state.runtime->thread();
  plait_tensor *to = resized(thread, t, size, stride, bytes);
  if (!to) return nullptr;
  const plait_status s = state.runtime->tensor_repoint(thread, t, to);
  plait_release(to);
  if (s < 0) return raise(thread, s);
  wrote(t);
  return new_reference(self);
}

}  // namespace

PyMethodDef storage_methods[] = {
    {"_storage_bytes", entry<storage_bytes>, METH_NOARGS,
     "_storage_bytes($self, /)\n--\n\nAll bytes of the storage, as a tensor of uint8."},
    {"_storage_extent", entry<storage_extent>, METH_NOARGS,
     "_storage_extent($self, /)\n--\n\nThe storage's address and its number of bytes."},
    {"_pinned_like", function(entry<pinned_like>), METH_FASTCALL,
     "_pinned_like($self, dtype, device, /)\n--\n\nA tensor of the same shape in pinned memory of "
     "the host."},
    {"_is_pinned", entry<is_pinned>, METH_NOARGS,
     "_is_pinned($self, /)\n--\n\nWhether the storage is pinned memory of the host."},
    {"_on_storage", function(entry<on_storage>), METH_FASTCALL,
     "_on_storage($self, dtype, offset, size, stride, /)\n--\n\nA new tensor on this one's "
     "storage."},
    {"_resize", function(entry<resize_in_place>), METH_FASTCALL,
     "_resize($self, size, stride, /)\n--\n\nresize_ with the strides of the new shape."},
    {nullptr, nullptr, 0, nullptr}};

}  // namespace plait::core
