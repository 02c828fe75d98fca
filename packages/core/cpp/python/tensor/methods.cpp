// Methods of Tensor that read the handle: sizes, strides, elements.
#include <vector>

#include "tensor/batched.hpp"
#include "tensor/overriding.hpp"

namespace plait::core {
namespace {

// an optional `dim` from a fast call; false with an exception
bool take_dim(const char *caller, plait_tensor *t, PyObject *const *args, Py_ssize_t n,
              PyObject *kwnames, int *dim) {
  const Py_ssize_t all = n + (kwnames ? PyTuple_GET_SIZE(kwnames) : 0);
  *dim = -1;
  if (all == 0 || (all == 1 && args[0] == Py_None)) return true;
  if (all > 1 ||
      (!n && PyUnicode_CompareWithASCIIString(PyTuple_GET_ITEM(kwnames, 0), "dim") != 0)) {
    PyErr_Format(PyExc_TypeError, "%s: only `dim` is accepted", caller);
    return false;
  }
  const Py_ssize_t d = PyNumber_AsSsize_t(args[0], PyExc_IndexError);
  if (d == -1 && PyErr_Occurred()) return false;
  if (d < -t->dl.ndim || d >= t->dl.ndim) {
    if (t->dl.ndim)
      PyErr_Format(PyExc_IndexError,
                   "%s: `dim` must be in [%d, %d] for shape %s; got %zd. Dimension out of range",
                   caller, -t->dl.ndim, t->dl.ndim - 1, shape_text(t).c_str(), d);
    else
      PyErr_Format(PyExc_IndexError, "%s: a 0-d tensor has no `dim` %zd", caller, d);
    return false;
  }
  *dim = int(d < 0 ? d + t->dl.ndim : d);
  return true;
}

PyObject *size(PyObject *self, PyObject *const *args, Py_ssize_t n, PyObject *kwnames) {
  plait_tensor *t = handle_of(self);
  int dim;
  if (!take_dim("size", t, args, n, kwnames, &dim)) return nullptr;
  return dim < 0 ? size_object(t->dl.shape, t->dl.ndim) : size_number(t->dl.shape[dim]);
}
PyObject *stride(PyObject *self, PyObject *const *args, Py_ssize_t n, PyObject *kwnames) {
  plait_tensor *t = handle_of(self);
  int dim;
  if (!take_dim("stride", t, args, n, kwnames, &dim)) return nullptr;
  if (dim >= 0) return size_number(t->dl.strides[dim]);
  PyObject *out = PyTuple_New(t->dl.ndim);
  for (int i = 0; out && i < t->dl.ndim; i++)
    PyTuple_SET_ITEM(out, i, size_number(t->dl.strides[i]));
  return out;
}
PyObject *count(PyObject *self, PyObject *) { return size_number(numel(handle_of(self))); }
PyObject *dim(PyObject *self, PyObject *) { return PyLong_FromLong(handle_of(self)->dl.ndim); }
PyObject *element_size(PyObject *self, PyObject *) {
  return PyLong_FromLongLong(itemsize(handle_of(self)->dl.dtype));
}
// dense with the channels innermost: (N, H, W, C) in memory behind the shape (N, C, H, W)
bool channels_last(const plait_tensor *t, int ndim) {
  if (t->dl.ndim != ndim) return false;
  int64_t step = 1;
  for (int k = 0; k < ndim; k++) {
    const int i = k == 0 ? 1 : k == ndim - 1 ? 0 : ndim - k;
    if (t->dl.shape[i] == 1) continue;
    if (t->dl.strides[i] != step) return false;
    step *= t->dl.shape[i];
  }
  return true;
}
PyObject *contiguous(PyObject *self, PyObject *const *args, Py_ssize_t n, PyObject *kwnames) {
  plait_tensor *t = handle_of(self);
  const Py_ssize_t all = n + (kwnames ? PyTuple_GET_SIZE(kwnames) : 0);
  if (!all) return PyBool_FromLong(is_contiguous(t));
  const bool named =
      !n && PyUnicode_CompareWithASCIIString(PyTuple_GET_ITEM(kwnames, 0), "memory_format") == 0;
  if (all > 1 || (!n && !named) || !PyUnicode_Check(args[0]))
    return PyErr_Format(PyExc_TypeError,
                        "is_contiguous: only `memory_format`, a memory format, is accepted");
  const auto is = [&](const char *name) {
    return PyUnicode_CompareWithASCIIString(args[0], name) == 0;
  };
  if (is("contiguous_format")) return PyBool_FromLong(is_contiguous(t));
  if (is("channels_last")) return PyBool_FromLong(channels_last(t, 4));
  if (is("channels_last_3d")) return PyBool_FromLong(channels_last(t, 5));
  return PyErr_Format(PyExc_ValueError,
                      "is_contiguous: `memory_format` must be contiguous_format, channels_last or "
                      "channels_last_3d, got %U",
                      args[0]);
}
PyObject *data_ptr(PyObject *self, PyObject *) {
  if (!note_address(handle_of(self))) return nullptr;
  return PyLong_FromVoidPtr(handle_of(self)->dl.data);
}
PyObject *storage_offset(PyObject *self, PyObject *) {
  plait_tensor *t = handle_of(self);
  return PyLong_FromLongLong(
      (static_cast<char *>(t->dl.data) - static_cast<char *>(t->storage->data)) /
      itemsize(t->dl.dtype));
}
PyObject *is_floating(PyObject *self, PyObject *) {
  return PyBool_FromLong(plait::is_floating(handle_of(self)->dl.dtype));
}
PyObject *is_complex(PyObject *self, PyObject *) {
  return PyBool_FromLong(handle_of(self)->dl.dtype.code == kDLComplex);
}
PyObject *is_signed(PyObject *self, PyObject *) {
  return PyBool_FromLong(plait::is_signed(handle_of(self)->dl.dtype));
}
PyObject *is_view(PyObject *self, PyObject *) {
  return PyBool_FromLong((handle_of(self)->flags & PLAIT_TENSOR_VIEW) != 0);
}
PyObject *take_item(PyObject *self, PyObject *) { return item(handle_of(self), "item"); }
PyObject *take_list(PyObject *self, PyObject *) { return tolist(handle_of(self)); }
PyObject *complex_number(PyObject *self, PyObject *) { return as_complex(self); }

// Reads `n` sizes that are ints of 64 bits. Their number; -1 for all others, without an exception.
int read_sizes(PyObject *const *from, Py_ssize_t n, int64_t *sizes) {
  if (n > PLAIT_MAX_DIMS) return -1;
  for (Py_ssize_t i = 0; i < n; i++) {
    if (!PyLong_CheckExact(from[i])) return -1;
    int overflow = 0;
    sizes[i] = PyLong_AsLongLongAndOverflow(from[i], &overflow);
    if (overflow) return -1;
  }
  return int(n);
}

// The same of sizes that stand one after the other or in one tuple or list.
int plain_sizes(PyObject *const *args, Py_ssize_t n, int64_t *sizes) {
  if (n == 1 && (PyTuple_Check(args[0]) || PyList_CheckExact(args[0]))) {
    const Items packed(args[0]);
    if (!packed.valid()) return PyErr_Clear(), -1;
    return read_sizes(packed.data(), packed.size(), sizes);
  }
  return n ? read_sizes(args, n, sizes) : -1;
}

// Other arguments than plain sizes, such as a dtype, are left to a function in Python.
PyObject *view(PyObject *self, PyObject *const *args, Py_ssize_t n, PyObject *kwnames) {
  int64_t sizes[PLAIT_MAX_DIMS];
  const int ndim = kwnames || !is_exact(self) ? -1 : plain_sizes(args, n, sizes);
  if (ndim >= 0) {
    plait_tensor *t = call(op_view, {value(handle_of(self)), ints(sizes, ndim)});
    return t ? wrap(t) : nullptr;
  }
  static PyObject *cached = nullptr;  // once found, for the life of the process
  PyObject *other = __atomic_load_n(&cached, __ATOMIC_ACQUIRE);
  if (!other) {
    const Object module(PyImport_ImportModule("plait_core._tensor._views"));
    other = module ? PyObject_GetAttrString(module.get(), "view") : nullptr;
    if (!other) return nullptr;
    __atomic_store_n(&cached, other, __ATOMIC_RELEASE);
  }
  const Py_ssize_t all = n + (kwnames ? PyTuple_GET_SIZE(kwnames) : 0);
  std::vector<PyObject *> with_self{self};
  with_self.insert(with_self.end(), args, args + all);
  return PyObject_Vectorcall(other, with_self.data(), size_t(n) + 1, kwnames);
}

// an alias of `data` of a class derived from Tensor, such as Parameter
PyObject *make_subclass(PyObject *, PyObject *const *args, Py_ssize_t n) {
  if (n < 2 || n > 3 || !PyType_Check(args[0]) ||
      !PyType_IsSubtype(reinterpret_cast<PyTypeObject *>(args[0]), state.tensor_type) ||
      !is_tensor(args[1]))
    return PyErr_Format(
        PyExc_TypeError,
        "_make_subclass: (class derived from Tensor, Tensor, requires_grad=False) is required");
  const int grad = n == 3 ? PyObject_IsTrue(args[2]) : 0;
  if (grad < 0) return nullptr;
  plait_thread *thread = state.runtime->thread();
  plait_tensor *t = nullptr;
  plait_status s = state.runtime->tensor_alias(thread, handle_of(args[1]), &t);
  if (s >= 0 && grad) {
    const plait_engine *e = state.python->engine();
    if (!e) return plait_release(t), nullptr;
    s = e->set_requires_grad(e->ctx, thread, t, 1);
    if (s < 0) plait_release(t);
  }
  return s < 0 ? raise(thread, s) : wrap_as(reinterpret_cast<PyTypeObject *>(args[0]), t);
}

// as_subclass: an object of a derived class with the elements and the history of `self`.
PyObject *as_subclass(PyObject *self, PyObject *type) {
  if (!PyType_Check(type) ||
      !PyType_IsSubtype(reinterpret_cast<PyTypeObject *>(type), state.tensor_type))
    return PyErr_Format(PyExc_TypeError,
                        "as_subclass: `cls` must be a class derived from Tensor, got %R", type);
  const plait_engine *e = role<plait_engine>(state.runtime);
  plait_tensor *from = handle_of(self), *t = nullptr;
  if (e && from->layers >> e->layer & 1) {
    t = call(op_alias, {value(from)});
    if (!t) return nullptr;
  } else {
    plait_thread *thread = state.runtime->thread();
    const plait_status s = state.runtime->tensor_alias(thread, from, &t);
    if (s < 0) return raise(thread, s);
  }
  return wrap_as(reinterpret_cast<PyTypeObject *>(type), t);
}

PyObject *to_bytes(PyObject *self, PyObject *) {
  plait_tensor *t = handle_of(self);
  const OnHost here(t, "_to_bytes");
  if (!here) return nullptr;
  t = here.get();
  plait_tensor *dense = is_contiguous(t) ? (plait_retain(t), t) : call(op_contiguous, {value(t)});
  if (!dense) return nullptr;
  PyObject *out = PyBytes_FromStringAndSize(static_cast<const char *>(dense->dl.data),
                                            Py_ssize_t(numel(dense) * itemsize(dense->dl.dtype)));
  plait_release(dense);
  return out;
}

PyObject *cast_to(PyObject *self, PyObject *dtype) {
  DLDataType d;
  const int done = state.python->dtype(dtype, &d);
  if (done == PLAIT_NOT_CONVERTIBLE)
    PyErr_Format(PyExc_TypeError, "cast: `dtype` must be a dtype, got %R", dtype);
  plait_tensor *t = done == PLAIT_CONVERTED ? cast(handle_of(self), d) : nullptr;
  return t ? wrap(t) : nullptr;
}

// called by code that writes through data_ptr()
PyObject *version_bump(PyObject *self, PyObject *) {
  wrote(handle_of(self));
  Py_RETURN_NONE;
}

}  // namespace

PyMethodDef methods[] = {
    {"size", function(asking<size>), METH_FASTCALL | METH_KEYWORDS,
     "size($self, /, dim=None)\n--\n\nThe shape, or the size of dimension `dim`."
     "\n\nExample:\n"
     "    >>> import plait_core as pc\n"
     "    >>> pc.zeros(2, 3).size(), pc.zeros(2, 3).size(-1)\n"
     "    (plait.Size([2, 3]), 3)"},
    {"stride", function(asking<stride>), METH_FASTCALL | METH_KEYWORDS,
     "stride($self, /, dim=None)\n--\n\nSteps between neighbours, in elements, or that of "
     "dimension `dim`; they may be negative."
     "\n\nExample:\n"
     "    >>> import plait_core as pc\n"
     "    >>> pc.zeros(2, 3).stride(), pc.zeros(2, 3).T.stride()\n"
     "    ((3, 1), (1, 3))"},
    {"numel", asking<count>, METH_NOARGS,
     "numel($self, /)\n--\n\nThe number of elements."
     "\n\nExample:\n"
     "    >>> import plait_core as pc\n"
     "    >>> pc.zeros(2, 3).numel()\n"
     "    6"},
    {"nelement", asking<count>, METH_NOARGS,
     "nelement($self, /)\n--\n\nThe number of elements; `numel` by another name."
     "\n\nExample:\n"
     "    >>> import plait_core as pc\n"
     "    >>> pc.zeros(2, 3).nelement()\n"
     "    6"},
    {"dim", asking<dim>, METH_NOARGS,
     "dim($self, /)\n--\n\nThe number of dimensions."
     "\n\nExample:\n"
     "    >>> import plait_core as pc\n"
     "    >>> pc.zeros(2, 3).dim()\n"
     "    2"},
    {"ndimension", asking<dim>, METH_NOARGS,
     "ndimension($self, /)\n--\n\nThe number of dimensions; `dim` by another name."
     "\n\nExample:\n"
     "    >>> import plait_core as pc\n"
     "    >>> pc.zeros(2, 3).ndimension()\n"
     "    2"},
    {"element_size", asking<element_size>, METH_NOARGS,
     "element_size($self, /)\n--\n\nBytes of one element."
     "\n\nExample:\n"
     "    >>> import plait_core as pc\n"
     "    >>> pc.zeros(2, dtype=pc.int16).element_size()\n"
     "    2"},
    {"is_contiguous", function(asking<contiguous>), METH_FASTCALL | METH_KEYWORDS,
     "is_contiguous($self, /, memory_format=contiguous_format)\n--\n\nWhether the elements lie "
     "without gaps in C order, or in that of another memory format."
     "\n\nExample:\n"
     "    >>> import plait_core as pc\n"
     "    >>> pc.zeros(2, 3).is_contiguous(), pc.zeros(2, 3).T.is_contiguous()\n"
     "    (True, False)"},
    {"data_ptr", asking<data_ptr>, METH_NOARGS,
     "data_ptr($self, /)\n--\n\nThe address of the first element."
     "\n\nExample:\n"
     "    >>> import plait_core as pc\n"
     "    >>> x = pc.arange(4.0)\n"
     "    >>> x[1:].data_ptr() - x.data_ptr()\n"
     "    4"},
    {"storage_offset", asking<storage_offset>, METH_NOARGS,
     "storage_offset($self, /)\n--\n\nElements between the storage's begin and the first one."
     "\n\nExample:\n"
     "    >>> import plait_core as pc\n"
     "    >>> pc.arange(4)[1:].storage_offset()\n"
     "    1"},
    {"is_floating_point", asking<is_floating>, METH_NOARGS,
     "is_floating_point($self, /)\n--\n\nWhether the elements are real floating-point numbers."
     "\n\nExample:\n"
     "    >>> import plait_core as pc\n"
     "    >>> pc.zeros(2).is_floating_point(), pc.tensor([1]).is_floating_point()\n"
     "    (True, False)"},
    {"is_complex", asking<is_complex>, METH_NOARGS,
     "is_complex($self, /)\n--\n\nWhether the elements are complex."
     "\n\nExample:\n"
     "    >>> import plait_core as pc\n"
     "    >>> pc.tensor([1j]).is_complex()\n"
     "    True"},
    {"is_signed", asking<is_signed>, METH_NOARGS,
     "is_signed($self, /)\n--\n\nWhether the elements can be negative."
     "\n\nExample:\n"
     "    >>> import plait_core as pc\n"
     "    >>> pc.zeros(2, dtype=pc.uint8).is_signed()\n"
     "    False"},
    {"_is_view", asking<is_view>, METH_NOARGS,
     "_is_view($self, /)\n--\n\nWhether an operator made this as a view."},
    {"view", function(asking<view>), METH_FASTCALL | METH_KEYWORDS,
     "view($self, /, *shape, size=None, dtype=None)\n--\n\nReturn the elements in another shape, "
     "or the bytes as another dtype, without a copy.\n"
     "\n"
     "The forms are ``view(*shape)``, one -1 of which stands for the size that fits, and\n"
     "``view(dtype)``. A dtype of another size changes the last dimension: int32 seen as int16 "
     "has\n"
     "twice as many elements. No gradient flows through a change of dtype.\n"
     "\n"
     "Raises:\n"
     "    ShapeError: if the number of elements differs, if no strides give the elements in that "
     "order\n"
     "        (for example, of a transposed tensor; `reshape` then copies), or if the bytes of "
     "the\n"
     "        last dimension do not fit the dtype.\n"
     "\n"
     "Example:\n"
     "    >>> import plait_core as pc\n"
     "    >>> pc.arange(6).view(2, -1).tolist()\n"
     "    [[0, 1, 2], [3, 4, 5]]\n"
     "    >>> pc.tensor([1.0, -2.0]).view(pc.int32).tolist()\n"
     "    [1065353216, -1073741824]"},
    {"item", asking<take_item>, METH_NOARGS,
     "item($self, /)\n--\n\nThe only element as a Python number."
     "\n\nExample:\n"
     "    >>> import plait_core as pc\n"
     "    >>> pc.tensor([2.5]).item()\n"
     "    2.5"},
    {"tolist", asking<take_list>, METH_NOARGS,
     "tolist($self, /)\n--\n\nThe elements as nested lists of Python numbers."
     "\n\nExample:\n"
     "    >>> import plait_core as pc\n"
     "    >>> pc.tensor([[1, 2], [3, 4]]).tolist()\n"
     "    [[1, 2], [3, 4]]"},
    {"__complex__", asking<complex_number>, METH_NOARGS, nullptr},
    {"_bump_version", entry<version_bump>, METH_NOARGS,
     "_bump_version($self, /)\n--\n\nTell plait that the elements were written outside of it."},
    {"_cast", entry<cast_to>, METH_O, "_cast($self, dtype, /)\n--\n\nA copy in another dtype."},
    {"_to_bytes", entry<to_bytes>, METH_NOARGS,
     "_to_bytes($self, /)\n--\n\nThe elements in C order as bytes."},
    {"as_subclass", entry<as_subclass>, METH_O,
     "as_subclass($self, cls, /)\n--\n\nThe same elements, with their history, as an instance of "
     "a class derived from Tensor."
     "\n\nExample:\n"
     "    >>> import plait_core as pc\n"
     "    >>> class Image(pc.Tensor):\n"
     "    ...     pass\n"
     "    >>> type(pc.zeros(2, 2).as_subclass(Image)) is Image\n"
     "    True"},
    {"_make_subclass", function(entry<make_subclass>), METH_FASTCALL | METH_STATIC,
     "_make_subclass(cls, data, requires_grad=False, /)\n--\n\nAn instance of cls on the elements "
     "of data, without history."},
    {nullptr, nullptr, 0, nullptr}};

}  // namespace plait::core
