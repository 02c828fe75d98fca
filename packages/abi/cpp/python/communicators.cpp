// The role "communicator": groups of processes, from any provider, and collectives that run.
#include <plait/layer.hpp>

#include "binding.hpp"

#include <structmember.h>

#include <cstddef>
#include <memory>
#include <vector>

namespace plait::python {
namespace {

PyTypeObject *communicator_type, *work_type;

// The tensors of a collective, also arrays of other libraries; counted while it runs.
class Tensors {
 public:
  Tensors() = default;
  Tensors(const Tensors &) = delete;
  Tensors(Tensors &&other) noexcept : list_(std::exchange(other.list_, {})) {}
  Tensors &operator=(Tensors &&other) noexcept {
    std::swap(list_, other.list_);
    return *this;
  }
  ~Tensors() {
    for (plait_tensor *t : list_) plait_release(t);
  }
  bool take(PyObject *tuple) {
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(tuple); i++) {
      PyObject *o = PyTuple_GET_ITEM(tuple, i);
      list_.push_back(nullptr);
      plait_tensor *t = unwrap(o);
      if (t)
        plait_retain(t);
      else if (!PyErr_Occurred())
        t = import_array(state.runtime->thread(), o);
      if (!t) return false;
      list_.back() = t;
      plait_thread *thread = state.runtime->thread();
      if (const plait_status s = make_waiting_calls(thread, t); s < 0)
        return raise(thread, s), false;
    }
    return true;
  }
  void touched() const {
    for (const plait_tensor *t : list_) state.runtime->touched(t->storage);
  }
  plait_tensor *const *data() const { return list_.data(); }
  uint32_t size() const { return uint32_t(list_.size()); }

 private:
  std::vector<plait_tensor *> list_;
};

struct Running {  // a collective, and what it reads and writes
  Ref<plait_work> work;
  Tensors in, out;
};

struct CommunicatorObject {
  PyObject_HEAD plait_communicator *communicator;
  unsigned rank, size;
};
struct WorkObject {
  PyObject_HEAD Running *running;
};

// Running collectives whose Work was freed: they hold their tensors until they end.
std::vector<Running *> dropped;
HostLock dropped_lock;
void keep_until_done(Running *r) {
  const HostGuard guard(dropped_lock);
  dropped.push_back(r);
}
bool is_done(plait_work *w, plait_status &s) {
  int32_t done = 0;
  s = w->table->query(w->table->ctx, state.runtime->thread(), w, &done);
  return done || s < 0;
}
void sweep_dropped() {
  std::vector<Running *> all;
  {
    const HostGuard guard(dropped_lock);
    all.swap(dropped);
  }
  for (Running *each : all) {
    plait_status s = PLAIT_OK;
    if (is_done(each->work.get(), s))
      delete each;
    else
      keep_until_done(each);
    if (s < 0) state.runtime->clear(state.runtime->thread());
  }
}

Ref<plait_communicator> communicator_in(PyObject *self) {
  plait_communicator *c = reinterpret_cast<CommunicatorObject *>(self)->communicator;
  if (!c) PyErr_SetString(PyExc_ValueError, "a member that has not left its group is required");
  return Ref<plait_communicator>::share(c);  // another thread may close it
}

PyObject *new_communicator(plait_communicator *steals) {
  auto *o =
      reinterpret_cast<CommunicatorObject *>(communicator_type->tp_alloc(communicator_type, 0));
  if (!o) {
    plait_release(steals);
    return nullptr;
  }
  o->communicator = steals;
  o->rank = steals->rank;
  o->size = steals->size;
  return reinterpret_cast<PyObject *>(o);
}

PyObject *failed(plait_status s) {
  // an exception of a handler of signals may be there already
  return PyErr_Occurred() ? nullptr : raise(state.runtime->thread(), s);
}

PyObject *open(PyObject *, PyObject *args) {
  const char *provider = nullptr, *where = nullptr;
  PyObject *on = nullptr;
  unsigned rank = 0, size = 0;
  double timeout = 0;
  if (!PyArg_ParseTuple(args, "sOsIId", &provider, &on, &where, &rank, &size, &timeout))
    return nullptr;
  DLDevice device;
  const int converted = device_from(on, &device);
  if (converted == PLAIT_CONVERSION_FAILED) return nullptr;
  if (converted != PLAIT_CONVERTED)
    return PyErr_Format(PyExc_TypeError, "open: `device` must be a device or its name, got %R", on);
  const auto *table = reinterpret_cast<const plait_collectives *>(
      state.runtime->provider("communicator", provider, int32_t(device.device_type)));
  if (!table)
    return PyErr_Format(PyExc_ValueError,
                        "open: no communicator named %s is provided for %R; load its plug-in first",
                        provider, on);
  plait_thread *thread = state.runtime->thread();
  plait_communicator *c = nullptr;
  plait_status s = PLAIT_OK;
  {
    const Unlocked others;
    s = table->open(table->ctx, thread, where, rank, size, timeout, &c);
  }
  return s == PLAIT_OK ? new_communicator(c) : failed(s);
}

// start(kind, inputs, outputs, reduction, peer, tag, timeout, asynchronous): Work | None
PyObject *start(PyObject *self, PyObject *args) {
  const auto c = communicator_in(self);
  plait_collective request{};
  request.size = sizeof request;
  PyObject *inputs = nullptr, *outputs = nullptr;
  int asynchronous = 0;
  long long tag = 0;
  if (!c || !PyArg_ParseTuple(args, "IO!O!IILdp", &request.kind, &PyTuple_Type, &inputs,
                              &PyTuple_Type, &outputs, &request.reduction, &request.peer, &tag,
                              &request.timeout, &asynchronous))
    return nullptr;
  sweep_dropped();
  auto running = std::make_unique<Running>();
  if (!running->in.take(inputs) || !running->out.take(outputs)) return nullptr;
  request.tag = tag;
  request.in = running->in.data();
  request.n_in = running->in.size();
  request.out = running->out.data();
  request.n_out = running->out.size();
  plait_stream *stream = nullptr;
  plait_thread *thread = state.runtime->thread();
  for (const Tensors *some : {&running->in, &running->out})
    if (some->size() && is_accelerator(some->data()[0]->dl.device))
      stream = state.runtime->stream(thread, some->data()[0]->dl.device);
  plait_status s = PLAIT_OK;
  {
    const Unlocked others;
    s = c->table->start(c->table->ctx, thread, c.get(), &request, stream,
                        asynchronous ? running->work.out() : nullptr);
  }
  running->out.touched();
  if (s != PLAIT_OK) return failed(s);
  if (!asynchronous) Py_RETURN_NONE;
  auto *work = reinterpret_cast<WorkObject *>(work_type->tp_alloc(work_type, 0));
  if (work)
    work->running = running.release();
  else
    keep_until_done(running.release());
  return reinterpret_cast<PyObject *>(work);
}

PyObject *split(PyObject *self, PyObject *args) {
  const auto c = communicator_in(self);
  long long color = 0, key = 0;
  if (!c || !PyArg_ParseTuple(args, "LL", &color, &key)) return nullptr;
  plait_communicator *part = nullptr;
  plait_thread *thread = state.runtime->thread();
  plait_status s = PLAIT_OK;
  {
    const Unlocked others;
    s = c->table->split(c->table->ctx, thread, c.get(), color, key, &part);
  }
  if (s != PLAIT_OK) return failed(s);
  if (!part) Py_RETURN_NONE;
  return new_communicator(part);
}

PyObject *abort(PyObject *self, PyObject *reason) {
  const auto c = communicator_in(self);
  const char *text = PyUnicode_AsUTF8(reason);
  if (!c || !text) return nullptr;
  {
    const Unlocked others;
    c->table->abort(c->table->ctx, c.get(), text);
  }
  Py_RETURN_NONE;
}

// As abort; a provider that knows no interrupts tells it as one.
PyObject *interrupt(PyObject *self, PyObject *function) {
  const auto c = communicator_in(self);
  const char *where = PyUnicode_AsUTF8(function);
  if (!c || !where) return nullptr;
  const plait_collectives *table = c->table;
  const std::string reason = "rank " + std::to_string(c->rank) + " was interrupted during " + where;
  {
    const Unlocked others;
    if (PLAIT_HAS(plait_collectives, table, interrupt))
      table->interrupt(table->ctx, c.get(), where);
    else
      table->abort(table->ctx, c.get(), reason.c_str());
  }
  Py_RETURN_NONE;
}

void let_go(PyObject *self) {
  auto *o = reinterpret_cast<CommunicatorObject *>(self);
  plait_release(std::exchange(o->communicator, nullptr));
}
PyObject *close(PyObject *self, PyObject *) {
  let_go(self);
  Py_RETURN_NONE;
}
void dealloc_communicator(PyObject *self) {
  let_go(self);
  PyTypeObject *type = Py_TYPE(self);
  type->tp_free(self);
  Py_DECREF(type);
}

PyObject *wait(PyObject *self, PyObject *) {
  const Running *r = reinterpret_cast<WorkObject *>(self)->running;
  plait_thread *thread = state.runtime->thread();
  plait_status s = PLAIT_OK;
  const Ref<plait_work> w = r->work;
  {
    const Unlocked others;
    s = w->table->wait(w->table->ctx, thread, w.get());
  }
  r->out.touched();
  if (s != PLAIT_OK) return failed(s);
  Py_RETURN_NONE;
}

PyObject *query(PyObject *self, PyObject *) {
  const Running *r = reinterpret_cast<WorkObject *>(self)->running;
  plait_status s = PLAIT_OK;
  if (!is_done(r->work.get(), s)) Py_RETURN_FALSE;
  r->out.touched();
  if (s != PLAIT_OK) return failed(s);
  Py_RETURN_TRUE;
}

void dealloc_work(PyObject *self) {
  if (Running *r = std::exchange(reinterpret_cast<WorkObject *>(self)->running, nullptr)) {
    keep_until_done(r);
    const PendingError pending;
    sweep_dropped();
  }
  PyTypeObject *type = Py_TYPE(self);
  type->tp_free(self);
  Py_DECREF(type);
}

PyMethodDef communicator_methods[] = {
    {"start", entry<start>, METH_VARARGS,
     "start(kind, inputs, outputs, reduction, peer, tag, timeout, asynchronous): a Work, or None."},
    {"split", entry<split>, METH_VARARGS, "split(color, key): the communicator of one part."},
    {"abort", entry<abort>, METH_O, "abort(why): end the collectives of all members."},
    {"interrupt", entry<interrupt>, METH_O, "interrupt(where): as abort, by the user."},
    {"close", entry<close>, METH_NOARGS, "Leave the group."},
    {nullptr, nullptr, 0, nullptr}};
PyMemberDef communicator_members[] = {
    {"rank", T_UINT, offsetof(CommunicatorObject, rank), READONLY, nullptr},
    {"size", T_UINT, offsetof(CommunicatorObject, size), READONLY, nullptr},
    {nullptr, 0, 0, 0, nullptr}};
PyType_Slot communicator_slots[] = {{Py_tp_dealloc, reinterpret_cast<void *>(dealloc_communicator)},
                                    {Py_tp_methods, communicator_methods},
                                    {Py_tp_members, communicator_members},
                                    {0, nullptr}};
PyType_Spec communicator_spec{"plait_abi.binding.Communicator", sizeof(CommunicatorObject), 0,
                              Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION,
                              communicator_slots};

PyMethodDef work_methods[] = {
    {"wait", entry<wait>, METH_NOARGS, "Wait until it is done; its error."},
    {"query", entry<query>, METH_NOARGS, "Whether it is done; its error."},
    {nullptr, nullptr, 0, nullptr}};
PyType_Slot work_slots[] = {{Py_tp_dealloc, reinterpret_cast<void *>(dealloc_work)},
                            {Py_tp_methods, work_methods},
                            {0, nullptr}};
PyType_Spec work_spec{"plait_abi.binding.Work", sizeof(WorkObject), 0,
                      Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION, work_slots};

PyMethodDef functions[] = {
    {"open_communicator", entry<open>, METH_VARARGS,
     "open_communicator(provider, device, where, rank, size, timeout): a Communicator."},
    {nullptr, nullptr, 0, nullptr}};

}  // namespace

bool add_communicators(PyObject *module) {
  communicator_type = reinterpret_cast<PyTypeObject *>(PyType_FromSpec(&communicator_spec));
  work_type = reinterpret_cast<PyTypeObject *>(PyType_FromSpec(&work_spec));
  return communicator_type && work_type && PyModule_AddFunctions(module, functions) == 0 &&
         PyModule_AddObjectRef(module, "Communicator",
                               reinterpret_cast<PyObject *>(communicator_type)) == 0 &&
         PyModule_AddObjectRef(module, "Work", reinterpret_cast<PyObject *>(work_type)) == 0;
}

}  // namespace plait::python
