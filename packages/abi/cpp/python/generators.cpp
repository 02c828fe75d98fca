// Generator: a stream of random numbers, named by its seed and its position.
#include <sys/random.h>

#include "binding.hpp"

namespace plait::python {
namespace {

struct GeneratorObject {
  PyObject_HEAD plait_generator *generator;
};
plait_generator *&generator_of(PyObject *o) {
  return reinterpret_cast<GeneratorObject *>(o)->generator;
}
constexpr uint64_t first_seed =
    67280421310721;  // PyTorch's default seed, so that programs that print it agree

void set(plait_generator *g, uint64_t seed, uint64_t offset) {
  g->seed = seed;
  __atomic_store_n(&g->offset, offset, __ATOMIC_RELAXED);
}

// The table of the role, if its states are more than a seed and an offset.
const plait_rng *with_states() {
  const plait_rng *rng = role<plait_rng>(state.runtime);
  return rng && PLAIT_HAS(plait_rng, rng, state_size) ? rng : nullptr;
}
bool done_or_raise(plait_thread *thread, plait_status s) { return s >= 0 || raise(thread, s); }

// Begins the stream of a seed; false with an exception.
bool begin_stream(plait_generator *g, uint64_t seed) {
  set(g, seed, 0);
  const plait_rng *rng = with_states();
  plait_thread *thread = state.runtime->thread();
  return !rng || done_or_raise(thread, rng->set_seed(rng->ctx, thread, g, seed));
}

// The state that the role keeps, as bytes.
PyObject *state_bytes(const plait_rng *rng, plait_generator *g) {
  const uint64_t nbytes = rng->state_size(rng->ctx, g);
  Object bytes(PyBytes_FromStringAndSize(nullptr, Py_ssize_t(nbytes)));
  if (!bytes) return nullptr;
  plait_thread *thread = state.runtime->thread();
  const plait_status s =
      rng->get_state(rng->ctx, thread, g, PyBytes_AS_STRING(bytes.get()), nbytes);
  return done_or_raise(thread, s) ? bytes.release() : nullptr;
}
bool set_state_bytes(const plait_rng *rng, plait_generator *g, PyObject *bytes) {
  if (!PyBytes_Check(bytes)) {
    PyErr_Format(PyExc_TypeError,
                 "set_state: `state` must be the bytes that get_state() of the generator `%s` "
                 "returned, got %s",
                 rng->name, Py_TYPE(bytes)->tp_name);
    return false;
  }
  const auto nbytes = uint64_t(PyBytes_GET_SIZE(bytes));
  const uint64_t required = rng->state_size(rng->ctx, g);
  if (nbytes != required) {
    PyErr_Format(PyExc_ValueError,
                 "set_state: a state of the generator `%s` has %llu bytes, got %llu", rng->name,
                 static_cast<unsigned long long>(required),
                 static_cast<unsigned long long>(nbytes));
    return false;
  }
  plait_thread *thread = state.runtime->thread();
  return done_or_raise(thread,
                       rng->set_state(rng->ctx, thread, g, PyBytes_AS_STRING(bytes), nbytes));
}

// seeds are in [-2**63, 2**64), as in PyTorch
bool seed_from(PyObject *o, uint64_t *out) {
  Object n(PyNumber_Index(o));
  if (!n) {
    PyErr_Clear();
    PyErr_Format(PyExc_TypeError, "manual_seed: `seed` must be an int, got %s",
                 Py_TYPE(o)->tp_name);
    return false;
  }
  int overflow = 0;
  const long long s = PyLong_AsLongLongAndOverflow(n.get(), &overflow);
  if (!overflow) return *out = uint64_t(s), true;
  *out = overflow > 0 ? PyLong_AsUnsignedLongLong(n.get()) : 0;
  if (overflow > 0 && !PyErr_Occurred()) return true;
  PyErr_Clear();
  PyErr_Format(PyExc_ValueError, "manual_seed: `seed` must be in [-2**63, 2**64), got %R", o);
  return false;
}

PyObject *make(PyTypeObject *, PyObject *args, PyObject *kwargs) {
  PyObject *device = nullptr;
  static const char *names[] = {"device", nullptr};
  if (!PyArg_ParseTupleAndKeywords(args, kwargs, "|O:Generator", const_cast<char **>(names),
                                   &device))
    return nullptr;
  DLDevice d{kDLCPU, 0};
  if (device) {
    const int done = device_from(device, &d);
    if (done == PLAIT_NOT_CONVERTIBLE)
      PyErr_Format(PyExc_TypeError, "Generator: `device` must be a device, got %s",
                   Py_TYPE(device)->tp_name);
    if (done != PLAIT_CONVERTED) return nullptr;
    const auto type = uint32_t(d.device_type);
    if (type != kDLCPU && !role<plait_device>(state.runtime, int32_t(type))) {
      PyErr_Format(PyExc_RuntimeError,
                   "Generator: `device` must be cpu or one whose backend is loaded, got %R",
                   device);
      return nullptr;
    }
    if (!is_there(d, "Generator")) return nullptr;
  }
  plait_generator *g = state.runtime->generator_new(first_seed);
  if (!g) return PyErr_SetString(PyExc_MemoryError, "out of memory"), nullptr;
  g->device = d;
  return generator_object(g);
}
void dealloc(PyObject *self) {
  PyTypeObject *type = Py_TYPE(self);
  plait_release(generator_of(self));
  PyObject_Free(self);
  Py_DECREF(type);
}

PyObject *manual_seed(PyObject *self, PyObject *o) {
  uint64_t s;
  if (!seed_from(o, &s)) return nullptr;
  return begin_stream(generator_of(self), s) ? new_reference(self) : nullptr;
}
PyObject *seed(PyObject *self, PyObject *) {
  uint64_t s = 0;
  if (getrandom(&s, sizeof s, 0) != ssize_t(sizeof s)) return PyErr_SetFromErrno(PyExc_OSError);
  s &= (uint64_t(1) << 63) - 1;
  if (!begin_stream(generator_of(self), s)) return nullptr;
  return PyLong_FromUnsignedLongLong(s);
}
PyObject *initial_seed(PyObject *self, PyObject *) {
  return PyLong_FromUnsignedLongLong(generator_of(self)->seed);
}
PyObject *get_state(PyObject *self, PyObject *) {
  if (const plait_rng *rng = with_states()) return state_bytes(rng, generator_of(self));
  return Py_BuildValue("KK", static_cast<unsigned long long>(generator_of(self)->seed),
                       static_cast<unsigned long long>(
                           __atomic_load_n(&generator_of(self)->offset, __ATOMIC_RELAXED)));
}
PyObject *set_state(PyObject *self, PyObject *s) {
  if (const plait_rng *rng = with_states())
    return set_state_bytes(rng, generator_of(self), s) ? new_reference(self) : nullptr;
  unsigned long long seed, offset;
  if (!PyTuple_Check(s) || !PyArg_ParseTuple(s, "KK", &seed, &offset)) {
    PyErr_Clear();
    PyErr_Format(PyExc_TypeError,
                 "set_state: `state` must be what get_state() returned, a pair (seed, offset) of "
                 "ints from 0 to 2**64 - 1; got %R",
                 s);
    return nullptr;
  }
  set(generator_of(self), seed, offset);
  return new_reference(self);
}
PyObject *clone_state(PyObject *self, PyObject *) {
  const plait_generator *from = generator_of(self);
  plait_generator *g = state.runtime->generator_new(from->seed);
  if (!g) return PyErr_SetString(PyExc_MemoryError, "out of memory"), nullptr;
  set(g, from->seed, __atomic_load_n(&from->offset, __ATOMIC_RELAXED));
  g->device = from->device;
  Object copy(generator_object(g));
  if (const plait_rng *rng = with_states(); copy && rng) {
    Object bytes(state_bytes(rng, generator_of(self)));
    if (!bytes || !set_state_bytes(rng, g, bytes.get())) return nullptr;
  }
  return copy.release();
}
PyObject *reduce(PyObject *self, PyObject *) {
  Object device(device_object(generator_of(self)->device)), at(get_state(self, nullptr));
  if (!device || !at) return nullptr;
  return Py_BuildValue("O(O)O", reinterpret_cast<PyObject *>(state.generator_type), device.get(),
                       at.get());
}
PyObject *set_state_only(PyObject *self, PyObject *s) {
  Object done(set_state(self, s));
  if (!done) return nullptr;
  Py_RETURN_NONE;
}
PyObject *get_device(PyObject *self, void *) { return device_object(generator_of(self)->device); }
PyObject *repr(PyObject *self) {
  return PyUnicode_FromFormat("<Generator seed=%llu offset=%llu>",
                              static_cast<unsigned long long>(generator_of(self)->seed),
                              static_cast<unsigned long long>(generator_of(self)->offset));
}

// The generator of a device, which is that of the CPU if the role has only one.
plait_generator *default_of(const plait_rng *rng, DLDevice d) {
  if (is_accelerator(d) && PLAIT_HAS(plait_rng, rng, device_generator))
    return rng->device_generator(rng->ctx, d);
  return rng->default_generator(rng->ctx);
}
PyObject *shared_object(plait_generator *g) {
  if (!g) {
    PyErr_SetString(
        PyExc_NotImplementedError,
        "default_generator: no provider of the role \"rng\" is loaded; import plait_core");
    return nullptr;
  }
  plait_retain(g);
  return generator_object(g);
}

PyObject *default_generator(PyObject *, PyObject *args) {
  PyObject *device = Py_None;
  if (!PyArg_ParseTuple(args, "|O:default_generator", &device)) return nullptr;
  DLDevice d{kDLCPU, 0};
  if (device != Py_None && !accelerator_from(device, "default_generator", &d)) return nullptr;
  const plait_rng *rng = role<plait_rng>(state.runtime);
  return shared_object(rng ? default_of(rng, d) : nullptr);
}

// That of the CPU, and those of all devices that have one of their own.
PyObject *default_generators(PyObject *, PyObject *) {
  const plait_rng *rng = role<plait_rng>(state.runtime);
  Object list(PyList_New(0));
  const auto add = [&list](plait_generator *g) {
    Object each(shared_object(g));
    return each && PyList_Append(list.get(), each.get()) == 0;
  };
  if (!list || !add(rng ? rng->default_generator(rng->ctx) : nullptr)) return nullptr;
  if (!PLAIT_HAS(plait_rng, rng, device_generator)) return list.release();
  plait_thread *thread = state.runtime->thread();
  for (int32_t type = kDLCPU + 1; type < PLAIT_MAX_DEVICE_TYPES; type++) {
    int32_t n = 0;
    const plait_status s = state.runtime->device_count(thread, DLDeviceType(type), &n);
    if (s < 0) return raise(thread, s);
    for (int32_t i = 0; i < n; i++)
      if (!add(default_of(rng, {DLDeviceType(type), i}))) return nullptr;
  }
  return list.release();
}

PyMethodDef methods[] = {
    {"manual_seed", entry<manual_seed>, METH_O,
     "manual_seed($self, seed, /)\n--\n\nStart the stream named by seed; returns self."},
    {"seed", entry<seed>, METH_NOARGS,
     "seed($self, /)\n--\n\nStart a stream that the operating system chose; returns its seed."},
    {"initial_seed", entry<initial_seed>, METH_NOARGS,
     "initial_seed($self, /)\n--\n\nThe seed of this stream."},
    {"get_state", entry<get_state>, METH_NOARGS,
     "get_state($self, /)\n--\n\nAll there is to know: the pair of ints (seed, offset), or bytes "
     "if "
     "a component brings another kind of generator."},
    {"set_state", entry<set_state>, METH_O,
     "set_state($self, state, /)\n--\n\nGo to where get_state was called."},
    {"clone_state", entry<clone_state>, METH_NOARGS,
     "clone_state($self, /)\n--\n\nAnother generator that stands where this one does."},
    {"__reduce__", entry<reduce>, METH_NOARGS, nullptr},
    {"__setstate__", entry<set_state_only>, METH_O, nullptr},
    {nullptr, nullptr, 0, nullptr}};
PyGetSetDef getters[] = {{"device", entry<get_device>, nullptr, nullptr, nullptr},
                         {nullptr, nullptr, nullptr, nullptr, nullptr}};
PyType_Slot slots[] = {
    {Py_tp_new, reinterpret_cast<void *>(entry<make>)},
    {Py_tp_dealloc, reinterpret_cast<void *>(dealloc)},
    {Py_tp_repr, reinterpret_cast<void *>(entry<repr>)},
    {Py_tp_methods, methods},
    {Py_tp_getset, getters},
    {Py_tp_doc, const_cast<char *>(
                    "Generator(device=\"cpu\")\n--\n\nA stream of random numbers, "
                    "counted, so that results do not "
                    "depend on the number of threads."
                    "\n\nExample:\n"
                    "    >>> import plait_core as pc\n"
                    "    >>> generator = pc.Generator().manual_seed(3)\n"
                    "    >>> state = generator.get_state()\n"
                    "    >>> first = pc.rand(2, generator=generator)\n"
                    "    >>> pc.equal(first, pc.rand(2, generator=generator.set_state(state)))\n"
                    "    True")},
    {0, nullptr}};
PyType_Spec spec{"plait_abi.Generator", sizeof(GeneratorObject), 0, Py_TPFLAGS_DEFAULT, slots};
PyMethodDef defaults_def{
    "default_generators", entry<default_generators>, METH_NOARGS,
    "default_generators()\n--\n\nThe default generator of the CPU, and those of "
    "all devices that have their own."};
PyMethodDef default_def{
    "default_generator", entry<default_generator>, METH_VARARGS,
    "default_generator(device=None, /)\n--\n\nThe generator that random "
    "operators draw from when none is given. Devices may have their own; None is "
    "that of the CPU.\n\n"
    "Example:\n"
    "    >>> import plait_abi, plait_core as pc\n"
    "    >>> generator = pc.manual_seed(3)\n"
    "    >>> plait_abi.default_generator().initial_seed()\n"
    "    3"};

}  // namespace

PyObject *generator_object(plait_generator *g) {
  auto *o = PyObject_New(GeneratorObject, state.generator_type);
  if (!o) plait_release(g);
  if (o) o->generator = g;
  return reinterpret_cast<PyObject *>(o);
}

plait_generator *generator_from(PyObject *o) {
  if (Py_TYPE(o) == state.generator_type) return generator_of(o);
  PyErr_Format(PyExc_TypeError, "a Generator is required, got %s", Py_TYPE(o)->tp_name);
  return nullptr;
}

bool add_generators(PyObject *module) {
  state.generator_type = reinterpret_cast<PyTypeObject *>(PyType_FromSpec(&spec));
  Object function(PyCFunction_New(&default_def, nullptr));
  Object all(PyCFunction_New(&defaults_def, nullptr));
  return state.generator_type && function && all &&
         PyModule_AddObjectRef(module, "default_generators", all.get()) == 0 &&
         PyModule_AddObjectRef(module, "Generator",
                               reinterpret_cast<PyObject *>(state.generator_type)) == 0 &&
         PyModule_AddObjectRef(module, "default_generator", function.get()) == 0;
}

}  // namespace plait::python
