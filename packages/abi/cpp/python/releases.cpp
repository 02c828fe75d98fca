// Python references that C++ drops on any thread: a lock-free list, emptied where the GIL is held.
#include "binding.hpp"

namespace plait::python {

Release *waiting = nullptr;

namespace {

int exiting = 0;  // atomic; set when the interpreter begins to end

int drain_pending(void *) {
  drain_waiting();
  return 0;
}
PyObject *begin_exit(PyObject *, PyObject *) {
  drain_waiting();
  // here and not at the end of the process, where libraries of drivers end before the plug-ins
  state.runtime->quiesce();
  drain_waiting();
  __atomic_store_n(&exiting, 1, __ATOMIC_RELEASE);
  Py_RETURN_NONE;
}
PyMethodDef begin_exit_def{
    "_begin_exit", entry<begin_exit>, METH_NOARGS,
    "Plug-ins stop. From here on what C++ drops is leaked: there may be no interpreter to ask."};

}  // namespace

bool interpreter_gone() {
  return __atomic_load_n(&exiting, __ATOMIC_ACQUIRE) || !Py_IsInitialized();
}

bool release_now() { return !interpreter_gone() && PyGILState_Check(); }

void release_later(Release *r) {
  if (interpreter_gone()) return;
  Release *head = __atomic_load_n(&waiting, __ATOMIC_RELAXED);
  do {
    r->next = head;
  } while (
      !__atomic_compare_exchange_n(&waiting, &head, r, true, __ATOMIC_RELEASE, __ATOMIC_RELAXED));
  // if the queue of pending calls is full, the next operator call drains the list
  if (!head) Py_AddPendingCall(drain_pending, nullptr);
}

void drain_waiting() {
  Release *r = __atomic_exchange_n(&waiting, static_cast<Release *>(nullptr), __ATOMIC_ACQUIRE);
  if (!r) return;
  const PendingError pending;
  Release *ordered = nullptr;  // the list is last in, first out
  while (r) {
    Release *next = r->next;
    r->next = ordered;
    ordered = r;
    r = next;
  }
  while (ordered) {
    Release *next = ordered->next;
    ordered->run(ordered);
    ordered = next;
  }
}

bool add_releases(PyObject *module) {
  Object function(PyCFunction_New(&begin_exit_def, nullptr));
  Object atexit(PyImport_ImportModule("atexit"));
  if (!function || !atexit) return false;
  Object done(PyObject_CallMethod(atexit.get(), "register", "O", function.get()));
  return done && PyModule_AddObjectRef(module, "_begin_exit", function.get()) == 0;
}

}  // namespace plait::python
