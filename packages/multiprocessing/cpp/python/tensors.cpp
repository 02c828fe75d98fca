// Tensors of any type with `__plait_tensor__`: the position of their bytes, and moving them to
// blocks.
#include <vector>

#include "binding.hpp"

#include <plait/gil.hpp>
#include <plait/layer.hpp>

namespace plait::multiprocessing::python {
namespace {

// The results of `state`, also in _reductions.py.
// SHARED goes by reference: it lies in a block, or on a device that shares its memory. DEVICE
// cannot.
enum Kind { NO_TENSOR = -1, SOLE = 0, USED = 1, SHARED = 2, META = 3, DEVICE = 4 };

// Old storages of moved tensors, which calls that run without the GIL may still read.
std::vector<plait_storage *> retired;
plait::python::HostLock retired_lock;
void drop_retired() {
  if (__atomic_load_n(state.python->unlocked, __ATOMIC_ACQUIRE)) return;
  std::vector<plait_storage *> now;
  {
    const plait::python::HostGuard guard(retired_lock);
    now.swap(retired);
  }
  for (plait_storage *s : now) plait_release(s);
}
void retire(plait_storage *s) {
  {
    const plait::python::HostGuard guard(retired_lock);
    retired.push_back(s);
  }
  drop_retired();
}

bool on_cpu(const plait_tensor *t, const char *caller) {
  if (t->dl.device.device_type == kDLCPU) return true;
  PyErr_Format(PyExc_TypeError,
               "%s: a tensor on the CPU is required, got one on %s, whose memory other processes "
               "cannot share; copy it with .cpu()",
               caller, device_text(state.runtime, t->dl.device).c_str());
  return false;
}

bool used_by_others(const plait_storage *s) {
  return __atomic_load_n(&s->o.refs, __ATOMIC_ACQUIRE) > 1;
}

PyObject *kind(PyObject *, PyObject *o) {
  const plait_tensor *t = state.python->unwrap(o);
  if (!t) return PyErr_Occurred() ? nullptr : PyLong_FromLong(NO_TENSOR);
  drop_retired();
  if (t->dl.device.device_type == PLAIT_META) return PyLong_FromLong(META);
  if (t->dl.device.device_type != kDLCPU)
    return PyLong_FromLong(can_share(t->dl.device) ? SHARED : DEVICE);
  const plait_storage *s = t->storage;
  if (plait_shared_is_block(s)) return PyLong_FromLong(SHARED);
  const bool foreign = s->release != nullptr;  // a NumPy array's, a mapped file's
  return PyLong_FromLong(foreign || used_by_others(s) ? USED : SOLE);
}

// A block with bytes [low, high) of a storage; copied without the GIL if they are many.
plait_storage *copied(plait_storage *from, uint64_t low, uint64_t high) {
  plait_storage *to = nullptr;
  const plait_status s = plait_shared_create(state.runtime->thread(), high - low, &to);
  if (s < 0) return raise(s), nullptr;
  const auto *bytes = static_cast<const char *>(from->data) + low;
  if (high - low < 65536) {
    if (high > low) std::memcpy(to->data, bytes, high - low);
    return to;
  }
  plait_retain(from);
  Py_BEGIN_ALLOW_THREADS;
  std::memcpy(to->data, bytes, high - low);
  Py_END_ALLOW_THREADS;
  plait_release(from);
  return to;
}

PyObject *copy(PyObject *, PyObject *args) {
  PyObject *o = nullptr;
  unsigned long long low = 0, high = 0;
  if (!PyArg_ParseTuple(args, "OKK", &o, &low, &high)) return nullptr;
  plait_tensor *t = tensor_in(o);
  if (!t) return nullptr;
  if (low > high || high > t->storage->nbytes)
    return PyErr_Format(PyExc_ValueError, "copy: bytes of the storage are required");
  plait_storage *to = copied(t->storage, low, high);
  return to ? new_block(to) : nullptr;
}

// Points a tensor of the CPU at a copy of its storage in shared memory; False if others use the
// storage.
PyObject *move(PyObject *, PyObject *o) {
  plait_tensor *t = tensor_in(o);
  if (!t) return nullptr;
  if (can_share(t->dl.device)) Py_RETURN_TRUE;  // it goes by reference as it is
  if (!on_cpu(t, "share_memory_")) return nullptr;
  plait_storage *old = t->storage;
  if (plait_shared_is_block(old)) Py_RETURN_TRUE;
  if (used_by_others(old)) Py_RETURN_FALSE;
  const auto offset = static_cast<char *>(t->dl.data) - static_cast<char *>(old->data);
  plait_retain(old);
  plait_storage *fresh = copied(old, 0, old->nbytes);
  // another thread may have moved it meanwhile; the two references are the tensor's and this one
  const bool same = t->storage == old && __atomic_load_n(&old->o.refs, __ATOMIC_ACQUIRE) == 2;
  plait_status s = PLAIT_OK;
  if (fresh && same) {
    // values that a graph saved of this tensor stay valid
    fresh->version = __atomic_load_n(&old->version, __ATOMIC_RELAXED);
    plait_tensor *there = nullptr;
    plait_thread *thread = state.runtime->thread();
    char *first = static_cast<char *>(fresh->data) + (old->data ? offset : 0);
    s = state.runtime->tensor_on(thread, fresh, first, t->dl.dtype, t->dl.ndim, t->dl.shape,
                                 t->dl.strides, &there);
    if (s >= 0) s = state.runtime->tensor_repoint(thread, t, there);
    plait_release(there);
  }
  const bool done = fresh != nullptr && (same || plait_shared_is_block(t->storage));
  plait_release(fresh);
  retire(old);
  if (s < 0) return raise(s);
  if (PyErr_Occurred()) return nullptr;
  return PyBool_FromLong(done);
}

PyObject *block(PyObject *, PyObject *o) {
  const plait_tensor *t = tensor_in(o);
  if (!t) return nullptr;
  if (!plait_shared_is_block(t->storage) && !can_share(t->dl.device))
    return PyErr_Format(PyExc_ValueError, "block: a tensor in shared memory is required");
  plait_retain(t->storage);
  return new_block(t->storage);
}

PyObject *ints(const int64_t *p, int32_t n) {
  Object list(PyTuple_New(n));
  for (int32_t i = 0; list && i < n; i++) {
    PyObject *x = PyLong_FromLongLong(p[i]);
    if (!x) return nullptr;
    PyTuple_SET_ITEM(list.get(), i, x);
  }
  return list.release();
}

// (code, bits, offset in bytes, shape, strides)
PyObject *layout(PyObject *, PyObject *o) {
  const plait_tensor *t = tensor_in(o);
  if (!t) return nullptr;
  const auto *begin = static_cast<const char *>(t->storage->data);
  const long long at = begin ? static_cast<const char *>(t->dl.data) - begin : 0;
  Object shape(ints(t->dl.shape, t->dl.ndim)), strides(ints(t->dl.strides, t->dl.ndim));
  if (!shape || !strides) return nullptr;
  return Py_BuildValue("(iiLOO)", int(t->dl.dtype.code), int(t->dl.dtype.bits), at, shape.get(),
                       strides.get());
}

// (identity of the storage, first byte, byte after the last one that the elements reach)
PyObject *span(PyObject *, PyObject *o) {
  const plait_tensor *t = tensor_in(o);
  if (!t) return nullptr;
  int64_t low = 0, high = 0;
  const int64_t size = itemsize(t->dl.dtype);
  for (int32_t i = 0; i < t->dl.ndim; i++) {
    const int64_t reach = (t->dl.shape[i] - 1) * t->dl.strides[i];
    (reach < 0 ? low : high) += reach;
  }
  const auto *begin = static_cast<const char *>(t->storage->data);
  const long long at = begin ? static_cast<const char *>(t->dl.data) - begin : 0;
  const bool empty = numel(t) == 0;
  return Py_BuildValue("(NLL)", PyLong_FromVoidPtr(t->storage), empty ? 0LL : at + low * size,
                       empty ? 0LL : at + (high + 1) * size);
}

const plait_tensor_type *table_of(PyObject *type) {
  Object capsule(PyObject_GetAttrString(type, "__plait_tensor__"));
  if (!capsule) return nullptr;
  return static_cast<const plait_tensor_type *>(
      PyCapsule_GetPointer(capsule.get(), "plait.tensor"));
}

// A tensor of the type `type`; steals the handle.
PyObject *wrap_as(PyObject *type, plait_tensor *t) {
  const plait_tensor_type *table = table_of(type);
  if (table) return table->wrap(t);
  plait_release(t);
  return nullptr;
}

bool take_dims(PyObject *o, int64_t *out, Py_ssize_t n) {
  if (!PyTuple_Check(o) || PyTuple_GET_SIZE(o) != n || n > PLAIT_MAX_DIMS) {
    PyErr_SetString(PyExc_ValueError, "tensor: shape and strides of one length are required");
    return false;
  }
  for (Py_ssize_t i = 0; i < n; i++) {
    out[i] = PyLong_AsLongLong(PyTuple_GET_ITEM(o, i));
    if (out[i] == -1 && PyErr_Occurred()) return false;
  }
  return true;
}

// empty(like, shape, meta, code, bits): a new tensor of the type of `like`, a class
PyObject *empty(PyObject *, PyObject *args) {
  PyObject *type = nullptr, *shape = nullptr;
  int meta = 0, code = 0, bits = 0;
  int64_t dims[PLAIT_MAX_DIMS];
  if (!PyArg_ParseTuple(args, "OO!pii", &type, &PyTuple_Type, &shape, &meta, &code, &bits) ||
      !take_dims(shape, dims, PyTuple_GET_SIZE(shape)))
    return nullptr;
  plait_tensor *t = nullptr;
  const DLDevice device{meta ? PLAIT_META : kDLCPU, 0};
  const plait_status s =
      state.runtime->tensor_new(state.runtime->thread(), {uint8_t(code), uint8_t(bits), 1},
                                int32_t(PyTuple_GET_SIZE(shape)), dims, nullptr, device, &t);
  return s < 0 ? raise(s) : wrap_as(type, t);
}

}  // namespace

bool can_share(DLDevice d) {
  if (!is_accelerator(d)) return false;
  const auto *device = role<plait_device>(state.runtime, int32_t(d.device_type));
  return device && PLAIT_HAS(plait_device, device, share);
}

plait_tensor *tensor_in(PyObject *o) {
  plait_tensor *t = state.python->unwrap(o);
  if (!t && !PyErr_Occurred())
    PyErr_Format(PyExc_TypeError, "a tensor is required, got %s", Py_TYPE(o)->tp_name);
  if (!t) return nullptr;
  const plait_status s = make_waiting_calls(state.runtime->thread(), t);
  return s < 0 ? (raise(s), nullptr) : t;
}

PyObject *block_tensor(PyObject *self, PyObject *const *args, Py_ssize_t n) {
  plait_storage *storage = storage_in(self);
  if (!storage) return nullptr;
  if (n != 6 || !PyTuple_Check(args[4]))
    return PyErr_Format(PyExc_TypeError,
                        "tensor: (type, code, bits, offset, shape, strides) is required");
  const long code = PyLong_AsLong(args[1]), bits = PyLong_AsLong(args[2]);
  const long long offset = PyLong_AsLongLong(args[3]);
  int64_t shape[PLAIT_MAX_DIMS], strides[PLAIT_MAX_DIMS];
  const Py_ssize_t ndim = PyTuple_GET_SIZE(args[4]);
  if (PyErr_Occurred() || !take_dims(args[4], shape, ndim) || !take_dims(args[5], strides, ndim))
    return nullptr;
  if (offset < 0 || uint64_t(offset) > storage->nbytes)
    return PyErr_Format(PyExc_ValueError, "tensor: an offset in %llu bytes is required, got %lld",
                        static_cast<unsigned long long>(storage->nbytes), offset);
  plait_tensor *t = nullptr;
  const plait_status s = state.runtime->tensor_on(
      state.runtime->thread(), storage, static_cast<char *>(storage->data) + offset,
      {uint8_t(code), uint8_t(bits), 1}, int32_t(ndim), shape, strides, &t);
  return s < 0 ? raise(s) : wrap_as(args[0], t);
}

PyMethodDef tensor_functions[] = {
    {"kind", entry<kind>, METH_O, "What an object is for sending."},
    {"move", entry<move>, METH_O,
     "Point a tensor at a copy of its storage in shared memory: whether it was possible. One on a "
     "device "
     "that shares its memory is left as it is."},
    {"copy", entry<copy>, METH_VARARGS,
     "copy(tensor, low, high): bytes of its storage in a new block."},
    {"block", entry<block>, METH_O, "The block of a shared tensor."},
    {"layout", entry<layout>, METH_O, "(code, bits, offset, shape, strides) of a tensor."},
    {"span", entry<span>, METH_O, "(storage, low, high): the bytes that the elements reach."},
    {"empty", entry<empty>, METH_VARARGS, "empty(type, shape, meta, code, bits): a new tensor."},
    {nullptr, nullptr, 0, nullptr}};

}  // namespace plait::multiprocessing::python
