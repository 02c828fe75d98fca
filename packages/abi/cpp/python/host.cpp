// Role "host": Python's services for engines and kernels that do not link to Python
// (docs/design/0001).
#include <ctime>
#include <new>

#include "binding.hpp"

namespace plait::python {
namespace {

struct Hold {
  plait_object o;
  Release release;
  PyObject *object;
};
Hold *hold_at(Release *r) {
  return reinterpret_cast<Hold *>(reinterpret_cast<char *>(r) - offsetof(Hold, release));
}

void end_hold(Release *r) {
  Hold *h = hold_at(r);
  PyObject *object = h->object;
  std::free(h);
  Py_DECREF(object);
}
void drop_hold(plait_object *o) {
  Hold *h = reinterpret_cast<Hold *>(o);
  if (release_now())
    end_hold(&h->release);
  else
    release_later(&h->release);
}
const plait_type hold_type{PLAIT_HEADER(plait_type), "python.object", drop_hold};

struct Wrapper {
  Release release;
  PyObject *object;
};
// Called while a tensor is freed, perhaps under a lock: the release always goes to the list.
void release_wrapper(void *, void *object) {
  auto *w = static_cast<Wrapper *>(std::malloc(sizeof(Wrapper)));
  if (!w) return;
  w->object = static_cast<PyObject *>(object);
  w->release.run = [](Release *r) {
    auto *own = reinterpret_cast<Wrapper *>(r);
    PyObject *o = own->object;
    std::free(own);
    Py_DECREF(o);
  };
  release_later(&w->release);
}

plait_object *hold_object(void *, void *object) { return hold(static_cast<PyObject *>(object)); }
void *object_of(void *, plait_object *o) { return held(o); }

PyObject *to_python(plait_tensor *t) {
  if (!t) Py_RETURN_NONE;
  plait_retain(t);
  return wrap(t);
}

// one returned object into a new reference, NULL for None
bool from_python(PyObject *o, const char *name, plait_tensor **out) {
  *out = nullptr;
  if (o == Py_None) return true;
  plait_tensor *t = unwrap(o);
  if (!t) {
    if (!PyErr_Occurred())
      PyErr_Format(PyExc_TypeError, "%s: tensors or None are required as results, got %s", name,
                   Py_TYPE(o)->tp_name);
    return false;
  }
  plait_retain(t);
  *out = t;
  return true;
}

bool take_results(PyObject *result, const char *name, plait_tensor **out, uint32_t n_out) {
  if (n_out == 1 && !PyTuple_Check(result) && !PyList_Check(result))
    return from_python(result, name, out);
  if (n_out == 0 && result == Py_None) return true;
  if (n_out > 1 && result == Py_None) return true;  // None stands for all results
  Object list(sequence_of(result, "a tensor, None, or a sequence of them is required"));
  if (!list) return false;
  const Py_ssize_t n = PySequence_Fast_GET_SIZE(list.get());
  for (Py_ssize_t i = n_out; i < n;
       i++)  // more than were asked for: the others must be None, as in PyTorch
    if (PySequence_Fast_GET_ITEM(list.get(), i) != Py_None) {
      PyErr_Format(PyExc_RuntimeError, "%s: %u results are required, got %zd", name,
                   unsigned(n_out), n);
      return false;
    }
  if (n < Py_ssize_t(n_out)) {
    PyErr_Format(PyExc_RuntimeError, "%s: %u results are required, got %zd", name, unsigned(n_out),
                 n);
    return false;
  }
  for (uint32_t i = 0; i < n_out; i++)
    if (!from_python(PySequence_Fast_GET_ITEM(list.get(), Py_ssize_t(i)), name, out + i))
      return false;
  return true;
}

plait_status apply(void *, plait_thread *thread, plait_object *callable, plait_tensor *const *in,
                   uint32_t n_in, plait_tensor **out, uint32_t n_out) {
  if (interpreter_gone())
    return thread->runtime->raise(thread, PLAIT_ERROR, "python", "the interpreter has ended");
  Gil gil;
  drain();
  PyObject *function = held(callable);
  if (!function)
    return thread->runtime->raise(thread, PLAIT_TYPE_ERROR, "python",
                                  "`callable` isn't a Python object");
  for (uint32_t i = 0; i < n_out; i++) out[i] = nullptr;
  Object args(PyTuple_New(n_in));
  for (uint32_t i = 0; args && i < n_in; i++) {
    PyObject *o = to_python(in[i]);
    if (!o) return keep(thread);
    PyTuple_SET_ITEM(args.get(), i, o);
  }
  PyObject *match = nullptr;
  if (args) wait_for_lock([&] { match = PyObject_Call(function, args.get(), nullptr); });
  Object result(match);
  Object name(result ? PyObject_GetAttrString(function, "__name__") : nullptr);
  if (result && !name) PyErr_Clear();
  const char *text = name && PyUnicode_Check(name.get()) ? PyUnicode_AsUTF8(name.get())
                                                         : Py_TYPE(function)->tp_name;
  if (result && take_results(result.get(), text, out, n_out)) return PLAIT_OK;
  for (uint32_t i = 0; i < n_out; i++) {
    plait_release(out[i]);
    out[i] = nullptr;
  }
  return keep(thread);
}

// Call sites.

void site(void *, plait_site *out) {
  *out = {nullptr, 0};
  if (interpreter_gone() || !PyGILState_GetThisThreadState())
    return;  // no Python frames on this thread
  if (PyGILState_Check()) return find_user_code(out);
  Gil gil;
  const PendingError pending;
  find_user_code(out);
}

void describe(void *, const plait_site *s, char *text, uint64_t size) {
  if (size) text[0] = 0;
  if (!s->code || interpreter_gone()) return;
  Gil gil;
  PyObject *o = held(s->code);
  if (!o || !PyCode_Check(o)) return;
  auto *code = reinterpret_cast<PyCodeObject *>(o);
  const char *file = PyUnicode_AsUTF8(code->co_filename), *name = PyUnicode_AsUTF8(code->co_name);
  if (!file || !name) PyErr_Clear();
  snprintf(text, size, "%s:%d in %s", file ? file : "?", PyCode_Addr2Line(code, int(s->offset)),
           name ? name : "?");
}

// Signals and the global interpreter lock.

// Signals are handled on the main thread only. An exception of a handler becomes the thread's
// error.
int interrupted(void *) {
  static thread_local int64_t last = 0;  // a test takes the GIL, so there is one every 5 ms at most
  if (interpreter_gone() || PyThread_get_thread_ident() != state.main_thread) return 0;
  timespec now;
  clock_gettime(CLOCK_MONOTONIC_COARSE, &now);
  const int64_t ms = int64_t(now.tv_sec) * 1000 + now.tv_nsec / 1000000;
  if (ms - last < 5) return 0;
  last = ms;
  Gil gil;
  if (PyErr_CheckSignals() == 0) return 0;
  keep(state.runtime->thread());
  return 1;
}

void unlocked(void *, void (*fn)(void *), void *arg) {
  if (interpreter_gone() || !PyGILState_Check()) {
    fn(arg);
    return;
  }
  const Unlocked others;
  fn(arg);
}

const plait_host host{PLAIT_HEADER(plait_host),
                      "python",
                      nullptr,
                      hold_object,
                      object_of,
                      apply,
                      site,
                      describe,
                      interrupted,
                      unlocked,
                      release_wrapper};
const plait_plugin plugin{PLAIT_HEADER(plait_plugin), "python", PY_VERSION, 0, nullptr, nullptr};

}  // namespace

plait_object *hold(PyObject *object) {
  auto *h = static_cast<Hold *>(std::malloc(sizeof(Hold)));
  if (!h) throw std::bad_alloc();
  h->o = {1, &hold_type};
  h->release = {nullptr, end_hold};
  h->object = new_reference(object);
  return &h->o;
}

PyObject *held(plait_object *o) {
  return o && o->type == &hold_type ? reinterpret_cast<Hold *>(o)->object : nullptr;
}

bool add_host(PyObject *) {
  plait_thread *thread = state.runtime->thread();
  uint64_t undo = 0;
  const plait_status s = state.runtime->provide(thread, "host", 0, &host.h, &plugin, &undo);
  if (s < 0) raise(thread, s);
  return s >= 0;
}

}  // namespace plait::python
