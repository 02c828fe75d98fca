// Stream and Event: the streams and events of devices as Python objects. The runtime waits without
// the GIL.
#include <vector>

#include "binding.hpp"

namespace plait::python {
namespace {

PyTypeObject *stream_class, *event_class;

struct Entered {  // a `with` block that was entered
  unsigned long thread;
  plait_stream *previous;  // owned; nullptr: the default stream
};
struct StreamObject {
  PyObject_HEAD DLDevice device;
  plait_stream *stream;  // owned; nullptr: the default stream
  std::vector<Entered> *entered;  // created by the first `with`
};
struct EventObject {
  PyObject_HEAD DLDevice device;
  plait_device_event *event;  // owned; nullptr on the CPU, where all work is done at once
};
StreamObject *as_stream(PyObject *o) { return reinterpret_cast<StreamObject *>(o); }
EventObject *as_event(PyObject *o) { return reinterpret_cast<EventObject *>(o); }

const plait_runtime &runtime() { return *state.runtime; }
std::string text_of(DLDevice d) { return device_text(state.runtime, d); }

PyObject *none_or_raise(plait_thread *thread, plait_status s) {
  return s < 0 ? raise(thread, s) : new_reference(Py_None);
}
PyObject *bool_or_raise(plait_thread *thread, plait_status s, int32_t done) {
  return s < 0 ? raise(thread, s) : PyBool_FromLong(done);
}
PyObject *native_number(const void *native) {
  return PyLong_FromVoidPtr(const_cast<void *>(native));
}

bool is_of(PyObject *o, PyTypeObject *type, const char *caller, const char *argument,
           const char *name) {
  if (PyObject_TypeCheck(o, type)) return true;
  PyErr_Format(PyExc_TypeError, "%s: `%s` must be %s, got %s", caller, argument, name,
               Py_TYPE(o)->tp_name);
  return false;
}
bool is_stream(PyObject *o, const char *caller) {
  return is_of(o, stream_class, caller, "stream", "a Stream");
}
bool is_event(PyObject *o, const char *caller) {
  return is_of(o, event_class, caller, "event", "an Event");
}

// Makes an object of one of the two classes, or of a class derived from it.
template <class Block>
Block *new_object(PyTypeObject *type, DLDevice device) {
  auto *o = reinterpret_cast<Block *>(type->tp_alloc(type, 0));
  if (o) o->device = device;
  return o;
}

// Streams.

PyObject *stream_object(PyTypeObject *type, DLDevice device, plait_stream *stream) {  // steals
  auto *o = new_object<StreamObject>(type, device);
  if (o)
    o->stream = stream;
  else
    plait_release(stream);
  return reinterpret_cast<PyObject *>(o);
}

PyObject *stream_make(PyTypeObject *type, PyObject *args, PyObject *kwargs) {
  PyObject *device = Py_None;
  int priority = 0;
  static const char *names[] = {"device", "priority", nullptr};
  if (!PyArg_ParseTupleAndKeywords(args, kwargs, "|Oi:Stream", const_cast<char **>(names), &device,
                                   &priority))
    return nullptr;
  DLDevice d;
  if (!accelerator_from(device, "Stream", &d)) return nullptr;
  plait_thread *thread = runtime().thread();
  plait_stream *stream = nullptr;
  const plait_status s = runtime().stream_new(thread, d, priority, &stream);
  return s < 0 ? raise(thread, s) : stream_object(type, d, stream);
}

void stream_dealloc(PyObject *self) {
  StreamObject *o = as_stream(self);
  PyTypeObject *type = Py_TYPE(self);
  for (const Entered &each : o->entered ? *o->entered : std::vector<Entered>())
    plait_release(each.previous);
  delete o->entered;
  plait_release(o->stream);
  type->tp_free(self);
  Py_DECREF(type);
}

PyObject *stream_query(PyObject *self, PyObject *) {
  plait_thread *thread = runtime().thread();
  int32_t done = 1;
  const plait_status s =
      runtime().stream_query(thread, as_stream(self)->device, as_stream(self)->stream, &done);
  return bool_or_raise(thread, s, done);
}

PyObject *stream_synchronize(PyObject *self, PyObject *) {
  plait_thread *thread = runtime().thread();
  const plait_status s =
      runtime().stream_synchronize(thread, as_stream(self)->device, as_stream(self)->stream);
  return none_or_raise(thread, s);
}

PyObject *wait(const StreamObject *stream, const EventObject *event) {
  plait_thread *thread = runtime().thread();
  const plait_status s =
      runtime().stream_wait(thread, stream->device, stream->stream, event->event);
  return none_or_raise(thread, s);
}
PyObject *stream_wait_event(PyObject *self, PyObject *event) {
  return is_event(event, "wait_event") ? wait(as_stream(self), as_event(event)) : nullptr;
}

PyObject *stream_wait_stream(PyObject *self, PyObject *other) {
  if (!is_stream(other, "wait_stream")) return nullptr;
  const StreamObject *before = as_stream(other), *after = as_stream(self);
  plait_thread *thread = runtime().thread();
  const plait_status s =
      wait_between(thread, before->device, before->stream, after->device, after->stream);
  return none_or_raise(thread, s);
}

bool record(const EventObject *event, DLDevice device, plait_stream *stream, const char *caller) {
  if (!same(event->device, device)) {
    PyErr_Format(PyExc_ValueError, "%s: the event is of %s, the stream of %s", caller,
                 text_of(event->device).c_str(), text_of(device).c_str());
    return false;
  }
  plait_thread *thread = runtime().thread();
  const plait_status s = runtime().event_record(thread, event->event, stream);
  return s >= 0 || raise(thread, s);
}

PyObject *event_object(PyTypeObject *type, DLDevice, uint64_t flags);

PyObject *stream_record_event(PyObject *self, PyObject *args, PyObject *kwargs) {
  PyObject *argument = Py_None;
  static const char *names[] = {"event", nullptr};
  if (!PyArg_ParseTupleAndKeywords(args, kwargs, "|O:record_event", const_cast<char **>(names),
                                   &argument))
    return nullptr;
  const StreamObject *o = as_stream(self);
  if (argument != Py_None && !is_event(argument, "record_event")) return nullptr;
  Object event(argument == Py_None ? event_object(event_class, o->device, 0)
                                   : new_reference(argument));
  if (!event || !record(as_event(event.get()), o->device, o->stream, "record_event"))
    return nullptr;
  return event.release();
}

PyObject *wrap(PyObject *, PyObject *args) {
  PyObject *device;
  unsigned long long handle;
  DLDevice d;
  if (!PyArg_ParseTuple(args, "OK:wrap_stream", &device, &handle)) return nullptr;
  if (!accelerator_from(device, "wrap_stream", &d)) return nullptr;
  plait_stream *stream = nullptr;
  plait_thread *thread = runtime().thread();
  if (handle) {
    const plait_status s =
        runtime().stream_wrap(thread, d, reinterpret_cast<void *>(uintptr_t(handle)), &stream);
    if (s < 0) return raise(thread, s);
  }
  return stream_object(stream_class, d, stream);
}

PyObject *make_current(DLDevice device, plait_stream *stream) {
  plait_thread *thread = runtime().thread();
  plait_stream *previous = nullptr;
  const plait_status s = runtime().set_stream(thread, device, stream, &previous);
  plait_release(previous);
  return none_or_raise(thread, s);
}

PyObject *stream_enter(PyObject *self, PyObject *) {
  StreamObject *o = as_stream(self);
  if (!o->entered) o->entered = new std::vector<Entered>;
  o->entered->reserve(o->entered->size() + 1);
  plait_thread *thread = runtime().thread();
  plait_stream *previous = nullptr;
  const plait_status s = runtime().set_stream(thread, o->device, o->stream, &previous);
  if (s < 0) return raise(thread, s);
  o->entered->push_back({PyThread_get_thread_ident(), previous});
  return new_reference(self);
}

PyObject *stream_exit(PyObject *self, PyObject *) {
  StreamObject *o = as_stream(self);
  const unsigned long here = PyThread_get_thread_ident();
  for (size_t i = o->entered ? o->entered->size() : 0; i-- > 0;) {
    const Entered each = (*o->entered)[i];
    if (each.thread != here) continue;
    o->entered->erase(o->entered->begin() + ptrdiff_t(i));
    PyObject *done = make_current(o->device, each.previous);
    plait_release(each.previous);
    return done;
  }
  return PyErr_Format(PyExc_RuntimeError, "Stream: __exit__ was called without __enter__");
}

const void *native_of(const StreamObject *o) { return o->stream ? o->stream->native : nullptr; }

PyObject *stream_device(PyObject *self, void *) { return device_object(as_stream(self)->device); }
PyObject *stream_device_index(PyObject *self, void *) {
  return PyLong_FromLong(as_stream(self)->device.device_id);
}
PyObject *stream_native(PyObject *self, void *) {
  return native_number(native_of(as_stream(self)));
}
PyObject *stream_priority(PyObject *self, void *) {
  return PyLong_FromLong(as_stream(self)->stream ? as_stream(self)->stream->priority : 0);
}

PyObject *stream_repr(PyObject *self) {
  const StreamObject *o = as_stream(self);
  if (!o->stream)
    return PyUnicode_FromFormat("<Stream: the default one of %s>", text_of(o->device).c_str());
  return PyUnicode_FromFormat("<Stream of %s, native handle %p>", text_of(o->device).c_str(),
                              native_of(o));
}

// Two objects are equal if they have the same stream of the runtime, or of the device.
PyObject *stream_compare(PyObject *a, PyObject *b, int op) {
  if (!PyObject_TypeCheck(b, stream_class) || (op != Py_EQ && op != Py_NE))
    Py_RETURN_NOTIMPLEMENTED;
  const StreamObject *x = as_stream(a), *y = as_stream(b);
  const bool equal =
      same(x->device, y->device) &&
      (x->stream == y->stream || (x->stream && y->stream && native_of(x) == native_of(y)));
  return PyBool_FromLong(equal == (op == Py_EQ));
}
Py_hash_t stream_hash(PyObject *self) {
  const StreamObject *o = as_stream(self);
  const auto native = Py_hash_t(reinterpret_cast<uintptr_t>(native_of(o)) >> 4);
  const Py_hash_t h = native * 31 + Py_hash_t(o->device.device_type) * 4096 + o->device.device_id;
  return h == -1 ? -2 : h;
}

// Events.

PyObject *event_of(PyTypeObject *type, DLDevice device, plait_device_event *event) {  // steals
  auto *o = new_object<EventObject>(type, device);
  if (o)
    o->event = event;
  else
    plait_release(event);
  return reinterpret_cast<PyObject *>(o);
}
PyObject *event_object(PyTypeObject *type, DLDevice device, uint64_t flags) {
  plait_thread *thread = runtime().thread();
  plait_device_event *event = nullptr;
  const plait_status s = runtime().event_new(thread, device, flags, &event);
  return s < 0 ? raise(thread, s) : event_of(type, device, event);
}

PyObject *event_make(PyTypeObject *type, PyObject *args, PyObject *kwargs) {
  PyObject *device = Py_None;
  int timed = 0, shared = 0;
  static const char *names[] = {"device", "enable_timing", "interprocess", nullptr};
  if (!PyArg_ParseTupleAndKeywords(args, kwargs, "|Opp:Event", const_cast<char **>(names), &device,
                                   &timed, &shared))
    return nullptr;
  DLDevice d;
  if (!accelerator_from(device, "Event", &d)) return nullptr;
  return event_object(type, d,
                      uint64_t(timed ? PLAIT_EVENT_TIMED : 0) | (shared ? PLAIT_EVENT_SHARED : 0));
}

void event_dealloc(PyObject *self) {
  PyTypeObject *type = Py_TYPE(self);
  plait_release(as_event(self)->event);
  type->tp_free(self);
  Py_DECREF(type);
}

// The stream that an argument of a method of Event names: the current one of the event's device if
// it is None.
bool stream_argument(PyObject *self, PyObject *args, PyObject *kwargs, const char *caller,
                     const char *format, DLDevice *device, plait_stream **stream) {
  PyObject *argument = Py_None;
  static const char *names[] = {"stream", nullptr};
  if (!PyArg_ParseTupleAndKeywords(args, kwargs, format, const_cast<char **>(names), &argument))
    return false;
  if (argument != Py_None && !is_stream(argument, caller)) return false;
  *device = argument == Py_None ? as_event(self)->device : as_stream(argument)->device;
  *stream = argument == Py_None ? runtime().stream(runtime().thread(), *device)
                                : as_stream(argument)->stream;
  return true;
}

PyObject *event_record(PyObject *self, PyObject *args, PyObject *kwargs) {
  DLDevice device;
  plait_stream *stream;
  if (!stream_argument(self, args, kwargs, "record", "|O:record", &device, &stream) ||
      !record(as_event(self), device, stream, "record"))
    return nullptr;
  Py_RETURN_NONE;
}

PyObject *event_wait(PyObject *self, PyObject *args, PyObject *kwargs) {
  DLDevice device;
  plait_stream *stream;
  if (!stream_argument(self, args, kwargs, "wait", "|O:wait", &device, &stream)) return nullptr;
  plait_thread *thread = runtime().thread();
  const plait_status s = runtime().stream_wait(thread, device, stream, as_event(self)->event);
  return none_or_raise(thread, s);
}

PyObject *event_query(PyObject *self, PyObject *) {
  plait_thread *thread = runtime().thread();
  int32_t done = 1;
  const plait_status s = runtime().event_query(thread, as_event(self)->event, &done);
  return bool_or_raise(thread, s, done);
}

PyObject *event_synchronize(PyObject *self, PyObject *) {
  plait_thread *thread = runtime().thread();
  const plait_status s = runtime().event_wait(thread, as_event(self)->event);
  return none_or_raise(thread, s);
}

PyObject *event_elapsed(PyObject *self, PyObject *end) {
  if (!is_of(end, event_class, "elapsed_time", "end_event", "an Event")) return nullptr;
  plait_device_event *from = as_event(self)->event, *to = as_event(end)->event;
  if (!from || !to)
    return PyErr_Format(
        PyExc_NotImplementedError,
        "elapsed_time: events of an accelerator are required; work on the CPU is done when a call "
        "returns, so that time.perf_counter() measures it");
  plait_thread *thread = runtime().thread();
  double milliseconds = 0;
  const plait_status s = runtime().event_elapsed(thread, from, to, &milliseconds);
  return s < 0 ? raise(thread, s) : PyFloat_FromDouble(milliseconds);
}

PyObject *event_device(PyObject *self, void *) { return device_object(as_event(self)->device); }
PyObject *event_native(PyObject *self, void *) {
  return native_number(as_event(self)->event ? as_event(self)->event->native : nullptr);
}
PyObject *event_repr(PyObject *self) {
  return PyUnicode_FromFormat("<Event of %s>", text_of(as_event(self)->device).c_str());
}

// Functions of the module.

PyObject *current(PyObject *, PyObject *device) {
  DLDevice d;
  if (!accelerator_from(device, "current_stream", &d)) return nullptr;
  plait_stream *stream = runtime().stream(runtime().thread(), d);
  if (stream) plait_retain(stream);
  return stream_object(stream_class, d, stream);
}

PyObject *set_current(PyObject *, PyObject *stream) {
  if (!is_stream(stream, "set_stream")) return nullptr;
  return make_current(as_stream(stream)->device, as_stream(stream)->stream);
}

PyObject *synchronize(PyObject *, PyObject *device) {
  DLDevice d;
  if (!accelerator_from(device, "synchronize", &d)) return nullptr;
  plait_thread *thread = runtime().thread();
  const plait_status s = runtime().synchronize(thread, d);
  return none_or_raise(thread, s);
}

PyObject *record_use(PyObject *, PyObject *args) {
  PyObject *tensor, *stream;
  if (!PyArg_ParseTuple(args, "OO:record_use", &tensor, &stream) ||
      !is_stream(stream, "record_stream"))
    return nullptr;
  plait_tensor *t = unwrap(tensor);
  if (!t)
    return PyErr_Occurred()
               ? nullptr
               : PyErr_Format(PyExc_TypeError, "record_stream: a Tensor is required, got %s",
                              Py_TYPE(tensor)->tp_name);
  const StreamObject *o = as_stream(stream);
  if (!same(o->device, t->dl.device))
    return PyErr_Format(PyExc_ValueError,
                        "record_stream: the tensor is on %s, `stream` is one of %s",
                        text_of(t->dl.device).c_str(), text_of(o->device).c_str());
  runtime().record_use(t->storage, o->stream);
  Py_RETURN_NONE;
}

// Tables.

PyMethodDef stream_methods[] = {
    {"query", entry<stream_query>, METH_NOARGS,
     "query($self, /)\n--\n\nWhether all work in the stream is done."
     "\n\nExample:\n"
     "    >>> import plait_core as pc\n"
     "    >>> stream = pc.Stream()\n"
     "    >>> stream.synchronize()\n"
     "    >>> stream.query()\n"
     "    True"},
    {"synchronize", entry<stream_synchronize>, METH_NOARGS,
     "synchronize($self, /)\n--\n\nWait until all work in the stream is done; errors of calls that "
     "returned before are raised here."
     "\n\nExample:\n"
     "    >>> import plait_core as pc\n"
     "    >>> pc.Stream().synchronize()"},
    {"wait_event", entry<stream_wait_event>, METH_O,
     "wait_event($self, event, /)\n--\n\nLet later work in the stream begin when the event is "
     "reached. The host does not wait, unless the event is of another type of device or the stream "
     "is the CPU's."
     "\n\nRaises:\n"
     "    TypeError: if `event` is no Event."
     "\n\nExample:\n"
     "    >>> import plait_core as pc\n"
     "    >>> event = pc.Stream().record_event()\n"
     "    >>> pc.Stream().wait_event(event)"},
    {"wait_stream", entry<stream_wait_stream>, METH_O,
     "wait_stream($self, stream, /)\n--\n\nLet later work in this stream begin when the work that "
     "is in the other one now is done."
     "\n\nRaises:\n"
     "    TypeError: if `stream` is no Stream."
     "\n\nExample:\n"
     "    >>> import plait_core as pc\n"
     "    >>> loading, computing = pc.Stream(), pc.Stream()\n"
     "    >>> computing.wait_stream(loading)"},
    {"record_event", function(entry<stream_record_event>), METH_VARARGS | METH_KEYWORDS,
     "record_event($self, event=None)\n--\n\nPut an event behind the work in the stream, and "
     "return "
     "it; None makes a new one."
     "\n\nRaises:\n"
     "    ValueError: if the event is of another device."
     "\n\nExample:\n"
     "    >>> import plait_core as pc\n"
     "    >>> event = pc.Stream().record_event()\n"
     "    >>> event.synchronize()\n"
     "    >>> event.query()\n"
     "    True"},
    {"__enter__", entry<stream_enter>, METH_NOARGS, nullptr},
    {"__exit__", entry<stream_exit>, METH_VARARGS, nullptr},
    {nullptr, nullptr, 0, nullptr}};
PyGetSetDef stream_getters[] = {
    {"device", entry<stream_device>, nullptr, "the device that the stream belongs to", nullptr},
    {"device_index", entry<stream_device_index>, nullptr, "the number of that device", nullptr},
    {"stream_id", entry<stream_native>, nullptr,
     "a number that no other stream of the device has; 0 is the default stream", nullptr},
    {"cuda_stream", entry<stream_native>, nullptr,
     "the handle of the device as a number, under PyTorch's name", nullptr},
    {"native_handle", entry<stream_native>, nullptr,
     "the address of the device's own object, such as a cudaStream_t; 0 is the default stream",
     nullptr},
    {"priority", entry<stream_priority>, nullptr, "lower numbers are served first", nullptr},
    {nullptr, nullptr, nullptr, nullptr, nullptr}};
PyType_Slot stream_slots[] = {
    {Py_tp_new, reinterpret_cast<void *>(entry<stream_make>)},
    {Py_tp_dealloc, reinterpret_cast<void *>(stream_dealloc)},
    {Py_tp_repr, reinterpret_cast<void *>(entry<stream_repr>)},
    {Py_tp_hash, reinterpret_cast<void *>(entry<stream_hash>)},
    {Py_tp_richcompare, reinterpret_cast<void *>(entry<stream_compare>)},
    {Py_tp_methods, stream_methods},
    {Py_tp_getset, stream_getters},
    {Py_tp_doc,
     const_cast<char *>(
         "Stream(device=None, priority=0)\n--\n\nA queue of work on a device, which runs in order; "
         "work in different streams may run at the same time."
         "\n\nIn a ``with`` block it is the current stream of this thread. On the CPU, and on a "
         "device without streams, it is the device's only stream."
         "\n\nArgs:\n"
         "    device: where it runs; None is the current accelerator, or the CPU if there is "
         "none.\n"
         "    priority: lower numbers are served first; `accelerator.priorities` has the limits."
         "\n\nRaises:\n"
         "    ValueError: if the device has no such priority.\n"
         "    NotImplementedError: if no component for the device is installed."
         "\n\nExample:\n"
         "    >>> import plait_core as pc\n"
         "    >>> stream = pc.Stream()\n"
         "    >>> with stream:\n"
         "    ...     x = pc.ones(2) + 1\n"
         "    >>> stream.synchronize()\n"
         "    >>> x\n"
         "    tensor([2., 2.])")},
    {0, nullptr}};
PyType_Spec stream_spec{"plait_abi.Stream", sizeof(StreamObject), 0,
                        Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE, stream_slots};

PyMethodDef event_methods[] = {
    {"record", function(entry<event_record>), METH_VARARGS | METH_KEYWORDS,
     "record($self, stream=None)\n--\n\nPut the event behind the work in a stream of its device; "
     "None is the current one. An event that was recorded before is moved."
     "\n\nRaises:\n"
     "    ValueError: if the stream is of another device."
     "\n\nExample:\n"
     "    >>> import plait_core as pc\n"
     "    >>> event = pc.Event()\n"
     "    >>> event.record()\n"
     "    >>> event.synchronize()"},
    {"wait", function(entry<event_wait>), METH_VARARGS | METH_KEYWORDS,
     "wait($self, stream=None)\n--\n\nLet later work in a stream begin when the event is reached; "
     "None is the current stream of the event's device."
     "\n\nExample:\n"
     "    >>> import plait_core as pc\n"
     "    >>> event = pc.Event()\n"
     "    >>> event.record()\n"
     "    >>> event.wait()"},
    {"query", entry<event_query>, METH_NOARGS,
     "query($self, /)\n--\n\nWhether the event was reached; True if it was never recorded."
     "\n\nExample:\n"
     "    >>> import plait_core as pc\n"
     "    >>> pc.Event().query()\n"
     "    True"},
    {"synchronize", entry<event_synchronize>, METH_NOARGS,
     "synchronize($self, /)\n--\n\nWait until the event is reached; errors of calls before it are "
     "raised here."
     "\n\nExample:\n"
     "    >>> import plait_core as pc\n"
     "    >>> pc.Event().synchronize()"},
    {"elapsed_time", entry<event_elapsed>, METH_O,
     "elapsed_time($self, end_event, /)\n--\n\nThe milliseconds between this event and another; "
     "both are waited for."
     "\n\nRaises:\n"
     "    ValueError: if they are not recorded events of one device with ``enable_timing``.\n"
     "    NotImplementedError: if the device has no clock; the CPU has none."
     "\n\nExample:\n"
     "    >>> import plait_core as pc\n"
     "    >>> if pc.accelerator.is_available():\n"
     "    ...     start, end = pc.Event(enable_timing=True), pc.Event(enable_timing=True)\n"
     "    ...     start.record()\n"
     "    ...     end.record()\n"
     "    ...     assert start.elapsed_time(end) >= 0"},
    {nullptr, nullptr, 0, nullptr}};
PyGetSetDef event_getters[] = {
    {"device", entry<event_device>, nullptr, "the device that the event belongs to", nullptr},
    {"cuda_event", entry<event_native>, nullptr,
     "the handle of the device as a number, under PyTorch's name", nullptr},
    {"event_id", entry<event_native>, nullptr,
     "the address of the device's own object, such as a cudaEvent_t", nullptr},
    {nullptr, nullptr, nullptr, nullptr, nullptr}};
PyType_Slot event_slots[] = {
    {Py_tp_new, reinterpret_cast<void *>(entry<event_make>)},
    {Py_tp_dealloc, reinterpret_cast<void *>(event_dealloc)},
    {Py_tp_repr, reinterpret_cast<void *>(entry<event_repr>)},
    {Py_tp_methods, event_methods},
    {Py_tp_getset, event_getters},
    {Py_tp_doc,
     const_cast<char *>(
         "Event(device=None, enable_timing=False, interprocess=False)\n--\n\nA point in a stream: "
         "it is reached when "
         "all work before it is done."
         "\n\nOn the CPU work is done when a call returns, so that its events are always reached."
         "\n\nArgs:\n"
         "    device: the device of its streams; None is the current accelerator, or the CPU if "
         "there "
         "is none.\n"
         "    enable_timing: whether `elapsed_time` will be asked for.\n"
         "    interprocess: whether other processes may open it; never with `enable_timing`."
         "\n\nRaises:\n"
         "    NotImplementedError: if no component for the device is installed, or the device has "
         "no events for other processes."
         "\n\nExample:\n"
         "    >>> import plait_core as pc\n"
         "    >>> event = pc.Event()\n"
         "    >>> event.record()\n"
         "    >>> event.synchronize()\n"
         "    >>> event.query()\n"
         "    True")},
    {0, nullptr}};
PyType_Spec event_spec{"plait_abi.Event", sizeof(EventObject), 0,
                       Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE, event_slots};

PyMethodDef functions[] = {
    {"current_stream", entry<current>, METH_O,
     "current_stream(device, /)\n--\n\nThe stream in which this thread's calls on a device run."},
    {"wrap_stream", entry<wrap>, METH_VARARGS,
     "wrap_stream(device, handle, /)\n--\n\nA stream that another library created, by its handle "
     "as "
     "a number; 0 is the default one."},
    {"set_stream", entry<set_current>, METH_O,
     "set_stream(stream, /)\n--\n\nMake a stream the current one of this thread."},
    {"synchronize", entry<synchronize>, METH_O,
     "synchronize(device, /)\n--\n\nWait for all streams of a device."},
    {"record_use", entry<record_use>, METH_VARARGS,
     "record_use(tensor, stream, /)\n--\n\nSay that work in the stream uses the tensor's memory."},
    {nullptr, nullptr, 0, nullptr}};

}  // namespace

bool stream_from(PyObject *o, const char *caller, DLDevice *device, plait_stream **stream) {
  if (!is_stream(o, caller)) return false;
  *device = as_stream(o)->device;
  *stream = as_stream(o)->stream;
  return true;
}
plait_device_event *event_from(PyObject *o, const char *caller) {
  if (!is_event(o, caller)) return nullptr;
  if (!as_event(o)->event)
    PyErr_Format(PyExc_ValueError, "%s: an event of an accelerator is required", caller);
  return as_event(o)->event;
}
PyObject *event_object(DLDevice device, plait_device_event *event) {
  return event_of(event_class, device, event);
}

bool add_streams(PyObject *module) {
  stream_class = reinterpret_cast<PyTypeObject *>(PyType_FromSpec(&stream_spec));
  event_class = reinterpret_cast<PyTypeObject *>(PyType_FromSpec(&event_spec));
  return stream_class && event_class &&
         PyModule_AddObjectRef(module, "Stream", reinterpret_cast<PyObject *>(stream_class)) == 0 &&
         PyModule_AddObjectRef(module, "Event", reinterpret_cast<PyObject *>(event_class)) == 0 &&
         PyModule_AddFunctions(module, functions) == 0;
}

}  // namespace plait::python
