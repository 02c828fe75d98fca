// Tensor types have a capsule as an attribute of the class; what a class supports is looked up
// once.
#include "binding.hpp"

namespace plait::python {
namespace {

constexpr size_t room =
    256;  // direct-mapped; an entry is valid while the class's version tag is the same
TypeFacts cache[room];

bool still_valid(const TypeFacts &f, PyTypeObject *type) {
#if PY_VERSION_HEX < 0x030B0000
  if (!PyType_HasFeature(type, Py_TPFLAGS_VALID_VERSION_TAG)) return false;
#endif
  return f.type == type && f.version != 0 && f.version == type->tp_version_tag;
}

// 1: found, 0: not found, -1: error
int has(PyTypeObject *type, PyObject *name, PyObject **out) {
  PyObject *o = PyObject_GetAttr(reinterpret_cast<PyObject *>(type), name);
  if (!o) {
    if (!PyErr_ExceptionMatches(PyExc_AttributeError)) return -1;
    PyErr_Clear();
    return 0;
  }
  if (out)
    *out = o;
  else
    Py_DECREF(o);
  return 1;
}

const plait_tensor_type *table_in(PyObject *capsule, PyTypeObject *type) {
  auto *t = static_cast<const plait_tensor_type *>(PyCapsule_GetPointer(capsule, "plait.tensor"));
  if (t && (t->h.major != PLAIT_ABI_MAJOR || t->h.minor > PLAIT_ABI_MINOR)) {
    PyErr_Format(PyExc_ImportError, "%s.__plait_tensor__: version %d.%d is required, found %d.%d",
                 type->tp_name, PLAIT_ABI_MAJOR, PLAIT_ABI_MINOR, t->h.major, t->h.minor);
    return nullptr;
  }
  return t;
}

bool look_up(PyTypeObject *type, TypeFacts &f) {
  f = {type, 0, 0, false, nullptr};
  PyObject *capsule = nullptr;
  const int tensor = has(type, state.str_tensor, &capsule);
  if (tensor < 0) return false;
  if (tensor) {
    Object owned(capsule);
    f.tensor = table_in(capsule, type);
    if (!f.tensor) return false;
  }
  const int function = has(type, state.str_function, nullptr);
  const int asks = function ? function * asks_by_function : asks_by(type);
  const int array = tensor ? 0 : has(type, state.str_dlpack, nullptr);
  if (asks < 0 || array < 0) return false;
  f.asks = asks;
  f.array = array;
  f.version = type->tp_version_tag;
  return true;
}

}  // namespace

void forget_facts() {
  for (TypeFacts &f : cache) f.type = nullptr;
}

const TypeFacts *facts(PyTypeObject *type) {
  TypeFacts &f = cache[(reinterpret_cast<uintptr_t>(type) >> 5) % room];
  if (__builtin_expect(still_valid(f, type), 1)) return &f;
  return look_up(type, f) ? &f : nullptr;
}

int set_tensor_type(PyTypeObject *type, const plait_tensor_type *tensor) {
  if (state.tensor_type) return 0;
  Py_INCREF(type);
  state.tensor_type = type;
  state.tensor = tensor;
  return 0;
}

plait_tensor *unwrap(PyObject *o) {
  if (Py_TYPE(o) == state.tensor_type) return handle_of(o, state.tensor);
  const TypeFacts *f = facts(Py_TYPE(o));
  return f && f->tensor ? handle_of(o, f->tensor) : nullptr;
}

PyObject *wrap(plait_tensor *t) { return state.tensor ? state.tensor->wrap(t) : wrap_handle(t); }

int overrides(PyObject *o) {
  if (Py_TYPE(o) == state.tensor_type) return 0;
  const TypeFacts *f = facts(Py_TYPE(o));
  if (!f) return -1;
  return f->asks == asks_by_protocol && protocol_is_off() ? 0 : f->asks;
}

}  // namespace plait::python
