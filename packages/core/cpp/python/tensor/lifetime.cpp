// The lifetime of Tensor wrappers: identity, recycling, resurrection (docs/design/0001).
#include "tensor/tensor.hpp"

#include <structmember.h>

namespace plait::core {
namespace {

using plait::python::HostGuard;
using plait::python::HostLock;

#ifndef Py_GIL_DISABLED
// Wrappers of plain tensors are recycled: an allocation by the garbage collector costs as much as a
// small operator.
constexpr int most_recycled = 256;
TensorObject *recycled[most_recycled];
int n_recycled = 0;
#endif

TensorObject *object_of(PyObject *o) { return reinterpret_cast<TensorObject *>(o); }

TensorObject *allocate() {
  TensorObject *o = nullptr;
#ifndef Py_GIL_DISABLED
  if (n_recycled) {
    o = recycled[--n_recycled];
    PyObject_Init(reinterpret_cast<PyObject *>(o), state.tensor_type);
    return o;
  }
#endif
  o = PyObject_GC_New(TensorObject, state.tensor_type);  // untracked until it has a __dict__
  if (o) {
    o->dict = o->weakrefs = nullptr;
    o->weak = false;
    may_be_owned(reinterpret_cast<PyObject *>(o));
  }
  return o;
}

bool is_shared(const plait_tensor *t) { return __atomic_load_n(&t->o.refs, __ATOMIC_ACQUIRE) > 1; }
// A wrapper of a class, or with a __dict__: it carries what the handle does not.
bool has_state(const TensorObject *o) {
  return !is_exact(reinterpret_cast<PyObject *>(const_cast<TensorObject *>(o))) ||
         (o->dict && PyDict_GET_SIZE(o->dict));
}

// The garbage collector tracks a wrapper from the time on when there is something to visit. Without
// a global lock it tracks all from the start: two threads could begin at the same time.
#ifdef Py_GIL_DISABLED
constexpr bool all_tracked = true;
#else
constexpr bool all_tracked = false;
#endif

// Takes the wrapper back from its handle: the two references between them change owners, no count
// changes.
PyObject *take_back(TensorObject *w, plait_tensor *t) {
  __atomic_fetch_and(&t->flags, ~uint64_t(PLAIT_TENSOR_OWNS_WRAPPER), __ATOMIC_RELAXED);
  w->weak = false;
  PyObject_GC_Track(w);
  return reinterpret_cast<PyObject *>(w);
}

// Resurrects a wrapper with state whose count is 0 while its handle lives on: the handle owns it
// from now on. Weak references are cleared, as through them code could reach a wrapper whose handle
// may be freed on another thread.
bool resurrect(TensorObject *o) {
  plait_tensor *t = o->handle;
  auto *self = reinterpret_cast<PyObject *>(o);
  if (o->weak || !t || !is_shared(t) || !has_state(o)) return false;
  if (o->weakrefs) PyObject_ClearWeakRefs(self);
  if (PyObject_GC_IsTracked(self)) PyObject_GC_UnTrack(self);
  {
    const HostGuard guard(wrapper_lock(t));
    // a callback of a weak reference, or another thread, may have made another wrapper
    if (t->slot[1] != o || !is_shared(t)) return false;
    Py_SET_REFCNT(self, 1);
    o->weak = true;
    __atomic_fetch_or(&t->flags, uint64_t(PLAIT_TENSOR_OWNS_WRAPPER), __ATOMIC_RELAXED);
  }
  plait_release(t);
  return true;
}

// The wrapper is being freed: the handle does not return it any more.
void leave_handle(PyObject *self, plait_tensor *t) {
  if (!is_shared(t)) {
    if (t->slot[1] == self) t->slot[1] = nullptr;
    return;
  }
  const HostGuard guard(wrapper_lock(t));
  if (t->slot[1] == self) t->slot[1] = nullptr;
}

// What to do about slot[1] of a handle.
enum class Known { none, wrapper, dying };
Known look_at_slot(plait_tensor *t) {
  auto *w = static_cast<TensorObject *>(t->slot[1]);
  if (!w) return Known::none;
  if (__atomic_load_n(&t->flags, __ATOMIC_RELAXED) & PLAIT_TENSOR_OWNS_WRAPPER)
    return take_back(w, t), Known::wrapper;
  if (!is_owned_now(reinterpret_cast<PyObject *>(w))) return Known::dying;
  plait_release(t);  // the wrapper has a reference of its own
  return Known::wrapper;
}

#ifdef Py_GIL_DISABLED
// Another thread frees the wrapper of a handle that lives on, and may resurrect it.
void wait_for_other_thread() {
  const timespec pause{0, 20000};
  PyThreadState *saved = PyEval_SaveThread();
  nanosleep(&pause, nullptr);
  plait::python::wait_for_lock([saved] { PyEval_RestoreThread(saved); });
}
constexpr int most_waits = 200;  // a callback of a weak reference may be what asks for the wrapper

// The living wrapper of a handle (taking the reference over), else nullptr: then `fresh`, if there
// is one, became the wrapper.
PyObject *exchange_wrapper(plait_tensor *t, TensorObject *fresh) {
  for (int waits = 0;; waits++) {
    {
      const HostGuard guard(wrapper_lock(t));
      void *before = t->slot[1];
      const Known known = look_at_slot(t);
      if (known == Known::wrapper) return static_cast<PyObject *>(before);
      const bool wait = known == Known::dying && waits < most_waits &&
                        has_state(static_cast<TensorObject *>(before));
      if (!wait) {
        if (fresh) t->slot[1] = fresh;
        return nullptr;
      }
    }
    wait_for_other_thread();
  }
}

PyObject *living_wrapper(plait_tensor *t) {
  // no other thread could make one
  if (!is_shared(t) && !t->slot[1]) return nullptr;
  return exchange_wrapper(t, nullptr);
}
// Makes it the wrapper of its handle, unless another thread was faster.
PyObject *settle(TensorObject *o) {
  plait_tensor *t = o->handle;
  auto *self = reinterpret_cast<PyObject *>(o);
  PyObject_GC_Track(self);
  if (!is_shared(t)) return t->slot[1] = o, self;
  PyObject *faster = exchange_wrapper(t, o);
  if (!faster) return self;
  o->handle = nullptr;
  Py_DECREF(self);
  return faster;
}
#else
PyObject *living_wrapper(plait_tensor *t) {
  auto *w = static_cast<PyObject *>(t->slot[1]);
  return w && look_at_slot(t) == Known::wrapper ? w : nullptr;
}
PyObject *settle(TensorObject *o) {
  o->handle->slot[1] = o;
  return reinterpret_cast<PyObject *>(o);
}
#endif

// The handle was freed and released its wrapper: code that still runs on the wrapper sees an empty
// tensor.
void replace_handle(TensorObject *o) {
  plait_thread *thread = state.runtime->thread();
  const int64_t none = 0;
  o->handle = nullptr;
  o->weak = false;
  if (state.runtime->tensor_new(thread, dtype::float32, 1, &none, nullptr, {kDLCPU, 0},
                                &o->handle) < 0)
    Py_FatalError("plait_core: out of memory for an empty tensor");
}

void clear_slots(PyObject *self) {  // the __slots__ of derived classes
  for (PyTypeObject *t = Py_TYPE(self); t && t != state.tensor_type; t = t->tp_base) {
    if (!PyType_HasFeature(t, Py_TPFLAGS_HEAPTYPE) || !t->tp_members) continue;
    for (PyMemberDef *m = t->tp_members; m->name; m++) {
      if (m->type != T_OBJECT_EX || (m->flags & READONLY)) continue;
      auto **at = reinterpret_cast<PyObject **>(reinterpret_cast<char *>(self) + m->offset);
      Py_CLEAR(*at);
    }
  }
}

// tp_dealloc of classes derived in Python. CPython's own function would clear the instance before
// it calls the base class.
void subclass_dealloc(PyObject *self) {
  TensorObject *o = object_of(self);
  PyTypeObject *type = Py_TYPE(self);
  if (resurrect(o)) return;
  if (o->weak) replace_handle(o);
  if (!PyObject_GC_IsTracked(self)) PyObject_GC_Track(self);
  if (type->tp_finalize && PyObject_CallFinalizerFromDealloc(self) < 0) return;
  if (type->tp_del) {
    type->tp_del(self);
    if (Py_REFCNT(self) > 0) return;
  }
  if (PyObject_GC_IsTracked(self)) PyObject_GC_UnTrack(self);
  clear_slots(self);
  dealloc(self);
}

// Installs it in a class when an instance is made, so that no metaclass and no __init_subclass__ is
// needed.
void adopt_class(PyTypeObject *type) {
  for (; type && type != state.tensor_type; type = type->tp_base)
    if (__atomic_load_n(&type->tp_dealloc, __ATOMIC_RELAXED) == state.subtype_dealloc)
      __atomic_store_n(&type->tp_dealloc, &subclass_dealloc, __ATOMIC_RELAXED);
}

// The bit of the layer that wants to see calls on instances of a class, or 0.
uint64_t layers_of(PyTypeObject *type) {
  Object attribute(PyObject_GetAttr(reinterpret_cast<PyObject *>(type), state.watched_attribute));
  if (!attribute) PyErr_Clear();
  return attribute && attribute.get() != state.unwatched_value ? state.watching_layer : 0;
}

#ifdef Py_GIL_DISABLED
struct alignas(64) WrapperLock {
  HostLock lock;
};
WrapperLock wrapper_locks[64];
#else
HostLock no_lock;
#endif

}  // namespace

#ifdef Py_GIL_DISABLED
HostLock &wrapper_lock(const plait_tensor *t) {
  return wrapper_locks[reinterpret_cast<uintptr_t>(t) / sizeof *t % 64].lock;
}
#else
HostLock &wrapper_lock(const plait_tensor *) { return no_lock; }
#endif

PyObject *wrap(plait_tensor *t) {
  if (PyObject *known = living_wrapper(t)) return known;
  if (__builtin_expect(is_box(t), 0)) return wrap_box(t);
  TensorObject *o = allocate();
  if (!o) {
    plait_release(t);
    return nullptr;
  }
  o->handle = t;
  return settle(o);
}

PyObject *wrap_as(PyTypeObject *type, plait_tensor *t) {
  if (type == state.tensor_type) return wrap(t);
  adopt_class(type);
  PyObject *self = type->tp_alloc(type, 0);
  if (!self) {
    plait_release(t);
    return nullptr;
  }
  may_be_owned(self);
  object_of(self)->handle = t;
  {
    const HostGuard guard(wrapper_lock(t));
    t->slot[1] = self;
  }
  if (state.watched_attribute) t->layers |= layers_of(type);
  return self;
}

void dealloc(PyObject *self) {
  TensorObject *o = object_of(self);
  PyTypeObject *type = Py_TYPE(self);
  const bool plain = type == state.tensor_type;
  if (plain) {
    if (o->dict && resurrect(o)) return;
    if (o->weak) replace_handle(o);
  }
  plait_tensor *t = o->handle;
  if (t) leave_handle(self, t);  // before anything runs that could ask for it
  // a recycled wrapper must not be tracked, also if the collector has cleared its __dict__
  if (PyObject_GC_IsTracked(self)) PyObject_GC_UnTrack(self);
  if (o->weakrefs) PyObject_ClearWeakRefs(self);
  Py_CLEAR(o->dict);
  o->handle = nullptr;
#ifndef Py_GIL_DISABLED
  if (plain && n_recycled < most_recycled)
    recycled[n_recycled++] = o;
  else
#endif
    type->tp_free(self);
  Py_DECREF(type);
  plait_release(t);
}

// While C++ shares the handle, the collector must not clear the wrapper's state, as it may be
// needed again. While a call runs without the GIL, the handle may become shared during a
// collection.
bool shared(const TensorObject *o) {
  return o->handle && !o->weak &&
         (__atomic_load_n(state.python->unlocked, __ATOMIC_ACQUIRE) != 0 ||
          __atomic_load_n(&o->handle->o.refs, __ATOMIC_ACQUIRE) > 1);
}

int traverse(PyObject *self, visitproc visit, void *arg) {
  Py_VISIT(Py_TYPE(self));
  const TensorObject *o = object_of(self);
  if (shared(o)) return 0;
  Py_VISIT(o->dict);
  const auto look = *state.python->traverse;
  return look && o->handle && !o->weak ? look(o->handle, visit, arg) : 0;
}

int clear(PyObject *self) {
  TensorObject *o = object_of(self);
  if (shared(o)) return 0;
  Py_CLEAR(o->dict);
  const auto untie = *state.python->untie;
  if (untie && o->handle && !o->weak) untie(o->handle);
  return 0;
}

int set_attribute(PyObject *self, PyObject *name, PyObject *value) {
  const int done = PyObject_GenericSetAttr(self, name, value);
  if (!all_tracked && object_of(self)->dict && !PyObject_GC_IsTracked(self))
    PyObject_GC_Track(self);
  return done;
}

PyObject *get_dict(PyObject *self, void *) {
  PyObject *dict = PyObject_GenericGetDict(self, nullptr);
  if (!all_tracked && dict && !PyObject_GC_IsTracked(self)) PyObject_GC_Track(self);
  return dict;
}

bool find_subtype_dealloc() {
  static PyType_Slot nothing[] = {{0, nullptr}};
  static PyType_Spec spec{"plait_core._Probe", sizeof(PyObject), 0,
                          Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE, nothing};
  Object probe(PyType_FromSpec(&spec));
  if (probe) state.subtype_dealloc = reinterpret_cast<PyTypeObject *>(probe.get())->tp_dealloc;
  return bool(probe);
}

}  // namespace plait::core
