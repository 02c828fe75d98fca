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
  auto *o = new Owner;  // the buffer, which is large, is filled where it is used
  o->release = {};
  o->release.run = let_go;
  o->view.obj = nullptr;
  o->old = nullptr;
  o->versioned = nullptr;
  return o;
}

}  // namespace

plait_status foreign_tensor(plait_thread *thread, const DLTensor &dl, bool readonly,
                            void (*release)(void *), void *block, plait_tensor **out) {
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
    s = runtime->storage_wrap(thread, empty ? first : first + low * size,
                              empty ? 0 : uint64_t((high - low + 1) * size), dl.device,
                              readonly ? PLAIT_STORAGE_READONLY : 0, release, block, &storage);
  const bool owned = s >= 0 && !ours;  // releasing the storage releases the owner
  if (s >= 0)
    s = runtime->tensor_on(thread, storage, first, dl.dtype, dl.ndim, dl.shape, strides, out);
  plait_release(storage);
  if (!owned) release(block);
  return s;
}

namespace {

// A handle on foreign bytes; takes the owner over, also on failure.
plait_tensor *adopt(plait_thread *thread, const DLTensor &dl, bool readonly, Owner *owner) {
  plait_tensor *t = nullptr;
  const plait_status s = foreign_tensor(thread, dl, readonly, release_owner, owner, &t);
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

// The elements of arrays that people bring from tables and files, and what helps.
const char *refused_elements(const char *format) {
  switch (*format) {
    case 'O':
      return "Python objects, as in a table with text columns: select the columns of numbers, or "
             "convert them with astype";
    case '>':
      return "numbers in the byte order of another machine: convert them with "
             "array.astype(array.dtype.newbyteorder('='))";
    case 'T': return "structures: select one field of them, as in array['name']";
    case 'g': return "long doubles: convert them with astype('float64')";
    default: break;
  }
  return strpbrk(format, "wsc") ? "text: convert it to numbers first"
                                : "elements that no plait dtype has";
}

void refuse_elements(const char *format) {
  PyErr_Format(
      state.dtype_error,
      "array: numbers of a plait dtype are required; the elements have the format %s, which "
      "means %s",
      format, refused_elements(format));
}

// NumPy raises ValueError for dtypes that have no buffer format
void refuse_buffer() {
  if (!PyErr_ExceptionMatches(PyExc_ValueError)) return;
  PyObject *type, *value, *traceback;
  PyErr_Fetch(&type, &value, &traceback);
  PyErr_Format(state.dtype_error,
               "array: numbers of a plait dtype are required; convert dates and other elements to "
               "numbers first (%S)",
               value);
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
  if (view.ndim &&
      !view.strides) {  // of the bytes of a date of NumPy, though strides were asked for
    PyErr_SetString(state.dtype_error,
                    "array: numbers of a plait dtype are required; convert dates to numbers first");
    release_owner(owner);
    return nullptr;
  }
  if (!dtype_of(view, &dl.dtype)) {
    refuse_elements(view.format ? view.format : "B");
    release_owner(owner);
    return nullptr;
  }
  for (int i = 0; fits && i < view.ndim; i++) {
    shape[i] = view.shape[i];
    // an axis of size 1 may carry any stride
    fits = shape[i] <= 1 || view.strides[i] % view.itemsize == 0;
    strides[i] = view.strides[i] / view.itemsize;
    if (shape[i] <= 1 && (strides[i] <= 0 || view.strides[i] % view.itemsize)) strides[i] = 1;
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
  if (type < PLAIT_MAX_DEVICE_TYPES && !load_component(dl.device)) return false;
  if (role<plait_device>(state.runtime, int32_t(type))) return true;
  PyErr_Format(PyExc_BufferError, "array: no device component is loaded for DLPack device type %d",
               int(type));
  return false;
}

// The device of an array, which is the CPU if it does not say.
bool device_of(PyObject *array, DLDevice *out) {
  *out = {kDLCPU, 0};
  Object method(PyObject_GetAttr(array, state.str_dlpack_device));
  if (!method) return PyErr_Clear(), true;
  Object pair(PyObject_CallNoArgs(method.get()));
  int type, id;
  if (!pair || !PyArg_ParseTuple(pair.get(), "ii;__dlpack_device__: a pair of ints", &type, &id))
    return false;
  *out = {DLDeviceType(type), id};
  return true;
}

// How DLPack's keyword `stream` names our current stream. Where the default one has a number of its
// own, that is said (array API standard, `__dlpack__`).
PyObject *stream_number(DLDevice d) {
  const plait_stream *s = state.runtime->stream(state.runtime->thread(), d);
  if (s) return PyLong_FromVoidPtr(s->native);
  return PyLong_FromLong(d.device_type == kDLCUDA ? 1 : 0);
}

PyObject *call_dlpack(PyObject *array, PyObject *keywords) {
  Object method(PyObject_GetAttr(array, state.str_dlpack)), none(PyTuple_New(0));
  return method && none ? PyObject_Call(method.get(), none.get(), keywords) : nullptr;
}

}  // namespace

PyObject *ask_dlpack(PyObject *array, const DLDevice *required, PyObject *copy) {
  DLDevice here;
  Object keywords(PyDict_New()), more(PyDict_New());
  if (!keywords || !more || !device_of(array, &here)) return nullptr;
  const auto set = [](const Object &dict, PyObject *name, Object value) {
    return value && PyDict_SetItem(dict.get(), name, value.get()) == 0;
  };
  if (is_accelerator(here) && !set(keywords, state.str_stream, Object(stream_number(here))))
    return nullptr;
  // what libraries older than DLPack 1.0 do not know
  if (!set(more, state.str_max_version, Object(new_reference(state.max_version))) ||
      (copy && copy != Py_None && !set(more, state.str_copy, Object(new_reference(copy)))) ||
      (required && !same(*required, here) && is_accelerator(here) &&
       !set(more, state.str_dl_device,
            Object(Py_BuildValue("ii", int(required->device_type), int(required->device_id))))) ||
      PyDict_Update(more.get(), keywords.get()) < 0)
    return nullptr;
  PyObject *capsule = call_dlpack(array, more.get());
  if (capsule) return capsule;
  const bool asked_too_much =
      PyErr_ExceptionMatches(PyExc_TypeError) ||
      (PyErr_ExceptionMatches(PyExc_BufferError) &&
       PyDict_GetItemWithError(more.get(), state.str_dl_device) && copy != Py_False);
  if (!asked_too_much) return nullptr;
  PyErr_Clear();
  return call_dlpack(array, keywords.get());
}

plait_tensor *import_managed(plait_thread *thread, DLManagedTensorVersioned *managed) {
  Owner *owner = new_owner();
  owner->versioned = managed;
  if (managed->version.major != DLPACK_MAJOR_VERSION) {
    PyErr_Format(PyExc_BufferError, "from_dlpack: DLPack 1.x is required, got %u.%u",
                 managed->version.major, managed->version.minor);
    release_owner(owner);
    return nullptr;
  }
  DLTensor dl = managed->dl_tensor;
  if (!on_this_machine(dl)) {
    release_owner(owner);
    return nullptr;
  }
  return adopt(thread, dl, managed->flags & DLPACK_FLAG_BITMASK_READ_ONLY, owner);
}

plait_tensor *import_dlpack(plait_thread *thread, PyObject *capsule) {
  if (PyCapsule_IsValid(capsule, "dltensor_versioned")) {
    auto *managed = static_cast<DLManagedTensorVersioned *>(
        PyCapsule_GetPointer(capsule, "dltensor_versioned"));
    PyCapsule_SetName(capsule, "used_dltensor_versioned");
    return import_managed(thread, managed);
  }
  if (!PyCapsule_IsValid(capsule, "dltensor")) {
    PyErr_Format(PyExc_TypeError, "from_dlpack: a fresh DLPack capsule is required, got %R",
                 capsule);
    return nullptr;
  }
  Owner *owner = new_owner();
  owner->old = static_cast<DLManagedTensor *>(PyCapsule_GetPointer(capsule, "dltensor"));
  PyCapsule_SetName(capsule, "used_dltensor");
  DLTensor dl = owner->old->dl_tensor;
  if (!on_this_machine(dl)) {
    release_owner(owner);
    return nullptr;
  }
  return adopt(thread, dl, false, owner);
}

plait_tensor *import_array(plait_thread *thread, PyObject *array) {
  if (PyObject_CheckBuffer(array)) return import_buffer(thread, array);
  Object capsule(ask_dlpack(array, nullptr, nullptr));
  return capsule ? import_dlpack(thread, capsule.get()) : nullptr;
}

}  // namespace plait::python
