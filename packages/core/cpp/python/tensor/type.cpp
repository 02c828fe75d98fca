// The type object of the Tensor class.
#include <vector>

#include <plait/index.hpp>

#include "tensor/batched.hpp"
#include "tensor/overriding.hpp"

#include <structmember.h>

namespace plait::core {
namespace {

Py_ssize_t length(PyObject *self) {
  plait_tensor *t = handle_of(self);
  if (t->dl.ndim) {
    const Object number(size_number(t->dl.shape[0]));
    return number ? PyNumber_AsSsize_t(number.get(), PyExc_OverflowError) : -1;
  }
  PyErr_SetString(PyExc_TypeError, "len: a 0-d tensor has no length");
  return -1;
}
bool is_int(PyObject *o) { return PyLong_Check(o) || python::is_recorded_size(o); }
// PyTorch's iteration asks about dim and unbind
PyObject *iterate_asking(PyObject *self) {
  const Object dim(PyObject_CallMethod(self, "dim", nullptr));
  const Object parts(dim ? PyObject_CallMethod(self, "unbind", "i", 0) : nullptr);
  return parts ? PyObject_GetIter(parts.get()) : nullptr;
}
PyObject *iterate(PyObject *self) {
  if (!is_plain(self) && is_asked(self) && handle_of(self)->dl.ndim) return iterate_asking(self);
  if (handle_of(self)->dl.ndim) return PySeqIter_New(self);
  return PyErr_Format(PyExc_TypeError, "iter: a 0-d tensor cannot be iterated over");
}
Py_hash_t hash(PyObject *self) {
  const auto p = reinterpret_cast<uintptr_t>(self);
  return Py_hash_t(p >> 4 | p << (8 * sizeof p - 4));
}
int contains(PyObject *self, PyObject *o) {
  Object same(compare(self, o, Py_EQ));
  if (!same) return -1;
  if (same.get() == Py_NotImplemented) {
    PyErr_Format(PyExc_TypeError, "in: a number or a Tensor is required, got %s",
                 Py_TYPE(o)->tp_name);
    return -1;
  }
  Object any(PyObject_CallMethod(same.get(), "any", nullptr));
  return any ? PyObject_IsTrue(any.get()) : -1;
}

plait_tensor *unwrap(PyObject *o) { return handle_of(o); }
const plait_tensor_type table{PLAIT_HEADER(plait_tensor_type), unwrap, wrap,
                              offsetof(TensorObject, handle)};

PyMemberDef members[] = {
    {"__dictoffset__", T_PYSSIZET, offsetof(TensorObject, dict), READONLY, nullptr},
    {"__weaklistoffset__", T_PYSSIZET, offsetof(TensorObject, weakrefs), READONLY, nullptr},
    {nullptr, 0, 0, 0, nullptr}};

void append(std::vector<PyMethodDef> &to, const PyMethodDef *from) {
  for (; from->ml_name; from++) to.push_back(*from);
}
void append(std::vector<PyGetSetDef> &to, const PyGetSetDef *from) {
  for (; from->name; from++) to.push_back(*from);
}

// the method tables of all files, concatenated; they live as long as the class
PyMethodDef *all_methods() {
  static std::vector<PyMethodDef> list;
  append(list, methods);
  append(list, exchange_methods);
  append(list, gradient_methods);
  append(list, storage_methods);
  list.push_back({nullptr, nullptr, 0, nullptr});
  return list.data();
}
PyGetSetDef *all_attributes() {
  static std::vector<PyGetSetDef> list;
  append(list, attributes);
  append(list, gradient_attributes);
  list.push_back({nullptr, nullptr, nullptr, nullptr, nullptr});
  return list.data();
}

template <class F>
PyType_Slot slot(int id, F f) {
  return {id, reinterpret_cast<void *>(f)};
}
const char tensor_doc[] =
    "Tensor(data=(), /)\n--\n\nAn array of numbers of one dtype, on one device.\n\nSee "
    "`plait_core.tensor` "
    "for making one from data."
    "\n\nExample:\n"
    "    >>> import plait_core as pc\n"
    "    >>> x = pc.tensor([[1.0, 2.0], [3.0, 4.0]])\n"
    "    >>> x.shape, x.dtype, (x @ x).sum().item()\n"
    "    (plait.Size([2, 2]), plait.float32, 54.0)";

std::vector<PyType_Slot> slots() {
  const PyNumberMethods &m = number_methods;
  return {slot(Py_tp_new, entry<new_tensor>),
          slot(Py_tp_dealloc, dealloc),
          slot(Py_tp_traverse, traverse),
          slot(Py_tp_clear, clear),
          slot(Py_tp_hash, entry<hash>),
          slot(Py_tp_richcompare, entry<compare>),
          slot(Py_tp_iter, entry<iterate>),
          slot(Py_tp_setattro, entry<set_attribute>),
          slot(Py_tp_methods, all_methods()),
          slot(Py_tp_getset, all_attributes()),
          slot(Py_tp_members, members),
          slot(Py_mp_length, special<length, names::len>),
          slot(Py_mp_subscript, special<subscript, names::getitem>),
          slot(Py_mp_ass_subscript, special<assign_subscript, names::setitem>),
          slot(Py_sq_length, special<length, names::len>),
          slot(Py_sq_item, special<get_item, names::getitem>),
          slot(Py_sq_contains, special<contains, names::contains>),
          slot(Py_nb_add, m.nb_add),
          slot(Py_nb_subtract, m.nb_subtract),
          slot(Py_nb_multiply, m.nb_multiply),
          slot(Py_nb_true_divide, m.nb_true_divide),
          slot(Py_nb_floor_divide, m.nb_floor_divide),
          slot(Py_nb_remainder, m.nb_remainder),
          slot(Py_nb_divmod, m.nb_divmod),
          slot(Py_nb_power, m.nb_power),
          slot(Py_nb_matrix_multiply, m.nb_matrix_multiply),
          slot(Py_nb_and, m.nb_and),
          slot(Py_nb_or, m.nb_or),
          slot(Py_nb_xor, m.nb_xor),
          slot(Py_nb_lshift, m.nb_lshift),
          slot(Py_nb_rshift, m.nb_rshift),
          slot(Py_nb_inplace_add, m.nb_inplace_add),
          slot(Py_nb_inplace_subtract, m.nb_inplace_subtract),
          slot(Py_nb_inplace_multiply, m.nb_inplace_multiply),
          slot(Py_nb_inplace_true_divide, m.nb_inplace_true_divide),
          slot(Py_nb_inplace_floor_divide, m.nb_inplace_floor_divide),
          slot(Py_nb_inplace_remainder, m.nb_inplace_remainder),
          slot(Py_nb_inplace_power, m.nb_inplace_power),
          slot(Py_nb_inplace_and, m.nb_inplace_and),
          slot(Py_nb_inplace_or, m.nb_inplace_or),
          slot(Py_nb_inplace_xor, m.nb_inplace_xor),
          slot(Py_nb_inplace_lshift, m.nb_inplace_lshift),
          slot(Py_nb_inplace_rshift, m.nb_inplace_rshift),
          slot(Py_nb_negative, m.nb_negative),
          slot(Py_nb_positive, m.nb_positive),
          slot(Py_nb_absolute, m.nb_absolute),
          slot(Py_nb_invert, m.nb_invert),
          slot(Py_nb_bool, m.nb_bool),
          slot(Py_nb_int, m.nb_int),
          slot(Py_nb_float, m.nb_float),
          slot(Py_nb_index, m.nb_index),
          slot(Py_bf_getbuffer, buffer_methods.bf_getbuffer),
          slot(Py_bf_releasebuffer, buffer_methods.bf_releasebuffer),
          slot(Py_tp_doc, const_cast<char *>(tensor_doc)),
          {0, nullptr}};
}

}  // namespace

// Tensor(): empty. Tensor(tensor): an alias without history. Tensor(data): a copy in the default
// dtype. Tensor(2, 3) and Tensor(size): uninitialised, as in PyTorch.
PyObject *new_tensor(PyTypeObject *type, PyObject *args, PyObject *kwargs) {
  // a derived class may take further arguments and keywords in its __init__
  const bool own = type == state.tensor_type;
  const Py_ssize_t n = PyTuple_GET_SIZE(args);
  if (own && kwargs && PyDict_GET_SIZE(kwargs))
    return PyErr_Format(PyExc_TypeError, "Tensor: keywords are not accepted; use tensor()");
  plait_thread *thread = state.runtime->thread();
  plait_tensor *t = nullptr;
  plait_status s = PLAIT_OK;
  PyObject *first = n ? PyTuple_GET_ITEM(args, 0) : nullptr;
  if (first && is_tensor(first)) {
    s = state.runtime->tensor_alias(thread, handle_of(first), &t);
  } else if (first && !is_int(first) && Py_TYPE(first) != state.size_type) {
    t = from_data(first, state.python->default_dtype);
    if (!t) return nullptr;
  } else {
    const bool packed = first && !is_int(first);
    PyObject *list = packed ? first : args;
    int64_t shape[PLAIT_MAX_DIMS] = {0};
    const Py_ssize_t ndim = n ? PyTuple_GET_SIZE(list) : 1;
    if (ndim > PLAIT_MAX_DIMS)
      return PyErr_Format(PyExc_ValueError, "Tensor: at most %d sizes are accepted, got %zd",
                          PLAIT_MAX_DIMS, ndim);
    for (Py_ssize_t i = 0; n && i < ndim; i++) {
      const Object size(python::index_of(PyTuple_GET_ITEM(list, i)));
      shape[i] = size ? PyLong_AsLongLong(size.get()) : -1;
      if (shape[i] == -1 && PyErr_Occurred()) return nullptr;
    }
    s = state.runtime->tensor_new(thread, *state.python->default_dtype, int32_t(ndim), shape,
                                  nullptr, {kDLCPU, 0}, &t);
  }
  return s < 0 ? raise(thread, s) : wrap_as(type, t);
}

bool add_tensor(PyObject *module) {
  std::vector<PyType_Slot> list = slots();
  static PyType_Spec spec{"plait_core.Tensor", sizeof(TensorObject), 0,
                          Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE | Py_TPFLAGS_HAVE_GC, nullptr};
  spec.slots = list.data();
  auto *type = PyType_FromSpec(&spec);
  state.tensor_type = reinterpret_cast<PyTypeObject *>(type);
  Object capsule(
      type ? PyCapsule_New(const_cast<plait_tensor_type *>(&table), "plait.tensor", nullptr)
           : nullptr);
  // NumPy's operators return NotImplemented for tensors, whose own operators then run
  Object priority(PyLong_FromLong(1000));
  return capsule && priority && find_subtype_dealloc() &&
         PyObject_SetAttrString(type, "__plait_tensor__", capsule.get()) == 0 &&
         PyObject_SetAttrString(type, "__array_priority__", priority.get()) == 0 &&
         state.python->set_tensor_type(state.tensor_type, &table) == 0 && add_exchange_table() &&
         PyModule_AddObjectRef(module, "Tensor", type) == 0;
}

}  // namespace plait::core
