// Tensor handles on the bytes of other libraries' arrays: by the buffer protocol, or else by
// DLPack.
#include "binding.hpp"

namespace plait::python {
namespace {

// The reference that keeps the owner of foreign bytes alive. It is dropped with the GIL held; after
// exit began it leaks.
struct Owner {
  Release release;
  Py_buffer view;
  DLManagedTensor *old;
  DLManagedTensorVersioned *versioned;
};

void let_go(Release *r) {
  auto *o = reinterpret_cast<Owner *>(r);
  if (o->view.obj) PyBuffer_Release(&o->view);
  if (o->old && o->old->deleter) o->old->deleter(o->old);
  if (o->versioned && o->versioned->deleter) o->versioned->deleter(o->versioned);
  delete o;
}
void release_owner(void *block) {
  Release *r = &static_cast<Owner *>(block)->release;
  if (release_now())
    let_go(r);
  else
    release_later(r);
}
Owner *new_owner() {
  auto *o = new Owner{};
  o->release.run = let_go;
  return o;
}

// A handle on foreign bytes; takes the owner over, also on failure.
plait_tensor *adopt(plait_thread *thread, const DLTensor &dl, bool readonly, Owner *owner) {
  const plait_runtime *runtime = thread->runtime;
  int64_t strides[PLAIT_MAX_DIMS], low = 0, high = 0, step = 1;
  bool empty = false;
  plait_status s = PLAIT_OK;
  if (dl.ndim < 0 || dl.ndim > PLAIT_MAX_DIMS)
    s = runtime->raise(thread, PLAIT_SHAPE_ERROR, "array",
                       "at most %d dimensions are required, got %d", PLAIT_MAX_DIMS, dl.ndim);
  if (s >= 0 && (dl.dtype.lanes != 1 || strcmp(name(dl.dtype), "unknown dtype") == 0))
    s = runtime->raise(thread, PLAIT_DTYPE_ERROR, "array",
                       "a dtype of plait is required, got code %d with %d bits and %d lanes",
                       dl.dtype.code, dl.dtype.bits, dl.dtype.lanes);
  for (int i = dl.ndim - 1; s >= 0 && i >= 0; i--) {
    strides[i] = dl.strides ? dl.strides[i] : step;
    step *= dl.shape[i] > 1 ? dl.shape[i] : 1;
    empty |= dl.shape[i] == 0;
    const int64_t span = (dl.shape[i] - 1) * strides[i];
    (span < 0 ? low : high) += span;
  }
  const int64_t size = itemsize(dl.dtype);
  char *first = static_cast<char *>(dl.data) + dl.byte_offset;
  if (s >= 0 && !empty && reinterpret_cast<uintptr_t>(first) % uintptr_t(size > 8 ? 8 : size))
    s = runtime->raise(thread, PLAIT_VALUE_ERROR, "array",
                       "aligned elements are required; the array starts at %p", first);
  // bytes of one of our storages that come back from another library: the handle gets that storage,
  // so that all its handles see writes
  plait_storage *storage = s >= 0 && !empty && !readonly && dl.device.device_type == kDLCPU
                               ? exported_storage(first + low * size, first + (high + 1) * size)
                               : nullptr;
  const bool ours = storage;
  if (s >= 0 && !ours)
    s = runtime->storage_wrap(
        thread, empty ? first : first + low * size, empty ? 0 : uint64_t((high - low + 1) * size),
        dl.device, readonly ? PLAIT_STORAGE_READONLY : 0, release_owner, owner, &storage);
  plait_tensor *t = nullptr;
  const bool owned = s >= 0 && !ours;  // releasing the storage releases the owner
  if (s >= 0)
    s = runtime->tensor_on(thread, storage, first, dl.dtype, dl.ndim, dl.shape, strides, &t);
  plait_release(storage);
  if (!owned) release_owner(owner);
  if (s < 0) raise(thread, s);
  return s < 0 ? nullptr : t;
}

// The buffer protocol.

bool dtype_of(const Py_buffer &view, DLDataType *out) {
  const char *f = view.format ? view.format : "B";
  if (*f == '@' || *f == '=' || *f == '<' || *f == '|') f++;
  const bool complex = *f == 'Z';
  f += complex;
  const auto bits = uint8_t(view.itemsize * 8);
  if (!f[0] || f[1] || view.itemsize > 16) return false;
  if (complex)
    *out = {kDLComplex, bits, 1};
  else if (*f == '?')
    *out = {kDLBool, bits, 1};
  else if (strchr("bhilqn", *f))
    *out = {kDLInt, bits, 1};
  else if (strchr("BHILQN", *f))
    *out = {kDLUInt, bits, 1};
  else if (strchr("efd", *f))
    *out = {kDLFloat, bits, 1};
  else
    return false;
  return strcmp(name(*out), "unknown dtype") != 0;
}

// NumPy raises ValueError for dtypes that have no buffer format
void refuse_buffer() {
  if (!PyErr_ExceptionMatches(PyExc_ValueError)) return;
  PyObject *type, *value, *traceback;
  PyErr_Fetch(&type, &value, &traceback);
  PyErr_Format(state.dtype_error, "array: elements of a plait dtype are required: %S", value);
  Py_XDECREF(type);
  Py_XDECREF(value);
  Py_XDECREF(traceback);
}

plait_tensor *import_buffer(plait_thread *thread, PyObject *array) {
  Owner *owner = new_owner();
  Py_buffer &view = owner->view;
  if (PyObject_GetBuffer(array, &view, PyBUF_STRIDES | PyBUF_FORMAT) < 0) {
    view.obj = nullptr;
    let_go(&owner->release);
    refuse_buffer();
    return nullptr;
  }
  int64_t shape[PLAIT_MAX_DIMS], strides[PLAIT_MAX_DIMS];
  DLTensor dl{view.buf, {kDLCPU, 0}, view.ndim, {}, shape, strides, 0};
  bool fits = view.ndim <= PLAIT_MAX_DIMS;
  if (!dtype_of(view, &dl.dtype)) {
    PyErr_Format(
        state.dtype_error,
        "array: elements of a plait dtype in the machine's byte order are required, got format %s",
        view.format ? view.format : "B");
    release_owner(owner);
    return nullptr;
  }
  for (int i = 0; fits && i < view.ndim; i++) {
    shape[i] = view.shape[i];
    // an axis of size 1 may carry any stride
    fits = shape[i] <= 1 || view.strides[i] % view.itemsize == 0;
    strides[i] = shape[i] <= 1 ? 1 : view.strides[i] / view.itemsize;
  }
  if (!fits) {
    PyErr_SetString(PyExc_ValueError,
                    "array: strides of whole elements are required; copy the array first");
    release_owner(owner);
    return nullptr;
  }
  return adopt(thread, dl, view.readonly, owner);
}

// DLPack.

bool on_this_machine(DLTensor &dl) {
  if (dl.device.device_type == kDLCUDAHost || dl.device.device_type == kDLROCMHost)
    dl.device = {kDLCPU, 0};
  const auto type = uint32_t(dl.device.device_type);
  if (type == kDLCPU) return true;
  if (role<plait_device>(state.runtime, int32_t(type))) return true;
  PyErr_Format(PyExc_BufferError, "array: no device component is loaded for DLPack device type %d",
               int(type));
  return false;
}

PyObject *ask_dlpack(PyObject *array) {
  PyObject *args[] = {array, state.max_version};
  Object names(PyTuple_Pack(1, state.str_max_version));
  PyObject *capsule =
      names ? PyObject_VectorcallMethod(state.str_dlpack, args, 1, names.get()) : nullptr;
  if (capsule || !PyErr_ExceptionMatches(PyExc_TypeError)) return capsule;
  PyErr_Clear();  // libraries older than DLPack 1.0 do not know max_version
  return PyObject_CallMethodNoArgs(array, state.str_dlpack);
}

}  // namespace

plait_tensor *import_dlpack(plait_thread *thread, PyObject *capsule) {
  DLTensor dl;
  bool readonly = false;
  Owner *owner = new_owner();
  if (PyCapsule_IsValid(capsule, "dltensor_versioned")) {
    owner->versioned = static_cast<DLManagedTensorVersioned *>(
        PyCapsule_GetPointer(capsule, "dltensor_versioned"));
    PyCapsule_SetName(capsule, "used_dltensor_versioned");
    if (owner->versioned->version.major != DLPACK_MAJOR_VERSION) {
      PyErr_Format(PyExc_BufferError, "from_dlpack: DLPack 1.x is required, got %u.%u",
                   owner->versioned->version.major, owner->versioned->version.minor);
      release_owner(owner);
      return nullptr;
    }
    dl = owner->versioned->dl_tensor;
    readonly = owner->versioned->flags & DLPACK_FLAG_BITMASK_READ_ONLY;
  } else if (PyCapsule_IsValid(capsule, "dltensor")) {
    owner->old = static_cast<DLManagedTensor *>(PyCapsule_GetPointer(capsule, "dltensor"));
    PyCapsule_SetName(capsule, "used_dltensor");
    dl = owner->old->dl_tensor;
  } else {
    delete owner;
    PyErr_Format(PyExc_TypeError, "from_dlpack: a fresh DLPack capsule is required, got %R",
                 capsule);
    return nullptr;
  }
  if (!on_this_machine(dl)) {
    release_owner(owner);
    return nullptr;
  }
  return adopt(thread, dl, readonly, owner);
}

plait_tensor *import_array(plait_thread *thread, PyObject *array) {
  if (PyObject_CheckBuffer(array)) return import_buffer(thread, array);
  Object capsule(ask_dlpack(array));
  return capsule ? import_dlpack(thread, capsule.get()) : nullptr;
}

}  // namespace plait::python
