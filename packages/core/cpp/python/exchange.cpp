// Exchange without a copy: the buffer protocol, NumPy, DLPack.
#include "tensor.hpp"

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
  const char *format = format_of(t->dl.dtype);
  const bool readonly = t->storage->flags & PLAIT_STORAGE_READONLY;
  if (!format)
    return refuse_buffer(view, "buffer: bfloat16 has no buffer format; cast to float32 first");
  if (!refuse_grad(t, "buffer", PyExc_BufferError)) return refuse_buffer(view, nullptr);
  if (t->dl.device.device_type != kDLCPU)
    return refuse_buffer(view,
                         "buffer: a tensor on the CPU is required; copy it with .cpu() first");
  if ((flags & PyBUF_WRITABLE) && readonly)
    return refuse_buffer(view, "buffer: the tensor is read-only");
  if ((flags & PyBUF_STRIDES) != PyBUF_STRIDES && !is_contiguous(t))
    return refuse_buffer(view, "buffer: a contiguous tensor is required; call contiguous() first");
  auto *s = static_cast<Shared *>(PyMem_Malloc(sizeof(Shared)));
  if (!s) {
    PyErr_SetString(PyExc_MemoryError, "out of memory");
    return refuse_buffer(view, nullptr);
  }
  s->storage = t->storage;
  plait_retain(s->storage);
  state.python->exported(s->storage, 1);
  const int64_t size = itemsize(t->dl.dtype);
  for (int i = 0; i < t->dl.ndim; i++) {
    s->dims[i] = t->dl.shape[i];
    // the strides of an empty tensor may be so large that this wraps; they are never used
    s->dims[PLAIT_MAX_DIMS + i] = int64_t(uint64_t(t->dl.strides[i]) * uint64_t(size));
  }
  view->buf = t->dl.data ? t->dl.data : s;  // an empty tensor needs an address too
  view->obj = new_reference(self);
  view->len = numel(t) * size;
  view->itemsize = size;
  view->readonly = readonly;
  view->ndim = t->dl.ndim;
  view->format = flags & PyBUF_FORMAT ? const_cast<char *>(format) : nullptr;
  view->shape = flags & PyBUF_ND ? s->dims : nullptr;
  view->strides = (flags & PyBUF_STRIDES) == PyBUF_STRIDES ? s->dims + PLAIT_MAX_DIMS : nullptr;
  view->suboffsets = nullptr;
  view->internal = s;
  return 0;
}

void release_buffer(PyObject *, Py_buffer *view) {
  auto *s = static_cast<Shared *>(view->internal);
  state.python->exported(s->storage, 0);
  plait_release(s->storage);
  PyMem_Free(s);
}

// NumPy.

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
  if (!force && !refuse_grad(t, "numpy", PyExc_RuntimeError)) return nullptr;
  const DLDevice d = t->dl.device;
  if (!force && d.device_type != kDLCPU && d.device_type != PLAIT_META)
    return PyErr_Format(PyExc_RuntimeError,  // the array would not see what is written later
                        "numpy: a tensor on the CPU is required, got one on %s; copy it with "
                        ".cpu() first",
                        device_text(state.runtime, d).c_str());
  const OnHost here(t, "numpy");
  if (!here) return nullptr;
  t = here.get();
  if (t->dl.dtype.code == kDLBfloat) return bfloat_to_numpy(t);
  Object source(new_reference(self));
  if (force) {
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

bool accept_device(plait_tensor *t, PyObject *o) {
  if (!o || o == Py_None) return true;
  int type = 0, id = 0;
  if (!PyTuple_Check(o) || !PyArg_ParseTuple(o, "ii", &type, &id)) {
    PyErr_Clear();
    PyErr_Format(PyExc_TypeError, "__dlpack__: `dl_device` must be a pair of ints, got %R", o);
    return false;
  }
  if (type == int(t->dl.device.device_type) && id == t->dl.device.device_id) return true;
  PyErr_Format(PyExc_BufferError,
               "__dlpack__: the tensor is on DLPack device (%d, %d); (%d, %d) was asked for",
               int(t->dl.device.device_type), t->dl.device.device_id, type, id);
  return false;
}

PyObject *to_dlpack(PyObject *self, PyObject *args, PyObject *kwargs) {
  PyObject *stream = nullptr, *max_version = nullptr, *device = nullptr, *copy = nullptr;
  static const char *names[] = {"stream", "max_version", "dl_device", "copy", nullptr};
  if (!PyArg_ParseTupleAndKeywords(args, kwargs, "|$OOOO:__dlpack__", const_cast<char **>(names),
                                   &stream, &max_version, &device, &copy))
    return nullptr;
  plait_tensor *t = handle_of(self);
  bool versioned = false;
  if (!refuse_grad(t, "__dlpack__", PyExc_BufferError) || !parse_version(max_version, &versioned) ||
      !accept_device(t, device))
    return nullptr;
  if (stream && stream != Py_None && t->dl.device.device_type == kDLCPU)
    return PyErr_Format(PyExc_BufferError,
                        "__dlpack__: `stream` must be None for a tensor on the CPU, got %R",
                        stream);
  const int truth = copy && copy != Py_None ? PyObject_IsTrue(copy) : 0;
  if (truth < 0) return nullptr;
  if (!truth) return state.python->export_dlpack(t, versioned, 0);
  plait_tensor *fresh = call(op_clone, {value(t)});
  PyObject *capsule =
      fresh ? state.python->export_dlpack(fresh, versioned, DLPACK_FLAG_BITMASK_IS_COPIED)
            : nullptr;
  plait_release(fresh);
  return capsule;
}

PyObject *dlpack_device(PyObject *self, PyObject *) {
  const DLDevice d = handle_of(self)->dl.device;
  return Py_BuildValue("ii", int(d.device_type), int(d.device_id));
}

PyObject *capsule_of(PyObject *source, PyObject *copy) {
  Object method(PyObject_GetAttrString(source, "__dlpack__"));
  if (!method) {
    PyErr_Clear();
    return PyErr_Format(PyExc_TypeError,
                        "from_dlpack: an array with `__dlpack__` is required, got %s",
                        Py_TYPE(source)->tp_name);
  }
  Object none(PyTuple_New(0)), keywords(Py_BuildValue("{s(ii)}", "max_version", 1, 0));
  if (!none || !keywords) return nullptr;
  if (copy && copy != Py_None && PyDict_SetItemString(keywords.get(), "copy", copy) < 0)
    return nullptr;
  PyObject *capsule = PyObject_Call(method.get(), none.get(), keywords.get());
  if (capsule || !PyErr_ExceptionMatches(PyExc_TypeError)) return capsule;
  PyErr_Clear();  // a library older than DLPack 1.0
  return PyObject_CallNoArgs(method.get());
}

PyObject *from_dlpack(PyObject *, PyObject *args, PyObject *kwargs) {
  PyObject *source, *device = nullptr, *copy = nullptr;
  static const char *names[] = {"x", "device", "copy", nullptr};
  if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O|$OO:from_dlpack", const_cast<char **>(names),
                                   &source, &device, &copy))
    return nullptr;
  DLDevice d;
  if (device && device != Py_None) {
    const int done = state.python->device(device, &d);
    if (done == PLAIT_NOT_CONVERTIBLE)
      PyErr_Format(PyExc_TypeError, "from_dlpack: `device` must be device, got %R", device);
    if (done == PLAIT_CONVERTED && d.device_type != kDLCPU)
      PyErr_SetString(PyExc_BufferError, "from_dlpack: only the CPU can be asked for");
    if (PyErr_Occurred()) return nullptr;
  }
  Object capsule(PyCapsule_CheckExact(source) ? new_reference(source) : capsule_of(source, copy));
  if (!capsule) return nullptr;
  const auto *managed = PyCapsule_IsValid(capsule.get(), "dltensor_versioned")
                            ? static_cast<DLManagedTensorVersioned *>(
                                  PyCapsule_GetPointer(capsule.get(), "dltensor_versioned"))
                            : nullptr;
  const bool copied = managed && (managed->flags & DLPACK_FLAG_BITMASK_IS_COPIED);
  plait_tensor *t = state.python->import_dlpack(state.runtime->thread(), capsule.get());
  if (t && copy == Py_True && !copied) {
    plait_tensor *fresh = call(op_clone, {value(t)});
    plait_release(t);
    t = fresh;
  }
  return t ? wrap(t) : nullptr;
}

}  // namespace

PyObject *numpy() {
  static PyObject *module = nullptr;  // under the GIL
  if (!module) module = plait_import_module("numpy");
  return module;
}

bool refuse_grad(plait_tensor *t, const char *who, PyObject *exception) {
  const plait_engine *e = role<plait_engine>(state.runtime);
  if (!e || !((t->layers >> e->layer & 1) || (t->base && !e->is_leaf(e->ctx, t)))) return true;
  PyErr_Format(exception,
               "%s: a tensor that requires no grad is required; call detach() first, as in "
               "x.detach().numpy()",
               who);
  return false;
}

PyBufferProcs buffer_methods{get_buffer, release_buffer};

PyMethodDef exchange_methods[] = {
    {"numpy", function(entry<to_numpy>), METH_FASTCALL | METH_KEYWORDS,
     "numpy($self, /, *, force=False)\n--\n\nA NumPy array on the same memory. Refused where grad "
     "is required: detach() "
     "first, or force=True, which does."
     "\n\nExample:\n"
     "    >>> import plait_core as pc\n"
     "    >>> x = pc.zeros(3)\n"
     "    >>> x.numpy()[1] = 5.0\n"
     "    >>> x\n"
     "    tensor([0., 5., 0.])"},
    {"__dlpack__", function(entry<to_dlpack>), METH_VARARGS | METH_KEYWORDS,
     "__dlpack__($self, /, *, stream=None, max_version=None, dl_device=None, copy=None)\n--\n\nA "
     "DLPack capsule on the same memory."},
    {"__dlpack_device__", entry<dlpack_device>, METH_NOARGS,
     "__dlpack_device__($self, /)\n--\n\n(device type, device number) of DLPack."},
    {nullptr, nullptr, 0, nullptr}};

PyMethodDef exchange_functions[] = {
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
     "library's array."
     "\n\nExample:\n"
     "    >>> import plait_core as pc\n"
     "    >>> import numpy as np\n"
     "    >>> pc.from_dlpack(np.array([1.0, 2.0]))\n"
     "    tensor([1., 2.], dtype=float64)"},
    {nullptr, nullptr, 0, nullptr}};

}  // namespace plait::core
