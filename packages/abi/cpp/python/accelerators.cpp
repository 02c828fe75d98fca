// What only some devices have: properties, memory of the driver, recorded graphs, and events of
// other processes.
#define PY_SSIZE_T_CLEAN  // before Python.h, which binding.hpp includes
#include "binding.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <memory>
#include <vector>

namespace plait::python {
namespace {

const plait_runtime &runtime() { return *state.runtime; }
PyObject *none_or_raise(plait_thread *thread, plait_status s) {
  return s < 0 ? raise(thread, s) : new_reference(Py_None);
}

// Functions of a table run without the GIL, as they may wait for a driver.
template <class F>
plait_status unlocked(F call) {
  const Unlocked scope;
  return call();
}

struct Used {
  DLDevice device{};
  const plait_device *table = nullptr;  // nullptr: an exception is set
  plait_thread *thread = nullptr;
};

// The accelerator that an argument names, in use.
Used used(PyObject *device, const char *caller) {
  Used u;
  DLDevice d;
  if (!accelerator_from(device, caller, &d)) return u;
  if (!is_accelerator(d)) {
    PyErr_Format(PyExc_ValueError, "%s: `device` must be an accelerator, got %s", caller,
                 device_text(state.runtime, d).c_str());
    return u;
  }
  u.device = d;
  u.thread = runtime().thread();
  if (const plait_status s = runtime().use_device(u.thread, d); s < 0) return raise(u.thread, s), u;
  u.table = role<plait_device>(state.runtime, int32_t(d.device_type));
  return u;
}
PyObject *lacks(const Used &u, const char *caller, const char *subject) {
  return PyErr_Format(PyExc_NotImplementedError, "%s: the device %s has no %s", caller,
                      u.table->name, subject);
}
#define HAS(u, function) PLAIT_HAS(plait_device, u.table, function)

// Facts.

PyObject *properties(PyObject *, PyObject *device) {
  const Used u = used(device, "properties");
  if (!u.table) return nullptr;
  if (!HAS(u, properties)) return lacks(u, "properties", "properties");
  plait_device_properties p{};
  p.size = sizeof p;
  const plait_status s =
      unlocked([&] { return u.table->properties(u.table->ctx, u.thread, u.device, &p); });
  if (s < 0) return raise(u.thread, s);
  p.name[sizeof p.name - 1] = 0;
  return Py_BuildValue("{s:s,s:K,s:I,s:I,s:I,s:I,s:K,s:N,s:N,s:y#}", "name", p.name, "memory",
                       static_cast<unsigned long long>(p.memory), "major", p.major, "minor",
                       p.minor, "units", p.units, "threads", p.threads, "shared_memory",
                       static_cast<unsigned long long>(p.shared_memory), "unified",
                       PyBool_FromLong(p.flags & PLAIT_DEVICE_UNIFIED ? 1 : 0), "peers",
                       PyBool_FromLong(p.flags & PLAIT_DEVICE_PEERS ? 1 : 0), "uuid",
                       reinterpret_cast<const char *>(p.uuid), Py_ssize_t(sizeof p.uuid));
}

PyObject *memory_info(PyObject *, PyObject *device) {
  const Used u = used(device, "memory_info");
  if (!u.table) return nullptr;
  if (!HAS(u, memory_alloc)) return lacks(u, "memory_info", "such function");
  uint64_t free_bytes = 0, total = 0;
  const plait_status s = unlocked(
      [&] { return u.table->memory_info(u.table->ctx, u.thread, u.device, &free_bytes, &total); });
  if (s < 0) return raise(u.thread, s);
  return Py_BuildValue("KK", static_cast<unsigned long long>(free_bytes),
                       static_cast<unsigned long long>(total));
}

PyObject *memory_device(PyObject *, PyObject *args) {
  PyObject *device;
  unsigned long long address;
  if (!PyArg_ParseTuple(args, "OK:memory_device", &device, &address)) return nullptr;
  const Used u = used(device, "memory_device");
  if (!u.table) return nullptr;
  if (!HAS(u, memory_device)) return lacks(u, "memory_device", "such function");
  int32_t number = 0;
  const plait_status s = u.table->memory_device(
      u.table->ctx, u.thread, reinterpret_cast<const void *>(uintptr_t(address)), &number);
  return s < 0 ? raise(u.thread, s) : PyLong_FromLong(number);
}

PyObject *priorities(PyObject *, PyObject *device) {
  const Used u = used(device, "priorities");
  if (!u.table) return nullptr;
  int32_t lowest = 0, highest = 0;
  if (HAS(u, priorities)) {
    const plait_status s = u.table->priorities(u.table->ctx, u.thread, u.device, &lowest, &highest);
    if (s < 0) return raise(u.thread, s);
  }
  return Py_BuildValue("ii", lowest, highest);
}

PyObject *block_object(const plait_memory_block &b) {
  return Py_BuildValue("{s:K,s:K,s:K,s:K,s:K,s:N,s:N,s:N}", "address",
                       static_cast<unsigned long long>(reinterpret_cast<uintptr_t>(b.data)),
                       "bytes", static_cast<unsigned long long>(b.nbytes), "requested",
                       static_cast<unsigned long long>(b.requested), "segment",
                       static_cast<unsigned long long>(reinterpret_cast<uintptr_t>(b.segment)),
                       "stream", static_cast<unsigned long long>(b.stream), "live",
                       PyBool_FromLong(b.flags & PLAIT_BLOCK_LIVE ? 1 : 0), "waiting",
                       PyBool_FromLong(b.flags & PLAIT_BLOCK_WAITING ? 1 : 0), "private",
                       PyBool_FromLong(b.flags & PLAIT_BLOCK_PRIVATE ? 1 : 0));
}

// The allocator of a device in use, if it has the function at `field`; else an exception.
const plait_allocator *allocator_of(const Used &u, const char *caller, const char *subject,
                                    bool (*has)(const plait_allocator *)) {
  if (!u.table) return nullptr;
  const auto *a = role<plait_allocator>(state.runtime, int32_t(u.device.device_type));
  if (a && has(a)) return a;
  PyErr_Format(PyExc_NotImplementedError, "%s: the allocator of %s has no %s", caller,
               u.table->name, subject);
  return nullptr;
}

PyObject *memory_snapshot(PyObject *, PyObject *device) {
  const Used u = used(device, "memory_snapshot");
  const plait_allocator *a = allocator_of(
      u, "memory_snapshot", "list of its blocks",
      [](const plait_allocator *each) { return PLAIT_HAS(plait_allocator, each, snapshot); });
  if (!a) return nullptr;
  std::vector<plait_memory_block> list(64);
  for (;;) {  // blocks may come between two calls
    const uint64_t n =
        a->snapshot(a->ctx, u.device, list.data(), list.size(), sizeof(plait_memory_block));
    const bool is_all = n <= list.size();
    list.resize(is_all ? n : n + n / 4);
    if (is_all) break;
  }
  Object result(PyList_New(0));
  for (const plait_memory_block &b : list) {
    Object each(result ? block_object(b) : nullptr);
    if (!each || PyList_Append(result.get(), each.get()) < 0) return nullptr;
  }
  return result.release();
}

// Pools and graphs: capsules, which free what they have unless the device is gone.

constexpr const char *kPool = "plait_abi.pool", *kGraph = "plait_abi.graph";

struct Pool {
  DLDevice device;
  const plait_allocator *allocator;
  void *pool;
};
struct Graph {
  DLDevice device;
  const plait_device *table;
  void *graph;
};

bool is_usable(DLDevice d) {
  plait_thread *thread = runtime().thread();
  if (runtime().use_device(thread, d) >= 0) return true;
  runtime().clear(thread);
  return false;
}
void drop_pool(PyObject *capsule) {
  auto *p = static_cast<Pool *>(PyCapsule_GetPointer(capsule, kPool));
  if (is_usable(p->device)) p->allocator->pool_free(p->allocator->ctx, p->pool);
  delete p;
}
void drop_graph(PyObject *capsule) {
  auto *g = static_cast<Graph *>(PyCapsule_GetPointer(capsule, kGraph));
  if (is_usable(g->device)) g->table->graph_free(g->table->ctx, g->graph);
  delete g;
}

PyObject *memory_pool(PyObject *, PyObject *device) {
  const Used u = used(device, "memory_pool");
  const plait_allocator *a = allocator_of(
      u, "memory_pool", "private pools",
      [](const plait_allocator *each) { return PLAIT_HAS(plait_allocator, each, pool_new); });
  void *pool = a ? a->pool_new(a->ctx, u.device) : nullptr;
  if (!pool) return a ? PyErr_NoMemory() : nullptr;
  auto *p = new Pool{u.device, a, pool};
  PyObject *capsule = PyCapsule_New(p, kPool, drop_pool);
  if (!capsule) delete p;
  return capsule;
}

struct OnStream {
  Used used;
  plait_stream *stream = nullptr;
};
// The accelerator and the stream of a Stream; `used.table` is nullptr if there is an exception.
OnStream on_stream(PyObject *o, const char *caller) {
  OnStream s;
  DLDevice d;
  if (!stream_from(o, caller, &d, &s.stream)) return s;
  Object device(device_object(d));
  if (device) s.used = used(device.get(), caller);
  return s;
}

PyObject *use_pool(PyObject *, PyObject *args) {
  PyObject *stream, *pool;
  if (!PyArg_ParseTuple(args, "OO:use_memory_pool", &stream, &pool)) return nullptr;
  const OnStream on = on_stream(stream, "use_memory_pool");
  if (!on.used.table) return nullptr;
  const Pool *p = nullptr;
  if (pool != Py_None) {
    p = static_cast<Pool *>(PyCapsule_GetPointer(pool, kPool));
    if (!p) return nullptr;
    if (!same(p->device, on.used.device))
      return PyErr_Format(PyExc_ValueError, "use_memory_pool: the pool is of %s, the stream of %s",
                          device_text(state.runtime, p->device).c_str(),
                          device_text(state.runtime, on.used.device).c_str());
  }
  const auto *a =
      p ? p->allocator : role<plait_allocator>(state.runtime, int32_t(on.used.device.device_type));
  if (a && PLAIT_HAS(plait_allocator, a, pool_use))
    a->pool_use(a->ctx, on.used.device, on.stream, p ? p->pool : nullptr);
  Py_RETURN_NONE;
}

PyObject *capture_begin(PyObject *, PyObject *stream) {
  const OnStream on = on_stream(stream, "capture_begin");
  const Used &u = on.used;
  if (!u.table) return nullptr;
  if (!HAS(u, capture_begin)) return lacks(u, "capture_begin", "recorded graphs");
  const plait_status s =
      unlocked([&] { return u.table->capture_begin(u.table->ctx, u.thread, u.device, on.stream); });
  return none_or_raise(u.thread, s);
}
PyObject *capture_end(PyObject *, PyObject *stream) {
  const OnStream on = on_stream(stream, "capture_end");
  const Used &u = on.used;
  if (!u.table) return nullptr;
  if (!HAS(u, capture_begin)) return lacks(u, "capture_end", "recorded graphs");
  auto g = std::make_unique<Graph>(Graph{u.device, u.table, nullptr});
  const plait_status s = unlocked(
      [&] { return u.table->capture_end(u.table->ctx, u.thread, u.device, on.stream, &g->graph); });
  if (s < 0) return raise(u.thread, s);
  if (!g->graph)
    return PyErr_Format(PyExc_RuntimeError, "capture_end: %s gave no graph", u.table->name);
  PyObject *capsule = PyCapsule_New(g.get(), kGraph, drop_graph);
  if (capsule) g.release();
  return capsule;
}
PyObject *is_capturing(PyObject *, PyObject *stream) {
  DLDevice d;
  plait_stream *s;
  if (!stream_from(stream, "is_capturing", &d, &s)) return nullptr;
  if (!is_accelerator(d)) Py_RETURN_FALSE;
  const OnStream on = on_stream(stream, "is_capturing");
  const Used &u = on.used;
  if (!u.table) return nullptr;
  return PyBool_FromLong(HAS(u, capture_begin) &&
                         u.table->capture_query(u.table->ctx, u.device, on.stream));
}
PyObject *graph_launch(PyObject *, PyObject *args) {
  PyObject *graph, *stream;
  if (!PyArg_ParseTuple(args, "OO:graph_launch", &graph, &stream)) return nullptr;
  const auto *g = static_cast<Graph *>(PyCapsule_GetPointer(graph, kGraph));
  if (!g) return nullptr;
  const OnStream on = on_stream(stream, "graph_launch");
  const Used &u = on.used;
  if (!u.table) return nullptr;
  if (!same(g->device, u.device))
    return PyErr_Format(PyExc_ValueError, "graph_launch: the graph is of %s, the stream of %s",
                        device_text(state.runtime, g->device).c_str(),
                        device_text(state.runtime, u.device).c_str());
  const plait_status s = unlocked([&] {
    return g->table->graph_launch(g->table->ctx, u.thread, g->graph, u.device, on.stream);
  });
  return none_or_raise(u.thread, s);
}

// Events of several processes.

PyObject *share_event(PyObject *, PyObject *event) {
  plait_device_event *e = event_from(event, "share_event");
  if (!e) return nullptr;
  plait_shared_memory m{};
  m.size = sizeof m;
  m.fd = -1;
  plait_thread *thread = runtime().thread();
  const plait_status s = unlocked([&] { return runtime().event_share(thread, e, &m); });
  if (s < 0) return raise(thread, s);
  const int fd = m.fd < 0 ? -1 : fcntl(m.fd, F_DUPFD_CLOEXEC, 0);
  if (m.fd >= 0 && fd < 0) return PyErr_SetFromErrno(PyExc_OSError);
  return Py_BuildValue("y#iK", m.handle, Py_ssize_t(std::min<size_t>(m.length, sizeof m.handle)),
                       fd, static_cast<unsigned long long>(m.offset));
}

PyObject *open_event(PyObject *, PyObject *args) {
  PyObject *device;
  const char *handle;
  Py_ssize_t length;
  int fd;
  unsigned long long offset;
  if (!PyArg_ParseTuple(args, "Oy#iK:open_event", &device, &handle, &length, &fd, &offset))
    return nullptr;
  plait_shared_memory m{};
  if (size_t(length) > sizeof m.handle)
    return PyErr_Format(PyExc_ValueError,
                        "open_event: `handle` must have at most %zu bytes, got %zd",
                        sizeof m.handle, length);
  m.size = sizeof m;
  m.fd = fd;
  m.offset = offset;
  m.length = uint32_t(length);
  memcpy(m.handle, handle, size_t(length));
  const Used u = used(device, "open_event");
  if (!u.table) return nullptr;
  plait_device_event *e = nullptr;
  const plait_status s = unlocked([&] { return runtime().event_open(u.thread, u.device, &m, &e); });
  return s < 0 ? raise(u.thread, s) : event_object(u.device, e);
}

PyMethodDef functions[] = {
    {"properties", entry<properties>, METH_O,
     "properties(device, /)\n--\n\nWhat an accelerator is."},
    {"memory_info", entry<memory_info>, METH_O,
     "memory_info(device, /)\n--\n\nThe free and the total bytes of an accelerator."},
    {"memory_device", entry<memory_device>, METH_VARARGS,
     "memory_device(device, address, /)\n--\n\nThe number of the device of this type that has the "
     "memory at an address."},
    {"priorities", entry<priorities>, METH_O,
     "priorities(device, /)\n--\n\nThe lowest and the highest priority of streams."},
    {"memory_snapshot", entry<memory_snapshot>, METH_O,
     "memory_snapshot(device, /)\n--\n\nEvery block of an accelerator's allocator."},
    {"memory_pool", entry<memory_pool>, METH_O,
     "memory_pool(device, /)\n--\n\nA private pool of memory, which ends with the object."},
    {"use_memory_pool", entry<use_pool>, METH_VARARGS,
     "use_memory_pool(stream, pool, /)\n--\n\nTake memory for a stream from a pool; None: no "
     "more."},
    {"capture_begin", entry<capture_begin>, METH_O,
     "capture_begin(stream, /)\n--\n\nRecord the work of a stream from now on."},
    {"capture_end", entry<capture_end>, METH_O,
     "capture_end(stream, /)\n--\n\nThe graph that was recorded."},
    {"is_capturing", entry<is_capturing>, METH_O,
     "is_capturing(stream, /)\n--\n\nWhether the work of a stream is recorded."},
    {"graph_launch", entry<graph_launch>, METH_VARARGS,
     "graph_launch(graph, stream, /)\n--\n\nDo what was recorded, in a stream."},
    {"share_event", entry<share_event>, METH_O,
     "share_event(event, /)\n--\n\nHow another process opens an event: bytes, a descriptor that "
     "the "
     "caller closes, or -1, and an offset."},
    {"open_event", entry<open_event>, METH_VARARGS,
     "open_event(device, handle, fd, offset, /)\n--\n\nAn event of another process."},
    {nullptr, nullptr, 0, nullptr}};

}  // namespace

bool add_accelerators(PyObject *module) { return PyModule_AddFunctions(module, functions) == 0; }

}  // namespace plait::python
