// Probes: what the kernels that one provider registered for an operator do with its calls. The
// conformance kit reads them, and a plug-in's own tests may.
#include <cstring>
#include <string>

#include "binding.hpp"

namespace plait::python {
namespace {

constexpr unsigned char poison = 0x5B;  // as float, double or integer unlikely; no bool

// Stays for good, as tables of the registry may: a call may be running through its entry.
struct Probe {
  std::string provider;
  uint64_t undo;
  uint64_t calls, accepted, declined, failed, poisoned, untouched;  // atomic
};
const char *const capsule_name = "plait_abi.probe";

void count(uint64_t &counter) { __atomic_fetch_add(&counter, 1, __ATOMIC_RELAXED); }

template <class F>
void each_tensor(const plait_value *values, uint32_t n, F &&f) {
  for (uint32_t i = 0; i < n; i++) {
    if (values[i].tag == PLAIT_TENSOR) f(values[i].u.t);
    for (uint32_t k = 0; values[i].tag == PLAIT_TENSORS && k < values[i].n; k++)
      if (values[i].u.ts[k]) f(values[i].u.ts[k]);
  }
}

// Calls f(address, bytes) for every element, until it returns false.
template <class F>
bool each_element(const DLTensor &t, F &&f) {
  const size_t bytes = size_t(t.dtype.bits) * t.dtype.lanes / 8;
  int64_t index[PLAIT_MAX_DIMS] = {};
  for (int32_t i = 0; i < t.ndim; i++)
    if (t.shape[i] == 0) return true;
  auto *at = static_cast<unsigned char *>(t.data);
  for (;;) {
    if (!f(at, bytes)) return false;
    int32_t i = t.ndim - 1;
    for (; i >= 0 && ++index[i] == t.shape[i]; i--) {
      at -= (t.shape[i] - 1) * t.strides[i] * int64_t(bytes);
      index[i] = 0;
    }
    if (i < 0) return true;
    at += t.strides[i] * int64_t(bytes);
  }
}

// Results whose old bytes are not read: those that share no storage with an argument.
template <class F>
void each_fresh_result(const plait_call *c, F &&f) {
  each_tensor(c->out, c->n_out, [&](plait_tensor *out) {
    bool fresh = out->dl.device.device_type == kDLCPU;  // the host writes and reads its bytes
    each_tensor(c->in, c->n_in,
                [&](const plait_tensor *in) { fresh &= in->storage != out->storage; });
    if (fresh) f(out->dl);
  });
}

bool fill(const plait_call *c) {
  bool any = false;
  each_fresh_result(c, [&](const DLTensor &t) {
    each_element(t, [&](unsigned char *at, size_t bytes) {
      std::memset(at, poison, bytes);
      return any = true;
    });
  });
  return any;
}

bool untouched(const plait_call *c) {
  bool same = true;
  each_fresh_result(c, [&](const DLTensor &t) {
    same = same && each_element(t, [](const unsigned char *at, size_t bytes) {
             for (size_t i = 0; i < bytes; i++)
               if (at[i] != poison) return false;
             return true;
           });
  });
  return same;
}

void note(Probe *probe, plait_status s, bool was_poisoned, bool left) {
  count(probe->calls);
  count(s == PLAIT_DECLINE ? probe->declined : s < 0 ? probe->failed : probe->accepted);
  if (s != PLAIT_OK || !was_poisoned) return;
  count(probe->poisoned);
  if (left) count(probe->untouched);
}

plait_status run(plait_call *c) {
  const plait_entry *self = c->self;
  const bool poisoned = fill(c);
  plait_status s = PLAIT_DECLINE;
  for (const plait_entry *e = self->prev; e && s == PLAIT_DECLINE; e = e->prev) {
    if (e->fn == run) continue;  // another probe is notified below
    c->self = e;
    s = e->fn(c);
    const bool left = s == PLAIT_OK && poisoned && untouched(c);
    for (const plait_entry *each = self; each != e; each = each->prev) {
      if (each->fn != run) continue;
      auto *probe = static_cast<Probe *>(each->ctx);
      if (e->who && probe->provider == e->who->name) note(probe, s, poisoned, left);
    }
  }
  c->self = self;
  return s;
}

const plait_plugin prober{
    PLAIT_HEADER(plait_plugin), "plait_abi.probe", PY_VERSION, 0, nullptr, nullptr};

PyObject *open(PyObject *, PyObject *args) {
  const char *name, *provider;
  PyObject *where;
  DLDevice device;
  if (!PyArg_ParseTuple(args, "ssO", &name, &provider, &where)) return nullptr;
  const int converted = device_from(where, &device);
  if (converted == PLAIT_CONVERSION_FAILED) return nullptr;
  if (converted != PLAIT_CONVERTED)
    return PyErr_Format(PyExc_TypeError, "Probe: `device` must be a device or its name, got %R",
                        where);
  const plait_op *op = state.runtime->op(name);
  if (!op)
    return PyErr_Format(PyExc_AttributeError, "Probe: no operator named %s is defined", name);
  const bool has_slot = uint64_t(device.device_type) < op->n_backend;
  const plait_entry *e =
      has_slot ? __atomic_load_n(&op->backend, __ATOMIC_ACQUIRE)[device.device_type] : nullptr;
  while (e && !(e->who && !std::strcmp(e->who->name, provider))) e = e->prev;
  if (!e)
    return PyErr_Format(PyExc_ValueError, "Probe: no kernel of %s for %R is provided by %s", name,
                        where, provider);
  plait_thread *thread = state.runtime->thread();
  plait_status s = state.runtime->attach(thread, &prober);
  auto *probe = new Probe{provider, 0, 0, 0, 0, 0, 0, 0};
  if (s >= 0)
    s = state.runtime->implement(thread, op, uint32_t(device.device_type), run, probe, &prober,
                                 &probe->undo);
  if (s >= 0) return PyCapsule_New(probe, capsule_name, nullptr);
  delete probe;
  return raise(thread, s);
}

PyObject *counts(PyObject *, PyObject *capsule) {
  auto *p = static_cast<Probe *>(PyCapsule_GetPointer(capsule, capsule_name));
  if (!p) return nullptr;
  const auto read = [](const uint64_t &counter) {
    return static_cast<unsigned long long>(__atomic_load_n(&counter, __ATOMIC_RELAXED));
  };
  return Py_BuildValue("KKKKKK", read(p->calls), read(p->accepted), read(p->declined),
                       read(p->failed), read(p->poisoned), read(p->untouched));
}

PyObject *close(PyObject *, PyObject *capsule) {
  auto *probe = static_cast<Probe *>(PyCapsule_GetPointer(capsule, capsule_name));
  if (!probe) return nullptr;
  plait_thread *thread = state.runtime->thread();
  // numbers are not used again: a second time there is nothing to take back
  if (state.runtime->retract(thread, probe->undo) < 0) state.runtime->clear(thread);
  Py_RETURN_NONE;
}

PyMethodDef functions[] = {
    {"probe", entry<open>, METH_VARARGS,
     "probe(name, provider, device, /)\n--\n\nWatch a provider's kernels of an operator; what is "
     "returned goes to `probe_counts` and `probe_close`."},
    {"probe_counts", entry<counts>, METH_O,
     "probe_counts(probe, /)\n--\n\n(calls, accepted, declined, failed, poisoned, untouched)."},
    {"probe_close", entry<close>, METH_O,
     "probe_close(probe, /)\n--\n\nTake a probe away; again is no error."},
    {nullptr, nullptr, 0, nullptr}};

}  // namespace

bool add_probes(PyObject *module) { return PyModule_AddFunctions(module, functions) == 0; }

}  // namespace plait::python
