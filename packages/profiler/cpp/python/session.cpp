// Session: a time in which events are recorded; then a buffer of its rows.
#include <algorithm>
#include <vector>

#include "binding.hpp"

namespace plait::profiler::python {
namespace {

struct SessionObject {
  PyObject_HEAD plait_profiler_session *session;
  bool runs;
};
SessionObject *as_session(PyObject *o) { return reinterpret_cast<SessionObject *>(o); }

PyObject *session_new(PyTypeObject *type, PyObject *args, PyObject *) {
  unsigned long long kinds, capacity;
  int stacks;
  if (!PyArg_ParseTuple(args, "KKp", &kinds, &capacity, &stacks)) return nullptr;
  auto *self = as_session(type->tp_alloc(type, 0));
  if (!self) return nullptr;
  const plait_status status = plait_profiler_start(kinds, capacity, stacks, &self->session);
  self->runs = status >= 0;
  if (self->runs) return reinterpret_cast<PyObject *>(self);
  Py_DECREF(self);
  return host->raise(host->runtime->thread(), status);
}

plait_status stop_session(SessionObject *self) {
  if (!self->runs) return PLAIT_OK;
  self->runs = false;
  plait_status status;
  Py_BEGIN_ALLOW_THREADS;  // it waits for devices
  status = plait_profiler_stop(self->session);
  Py_END_ALLOW_THREADS;
  return status;
}

void session_dealloc(PyObject *o) {
  SessionObject *self = as_session(o);
  if (self->session) {
    if (stop_session(self) < 0) host->runtime->clear(host->runtime->thread());
    plait_profiler_free(self->session);
  }
  PyTypeObject *type = Py_TYPE(o);
  type->tp_free(o);
  Py_DECREF(type);
}

PyObject *session_stop(PyObject *o, PyObject *) {
  const plait_status status = stop_session(as_session(o));
  if (status < 0) return host->raise(host->runtime->thread(), status);
  Py_RETURN_NONE;
}

bool is_stopped(PyObject *o) {
  if (!as_session(o)->runs) return true;
  PyErr_SetString(PyExc_RuntimeError, "a session that still runs has no rows");
  return false;
}

int session_buffer(PyObject *o, Py_buffer *view, int flags) {
  if (!is_stopped(o)) {
    view->obj = nullptr;
    return -1;
  }
  uint64_t n = 0;
  const void *rows = plait_profiler_rows(as_session(o)->session, &n);
  static char nothing;
  return PyBuffer_FillInfo(view, o, n ? const_cast<void *>(rows) : &nothing, Py_ssize_t(n * 64), 0,
                           flags);
}

PyObject *session_times(PyObject *o, PyObject *) {
  if (!is_stopped(o)) return nullptr;
  uint64_t begin, end;
  plait_profiler_times(as_session(o)->session, &begin, &end);
  return Py_BuildValue("KK", static_cast<unsigned long long>(begin),
                       static_cast<unsigned long long>(end));
}

template <uint64_t (*list)(const plait_profiler_session *, uint64_t (*)[2], uint64_t)>
PyObject *session_pairs(PyObject *o, PyObject *) {
  if (!is_stopped(o)) return nullptr;
  std::vector<uint64_t> pairs(2 * list(as_session(o)->session, nullptr, 0));
  list(as_session(o)->session, reinterpret_cast<uint64_t (*)[2]>(pairs.data()), pairs.size() / 2);
  Object result(PyList_New(Py_ssize_t(pairs.size() / 2)));
  for (size_t i = 0; result && i < pairs.size() / 2; i++) {
    PyObject *pair = Py_BuildValue("KK", static_cast<unsigned long long>(pairs[2 * i]),
                                   static_cast<unsigned long long>(pairs[2 * i + 1]));
    if (!pair) return nullptr;
    PyList_SET_ITEM(result.get(), Py_ssize_t(i), pair);
  }
  return result.release();
}

PyMethodDef session_methods[] = {
    {"stop", entry<session_stop>, METH_NOARGS, "End the recording."},
    {"times", entry<session_times>, METH_NOARGS, "When it began and ended."},
    {"dropped", entry<session_pairs<plait_profiler_dropped>>, METH_NOARGS,
     "(kind, number) of events that had no room."},
    {"reserved", entry<session_pairs<plait_profiler_reserved>>, METH_NOARGS,
     "(time, bytes) that the CPU's allocator had from the system."},
    {nullptr, nullptr, 0, nullptr}};

PyType_Slot session_slots[] = {
    {Py_tp_new, reinterpret_cast<void *>(entry<session_new>)},
    {Py_tp_dealloc, reinterpret_cast<void *>(session_dealloc)},
    {Py_tp_methods, session_methods},
    {Py_bf_getbuffer, reinterpret_cast<void *>(session_buffer)},
    {Py_tp_doc, const_cast<char *>("Session(kinds, capacity, stacks): recording, which begins.")},
    {0, nullptr}};
PyType_Spec session_spec = {"plait_profiler._observer.Session", sizeof(SessionObject), 0,
                            Py_TPFLAGS_DEFAULT, session_slots};

}  // namespace

bool add_session_type(PyObject *module) { return add_type(module, &session_spec) != nullptr; }

}  // namespace plait::profiler::python
