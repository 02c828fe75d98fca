// Tensor types have a capsule as an attribute of the class; what a class supports is looked up
// once.
#include "binding.hpp"

namespace plait::python {
namespace {

// Direct-mapped; an entry is valid while the class's version tag is the same.
#ifdef Py_GIL_DISABLED
// Each thread has its own, as others would read an entry while it changes.
constexpr size_t room = 64;
thread_local TypeFacts cache[room];
thread_local uint64_t seen;     // what `forgotten` was when this thread's cache was emptied
uint64_t forgotten = 0;
#else
constexpr size_t room = 256;
TypeFacts cache[room];
#endif

unsigned version_of(PyTypeObject *type) {
  return __atomic_load_n(&type->tp_version_tag, __ATOMIC_RELAXED);
}

bool still_valid(const TypeFacts &f, PyTypeObject *type) {
#if PY_VERSION_HEX < 0x030B0000
  if (!PyType_HasFeature(type, Py_TPFLAGS_VALID_VERSION_TAG)) return false;
#endif
  return f.type == type && f.version != 0 && f.version == version_of(type);
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

bool look_up(PyTypeObject *type, TypeFacts &to) {
#ifdef Py_GIL_DISABLED
  // Another thread may change the class meanwhile: then the tag of now is not valid any more.
  PyUnstable_Type_AssignVersionTag(type);
  const unsigned before = version_of(type);
#endif
  TypeFacts f{type, 0, 0, false, nullptr};
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
#ifdef Py_GIL_DISABLED
  f.version = before;
#else
  f.version = version_of(type);
#endif
  to = f;
  return true;
}

}  // namespace

#ifdef Py_GIL_DISABLED
void forget_facts() { __atomic_add_fetch(&forgotten, 1, __ATOMIC_RELEASE); }
#else
void forget_facts() {
  for (TypeFacts &f : cache) f.type = nullptr;
}
#endif

const TypeFacts *facts(PyTypeObject *type) {
#ifdef Py_GIL_DISABLED
  const uint64_t now = __atomic_load_n(&forgotten, __ATOMIC_ACQUIRE);
  if (__builtin_expect(std::exchange(seen, now) != now, 0))
    for (TypeFacts &each : cache) each.type = nullptr;
#endif
  TypeFacts &f = cache[(reinterpret_cast<uintptr_t>(type) >> 5) % room];
  if (__builtin_expect(still_valid(f, type), 1)) return &f;
  return look_up(type, f) ? &f : nullptr;
}

int set_tensor_type(PyTypeObject *type, const plait_tensor_type *tensor) {
  if (state.tensor_type) return 0;
  Py_INCREF(type);
  state.tensor = tensor;
  state.tensor_type = type;
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
