// Exchange without a copy: the buffer protocol, NumPy, DLPack.
#include <memory>

#include "tensor/batched.hpp"
#include "tensor/overriding.hpp"

namespace plait::core {
namespace {

// The buffer protocol.

struct Shared {  // the data of a buffer view while it exists
  plait_storage *storage;
  Py_ssize_t dims[2 * PLAIT_MAX_DIMS];
};

const char *format_of(DLDataType d) {
  switch (key(d)) {
    case key(dtype::bool_): return "?";
    case key(dtype::uint8): return "B";
    case key(dtype::uint16): return "H";
    case key(dtype::uint32): return "I";
    case key(dtype::uint64): return "L";
    case key(dtype::int8): return "b";
    case key(dtype::int16): return "h";
    case key(dtype::int32): return "i";
    case key(dtype::int64): return "l";
    case key(dtype::float16): return "e";
    case key(dtype::float32): return "f";
    case key(dtype::float64): return "d";
    case key(dtype::complex64): return "Zf";
    case key(dtype::complex128): return "Zd";
    default: return nullptr;
  }
}

int refuse_buffer(Py_buffer *view, const char *text) {
  view->obj = nullptr;
  if (text) PyErr_SetString(PyExc_BufferError, text);
  return -1;
}

int get_buffer(PyObject *self, Py_buffer *view, int flags) {
  plait_tensor *t = handle_of(self);
#ifdef Py_GIL_DISABLED
  // another thread may replace the tensor's memory: an alias has one size and one memory
  Tensor alias;
  plait_thread *thread = state.runtime->thread();
  if (!refuse_grad(t, "buffer", PyExc_BufferError)) return refuse_buffer(view, nullptr);
  const plait_status s = state.runtime->tensor_alias(thread, t, alias.out());
  if (s < 0) return raise(thread, s), refuse_buffer(view, nullptr);
  t = alias.get();
#endif
  const char *format = format_of(t->dl.dtype);
  const bool readonly =
      __atomic_load_n(&t->storage->flags, __ATOMIC_RELAXED) & PLAIT_STORAGE_READONLY;
  if (!format)
    return refuse_buffer(view, ("buffer: " + std::string(name(t->dl.dtype)) +
                                " has no buffer format; cast to float32 first")
                                   .c_str());
  if (!refuse_grad(t, "buffer", PyExc_BufferError)) return refuse_buffer(view, nullptr);
  if (t->dl.device.device_type != kDLCPU)
    return refuse_buffer(view,
                         "buffer: a tensor on the CPU is required; copy it with .cpu() first");
  if ((flags & PyBUF_WRITABLE) && readonly)
    return refuse_buffer(view, "buffer: the tensor is read-only");
  if ((flags & PyBUF_STRIDES) != PyBUF_STRIDES && !is_contiguous(t))
    return refuse_buffer(view, "buffer: a contiguous tensor is required; call contiguous() first");
  auto *shared = static_cast<Shared *>(PyMem_Malloc(sizeof(Shared)));
  if (!shared) {
    PyErr_SetString(PyExc_MemoryError, "out of memory");
    return refuse_buffer(view, nullptr);
  }
  shared->storage = t->storage;
  plait_retain(shared->storage);
  state.python->exported(shared->storage, 1);
  const int64_t size = itemsize(t->dl.dtype);
  for (int i = 0; i < t->dl.ndim; i++) {
    shared->dims[i] = t->dl.shape[i];
    // the strides of an empty tensor may be so large that this wraps; they are never used
    shared->dims[PLAIT_MAX_DIMS + i] = int64_t(uint64_t(t->dl.strides[i]) * uint64_t(size));
  }
  view->buf = t->dl.data ? t->dl.data : shared;  // an empty tensor needs an address too
  view->obj = new_reference(self);
  view->len = numel(t) * size;
  view->itemsize = size;
  view->readonly = readonly;
  view->ndim = t->dl.ndim;
  view->format = flags & PyBUF_FORMAT ? const_cast<char *>(format) : nullptr;
  view->shape = flags & PyBUF_ND ? shared->dims : nullptr;
  view->strides =
      (flags & PyBUF_STRIDES) == PyBUF_STRIDES ? shared->dims + PLAIT_MAX_DIMS : nullptr;
  view->suboffsets = nullptr;
  view->internal = shared;
  return 0;
}

void release_buffer(PyObject *, Py_buffer *view) {
  auto *s = static_cast<Shared *>(view->internal);
  state.python->exported(s->storage, 0);
  plait_release(s->storage);
  PyMem_Free(s);
}

// NumPy.

// Whether this thread records no calls: then arrays may share the memory of tensors that require
// grad.
bool records_nothing() {
  const plait_engine *e = role<plait_engine>(state.runtime);
  return e && !e->enabled(e->ctx, state.runtime->thread());
}

PyObject *to_numpy(PyObject *self, PyObject *const *args, Py_ssize_t n, PyObject *kwnames) {
  plait_tensor *t = handle_of(self);
  bool force = false;
  if (n > 0 || (kwnames && PyTuple_GET_SIZE(kwnames))) {
    if (n + (kwnames ? PyTuple_GET_SIZE(kwnames) : 0) != 1 ||
        (!n && PyUnicode_CompareWithASCIIString(PyTuple_GET_ITEM(kwnames, 0), "force") != 0))
      return PyErr_Format(PyExc_TypeError, "numpy: only the keyword `force` is accepted");
    const int truth = PyObject_IsTrue(args[0]);
    if (truth < 0) return nullptr;
    force = truth;
  }
  const bool plain = force || records_nothing();
  if (!plain && !refuse_grad(t, "numpy", PyExc_RuntimeError)) return nullptr;
  const DLDevice d = t->dl.device;
  if (!force && d.device_type != kDLCPU && d.device_type != PLAIT_META)
    return PyErr_Format(PyExc_TypeError,  // the array would not see what is written later
                        "numpy: a tensor on the CPU is required, got one on %s; copy it with "
                        ".cpu() first",
                        device_text(state.runtime, d).c_str());
  const OnHost here(t, "numpy");
  if (!here) return nullptr;
  t = here.get();
  if (t->dl.dtype.code == kDLBfloat || is_float8(t->dl.dtype)) return bits_to_numpy(t);
  Object source(new_reference(self));
  if (plain) {
    plait_thread *thread = state.runtime->thread();
    plait_tensor *plain = nullptr;
    const plait_status s = state.runtime->tensor_alias(thread, t, &plain);
    if (s < 0) return raise(thread, s);
    source = Object(wrap(plain));
  }
  PyObject *module = source ? numpy() : nullptr;
  return module ? PyObject_CallMethod(module, "asarray", "O", source.get()) : nullptr;
}

PyObject *from_numpy(PyObject *, PyObject *array) {
  const char *type = Py_TYPE(array)->tp_name;
  if (strcmp(type, "numpy.ndarray") != 0 &&
      !(PyObject_CheckBuffer(array) && PyObject_HasAttrString(array, "__array_interface__")))
    return PyErr_Format(PyExc_TypeError, "from_numpy: `ndarray` must be a NumPy array, got %s",
                        type);
  plait_tensor *t = import_array(array);
  if (t && (t->storage->flags & PLAIT_STORAGE_READONLY) &&
      !warn("The given NumPy array is not writable: the tensor on its memory is read-only, and "
            "writes to it are errors; array.copy() makes one that is writable")) {
    plait_release(t);
    return nullptr;
  }
  return t ? wrap(t) : nullptr;
}
// As `from_numpy`, for plait's own code: without its checks and its warning.
PyObject *share_array(PyObject *, PyObject *array) {
  plait_tensor *t = import_array(array);
  return t ? wrap(t) : nullptr;
}

// DLPack.

bool parse_version(PyObject *o, bool *versioned) {
  if (!o || o == Py_None) return true;
  long major = 0, minor = 0;
  if (!PyTuple_Check(o) || !PyArg_ParseTuple(o, "ll", &major, &minor)) {
    PyErr_Clear();
    PyErr_Format(PyExc_TypeError, "__dlpack__: `max_version` must be a pair of ints, got %R", o);
    return false;
  }
  *versioned = major >= 1;
  return true;
}

// Whether `__dlpack__` has to copy to the CPU, which alone it copies to; -1 with an exception.
int copies_to_host(plait_tensor *t, PyObject *o, bool may_copy) {
  if (!o || o == Py_None) return 0;
  int type = 0, id = 0;
  if (!PyTuple_Check(o) || !PyArg_ParseTuple(o, "ii", &type, &id)) {
    PyErr_Clear();
    PyErr_Format(PyExc_TypeError, "__dlpack__: `dl_device` must be a pair of ints, got %R", o);
    return -1;
  }
  if (type == int(t->dl.device.device_type) && id == t->dl.device.device_id) return 0;
  if (type == kDLCPU && id == 0 && may_copy && t->dl.device.device_type != PLAIT_META) return 1;
  PyErr_Format(PyExc_BufferError,
               "__dlpack__: the tensor is on DLPack device (%d, %d); (%d, %d) was requested",
               int(t->dl.device.device_type), t->dl.device.device_id, type, id);
  return -1;
}

PyObject *to_dlpack(PyObject *self, PyObject *args, PyObject *kwargs) {
  PyObject *stream = nullptr, *max_version = nullptr, *device = nullptr, *copy = nullptr;
  static const char *names[] = {"stream", "max_version", "dl_device", "copy", nullptr};
  if (!PyArg_ParseTupleAndKeywords(args, kwargs, "|$OOOO:__dlpack__", const_cast<char **>(names),
                                   &stream, &max_version, &device, &copy))
    return nullptr;
  plait_tensor *t = handle_of(self);
  bool versioned = false;
  if (!refuse_grad(t, "__dlpack__", PyExc_BufferError) || !parse_version(max_version, &versioned))
    return nullptr;
  const bool said = copy && copy != Py_None;
  const int truth = said ? PyObject_IsTrue(copy) : 0;
  const int to_host = truth < 0 ? -1 : copies_to_host(t, device, !said || truth);
  if (to_host < 0) return nullptr;
  plait_tensor *fresh = nullptr;
  if (to_host || truth) {
    plait_retain(t);
    fresh = to_host ? moved(t, {kDLCPU, 0}) : call(op_clone, {value(t)});
    if (!to_host) plait_release(t);
    if (!fresh) return nullptr;
    t = fresh;
  }
  // a copy on the CPU has arrived
  PyObject *capsule =
      !to_host && state.python->hand_over(t, stream) < 0
          ? nullptr
          : state.python->export_dlpack(t, versioned, fresh ? DLPACK_FLAG_BITMASK_IS_COPIED : 0);
  plait_release(fresh);
  return capsule;
}

PyObject *dlpack_device(PyObject *self, PyObject *) {
  const DLDevice d = handle_of(self)->dl.device;
  return Py_BuildValue("ii", int(d.device_type), int(d.device_id));
}

PyObject *capsule_of(PyObject *source, const DLDevice *required, PyObject *copy) {
  if (PyCapsule_CheckExact(source)) return new_reference(source);
  if (PyObject_HasAttrString(source, "__dlpack__"))
    return state.python->ask_dlpack(source, required, copy);
  return PyErr_Format(PyExc_TypeError,
                      "from_dlpack: an array with `__dlpack__` is required, got %s",
                      Py_TYPE(source)->tp_name);
}

PyObject *from_dlpack(PyObject *, PyObject *args, PyObject *kwargs) {
  PyObject *source, *device = nullptr, *copy = nullptr;
  static const char *names[] = {"x", "device", "copy", nullptr};
  if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O|$OO:from_dlpack", const_cast<char **>(names),
                                   &source, &device, &copy))
    return nullptr;
  DLDevice d;
  const bool asked = device && device != Py_None;
  const int done = asked ? state.python->device(device, &d) : int(PLAIT_CONVERTED);
  if (done == PLAIT_NOT_CONVERTIBLE)
    PyErr_Format(PyExc_TypeError, "from_dlpack: `device` must be a device, got %R", device);
  if (done != PLAIT_CONVERTED || (asked && !is_there(d, "from_dlpack"))) return nullptr;
  const bool to_host = asked && d.device_type == kDLCPU;
  if ((!asked || to_host) && (!copy || copy == Py_None)) {
    plait_tensor *t = import_by_table(source);
    if (t || PyErr_Occurred()) return t ? wrap(t) : nullptr;
  }
  Object capsule(capsule_of(source, to_host ? &d : nullptr, copy));
  if (!capsule) return nullptr;
  const auto *managed = PyCapsule_IsValid(capsule.get(), "dltensor_versioned")
                            ? static_cast<DLManagedTensorVersioned *>(
                                  PyCapsule_GetPointer(capsule.get(), "dltensor_versioned"))
                            : nullptr;
  const bool copied = managed && (managed->flags & DLPACK_FLAG_BITMASK_IS_COPIED);
  plait_tensor *t = state.python->import_dlpack(state.runtime->thread(), capsule.get());
  if (t && asked && !same(t->dl.device, d)) {
    if (copy == Py_False) {
      PyErr_Format(
          PyExc_BufferError, "from_dlpack: `copy=False` needs an array on %s, which is on %s",
          device_text(state.runtime, d).c_str(), device_text(state.runtime, t->dl.device).c_str());
      plait_release(t);
      return nullptr;
    }
    t = moved(t, d);
  } else if (t && copy == Py_True && !copied) {
    plait_tensor *fresh = call(op_clone, {value(t)});
    plait_release(t);
    t = fresh;
  }
  return t ? wrap(t) : nullptr;
}

// Memory that another library has, by its address.

struct Borrowed {
  DLManagedTensorVersioned managed;
  PyObject *owner;
  int64_t shape[PLAIT_MAX_DIMS], strides[PLAIT_MAX_DIMS];
};
void give_back(DLManagedTensorVersioned *managed) {  // with the GIL
  auto *borrowed = static_cast<Borrowed *>(managed->manager_ctx);
  Py_DECREF(borrowed->owner);
  delete borrowed;
}

bool read_numbers(PyObject *tuple, int64_t *out) {
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(tuple); i++) {
    out[i] = PyLong_AsLongLong(PyTuple_GET_ITEM(tuple, i));
    if (out[i] == -1 && PyErr_Occurred()) return false;
  }
  return true;
}

// A tensor on the memory at an address, which `owner` keeps. The caller has checked the facts.
PyObject *borrow_memory(PyObject *, PyObject *args) {
  unsigned long long address;
  PyObject *shape, *strides, *dtype, *device, *owner;
  int readonly;
  if (!PyArg_ParseTuple(args, "KO!O!OOpO:_borrow_memory", &address, &PyTuple_Type, &shape,
                        &PyTuple_Type, &strides, &dtype, &device, &readonly, &owner))
    return nullptr;
  const Py_ssize_t n = PyTuple_GET_SIZE(shape);
  if (n > PLAIT_MAX_DIMS || n != PyTuple_GET_SIZE(strides))
    return PyErr_Format(PyExc_ValueError, "array: at most %d dimensions are required, got %zd",
                        PLAIT_MAX_DIMS, n);
  auto borrowed = std::make_unique<Borrowed>();
  DLTensor &t = borrowed->managed.dl_tensor;
  if (!read_numbers(shape, borrowed->shape) || !read_numbers(strides, borrowed->strides) ||
      state.python->dtype(dtype, &t.dtype) != PLAIT_CONVERTED ||
      state.python->device(device, &t.device) != PLAIT_CONVERTED)
    return nullptr;
  t.data = reinterpret_cast<void *>(uintptr_t(address));
  t.ndim = int32_t(n);
  t.shape = borrowed->shape;
  t.strides = borrowed->strides;
  borrowed->owner = new_reference(owner);
  DLManagedTensorVersioned &managed = borrowed->managed;
  managed.version = {DLPACK_MAJOR_VERSION, DLPACK_MINOR_VERSION};
  managed.flags = readonly ? DLPACK_FLAG_BITMASK_READ_ONLY : 0;
  managed.deleter = give_back;
  managed.manager_ctx = borrowed.get();
  plait_tensor *out =
      state.python->import_managed(state.runtime->thread(), &borrowed.release()->managed);
  return out ? wrap(out) : nullptr;
}

}  // namespace

PyObject *numpy() {
  static PyObject *result = nullptr;  // once imported, for the life of the process
  PyObject *module = __atomic_load_n(&result, __ATOMIC_ACQUIRE);
  if (module) return module;
  module = PyImport_ImportModule("numpy");
  if (module) __atomic_store_n(&result, module, __ATOMIC_RELEASE);
  return module;
}

bool refuse_grad(plait_tensor *t, const char *caller, PyObject *exception) {
  if (!refuse_batched(t, caller)) return false;
  const plait_engine *e = role<plait_engine>(state.runtime);
  if (!e || !((t->layers >> e->layer & 1) || (t->base && !e->is_leaf(e->ctx, t)))) return true;
  PyErr_Format(exception,
               "%s: the tensor must not require grad; call detach() first, as in "
               "x.detach().numpy()",
               caller);
  return false;
}

PyBufferProcs buffer_methods{get_buffer, release_buffer};

PyMethodDef exchange_methods[] = {
    {"numpy", function(asking<to_numpy>), METH_FASTCALL | METH_KEYWORDS,
     "numpy($self, /, *, force=False)\n--\n\nA NumPy array on the same memory. Refused where grad "
     "is required, unless nothing is recorded (under no_grad): detach() first, or `force=True`, "
     "which does."
     "\n\nExample:\n"
     "    >>> import plait_core as pc\n"
     "    >>> x = pc.zeros(3)\n"
     "    >>> x.numpy()[1] = 5.0\n"
     "    >>> x\n"
     "    tensor([0., 5., 0.])"},
    {"__dlpack__", function(asking<to_dlpack>), METH_VARARGS | METH_KEYWORDS,
     "__dlpack__($self, /, *, stream=None, max_version=None, dl_device=None, copy=None)\n--\n\nA "
     "DLPack capsule on the same memory. On an accelerator the consumer's stream, a number that "
     "the "
     "array API standard gives it, waits for the work in the current one; -1: it does not. "
     "``dl_device=(1, 0)`` asks for a copy on the CPU."},
    {"__dlpack_device__", asking<dlpack_device>, METH_NOARGS,
     "__dlpack_device__($self, /)\n--\n\n(device type, device number) of DLPack."},
    {nullptr, nullptr, 0, nullptr}};

PyMethodDef exchange_functions[] = {
    {"_borrow_memory", entry<borrow_memory>, METH_VARARGS, nullptr},
    {"_share_array", entry<share_array>, METH_O, nullptr},
    {"from_numpy", entry<from_numpy>, METH_O,
     "from_numpy(ndarray, /)\n--\n\nA tensor on the memory of a NumPy array; of a read-only one, a "
     "read-only tensor."
     "\n\nExample:\n"
     "    >>> import plait_core as pc\n"
     "    >>> import numpy as np\n"
     "    >>> a = np.array([1, 2])\n"
     "    >>> x = pc.from_numpy(a)\n"
     "    >>> a[0] = 7\n"
     "    >>> x\n"
     "    tensor([7, 2])"},
    {"from_dlpack", function(entry<from_dlpack>), METH_VARARGS | METH_KEYWORDS,
     "from_dlpack(x, /, *, device=None, copy=None)\n--\n\nA tensor on the memory of another "
     "library's array, or a copy of it if another device is requested. The current stream of an "
     "accelerator waits for the work that makes the array."
     "\n\nRaises:\n"
     "    TypeError: if `x` is no array with ``__dlpack__``.\n"
     "    BufferError: if its library cannot hand it over, or ``copy=False`` cannot be kept."
     "\n\nExample:\n"
     "    >>> import plait_core as pc\n"
     "    >>> import numpy as np\n"
     "    >>> pc.from_dlpack(np.array([1.0, 2.0]))\n"
     "    tensor([1., 2.], dtype=float64)"},
    {nullptr, nullptr, 0, nullptr}};

}  // namespace plait::core
