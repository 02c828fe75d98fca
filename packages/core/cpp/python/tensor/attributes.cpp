// Properties of Tensor that need neither operators nor an engine, and a few that are views.
#include <plait/layer.hpp>

#include "tensor/batched.hpp"
#include "tensor/overriding.hpp"

namespace plait::core {
namespace {

PyObject *get_shape(PyObject *self, void *) {
  return size_object(handle_of(self)->dl.shape, handle_of(self)->dl.ndim);
}
PyObject *get_dtype(PyObject *self, void *) {
  return state.python->dtype_object(handle_of(self)->dl.dtype);
}
PyObject *get_device(PyObject *self, void *) {
  return state.python->device_object(handle_of(self)->dl.device);
}
PyObject *get_ndim(PyObject *self, void *) { return PyLong_FromLong(handle_of(self)->dl.ndim); }
PyObject *get_itemsize(PyObject *self, void *) {
  return PyLong_FromLongLong(itemsize(handle_of(self)->dl.dtype));
}
PyObject *get_nbytes(PyObject *self, void *) {
  return size_number(numel(handle_of(self)) * itemsize(handle_of(self)->dl.dtype));
}
PyObject *get_version(PyObject *self, void *) {
  return PyLong_FromUnsignedLongLong(history_version(handle_of(self)));
}
PyObject *get_base(PyObject *self, void *) {
  plait_tensor *t = handle_of(self);
  if (!t->base) Py_RETURN_NONE;
  plait_retain(t->base);
  return wrap(t->base);
}

PyObject *get_t(PyObject *self, void *) {
  plait_tensor *t = handle_of(self);
  if (t->dl.ndim == 0 && !warn("Tensor.T is deprecated on 0-D tensors. It is the tensor itself."))
    return nullptr;
  if (t->dl.ndim != 0 && t->dl.ndim != 2 &&
      !warn("The use of `x.T` on tensors of dimension other than 2 to reverse their shape is "
            "deprecated: x.mT exchanges the last two dimensions, and "
            "x.permute(*range(x.ndim - 1, -1, -1)) reverses all"))
    return nullptr;
  int64_t dims[PLAIT_MAX_DIMS];
  for (int i = 0; i < t->dl.ndim; i++) dims[i] = t->dl.ndim - 1 - i;
  plait_tensor *out = call(op_permute, {value(t), ints(dims, size_t(t->dl.ndim))});
  return out ? wrap(out) : nullptr;
}
PyObject *get_mt(PyObject *self, void *) {
  plait_tensor *t = handle_of(self);
  if (t->dl.ndim < 2)
    return PyErr_Format(PyExc_RuntimeError, "mT: at least 2 dimensions are required, got shape %s",
                        shape_text(t).c_str());
  plait_tensor *out = call(op_transpose, {value(t), value(int64_t(-2)), value(int64_t(-1))});
  return out ? wrap(out) : nullptr;
}

PyObject *get_data(PyObject *self, void *) {
  // the class that a layer watches has the elements
  if (!is_exact(self) && handle_of(self)->layers & state.watching_layer)
    return PyObject_CallMethod(self, "detach", nullptr);
  plait_thread *thread = state.runtime->thread();
  plait_tensor *out = nullptr;
  const plait_status s = state.runtime->tensor_alias(thread, handle_of(self), &out);
  if (s < 0) return raise(thread, s);
  out->flags |= PLAIT_TENSOR_DATA;
  return wrap(out);
}
// p.data = q: the handle gets other bytes; its history, hooks and identity stay
int set_data(PyObject *self, PyObject *o, void *) {
  if (!o || !is_tensor(o)) {
    PyErr_Format(PyExc_TypeError, "data: a Tensor is required, got %s",
                 o ? Py_TYPE(o)->tp_name : "nothing");
    return -1;
  }
  plait_thread *thread = state.runtime->thread();
  const DLDataType dtype = handle_of(o)->dl.dtype;
  const bool counts = dtype.code == kDLInt || dtype.code == kDLUInt || dtype.code == kDLBool;
  const Object requires_grad(counts ? PyObject_GetAttrString(self, "requires_grad") : nullptr);
  if (counts && requires_grad.get() == Py_True) {
    raise(thread, state.runtime->raise(thread, PLAIT_DTYPE_ERROR, "data",
                                       "a tensor that requires grad must have a floating-point or "
                                       "complex dtype; got %s",
                                       plait::name(dtype)));
    return -1;
  }
  const uint64_t others = ~handle_of(self)->layers & ~state.watching_layer;
  if (handle_of(o)->layers & layers_of_bytes & others) {
    raise(thread, state.runtime->raise(thread, PLAIT_ERROR, "data",
                                       "a tensor that all samples of vmap share, or one outside of "
                                       "it, cannot get values that differ between samples"));
    return -1;
  }
  const plait_status s = state.runtime->tensor_repoint(thread, handle_of(self), handle_of(o));
  if (s < 0) raise(thread, s);
  return s < 0 ? -1 : 0;
}

}  // namespace

PyGetSetDef attributes[] = {
    {"shape", asking<get_shape>, nullptr,
     "The sizes of the dimensions, a Size."
     "\n\nExample:\n"
     "    >>> import plait_core as pc\n"
     "    >>> pc.zeros(2, 3).shape\n"
     "    plait.Size([2, 3])",
     nullptr},
    {"dtype", asking<get_dtype>, nullptr,
     "What the elements are."
     "\n\nExample:\n"
     "    >>> import plait_core as pc\n"
     "    >>> pc.tensor([1, 2]).dtype\n"
     "    plait.int64",
     nullptr},
    {"device", asking<get_device>, nullptr,
     "Where the elements are."
     "\n\nExample:\n"
     "    >>> import plait_core as pc\n"
     "    >>> pc.zeros(2).device\n"
     "    device(type='cpu')",
     nullptr},
    {"ndim", asking<get_ndim>, nullptr,
     "The number of dimensions."
     "\n\nExample:\n"
     "    >>> import plait_core as pc\n"
     "    >>> pc.zeros(2, 3).ndim\n"
     "    2",
     nullptr},
    {"itemsize", asking<get_itemsize>, nullptr,
     "Bytes of one element."
     "\n\nExample:\n"
     "    >>> import plait_core as pc\n"
     "    >>> pc.zeros(2, dtype=pc.float64).itemsize\n"
     "    8",
     nullptr},
    {"nbytes", asking<get_nbytes>, nullptr,
     "Bytes of all elements."
     "\n\nExample:\n"
     "    >>> import plait_core as pc\n"
     "    >>> pc.zeros(2, 3).nbytes\n"
     "    24",
     nullptr},
    {"_version", asking<get_version>, nullptr, "How often the storage has been written in place.",
     nullptr},
    {"_base", asking<get_base>, nullptr, "The tensor that this is a view of, or None.", nullptr},
    {"T", asking<get_t>, nullptr,
     "The dimensions in reverse order, a view."
     "\n\nExample:\n"
     "    >>> import plait_core as pc\n"
     "    >>> pc.tensor([[1, 2, 3], [4, 5, 6]]).T.tolist()\n"
     "    [[1, 4], [2, 5], [3, 6]]",
     nullptr},
    {"mT", asking<get_mt>, nullptr,
     "The last two dimensions exchanged, a view."
     "\n\nExample:\n"
     "    >>> import plait_core as pc\n"
     "    >>> pc.zeros(5, 2, 3).mT.shape\n"
     "    plait.Size([5, 3, 2])",
     nullptr},
    {"data", asking<get_data>, asking<set_data>,
     "The same elements without history; assigning re-points the tensor. A backward pass "
     "does not check writes through it: detach() gives what is checked."
     "\n\nExample:\n"
     "    >>> import plait_core as pc\n"
     "    >>> x = pc.zeros(2)\n"
     "    >>> x.data = pc.tensor([1.0, 2.0, 3.0])\n"
     "    >>> x\n"
     "    tensor([1., 2., 3.])",
     nullptr},
    {"__dict__", entry<get_dict>, PyObject_GenericSetDict, nullptr, nullptr},
    {nullptr, nullptr, nullptr, nullptr, nullptr}};

}  // namespace plait::core
