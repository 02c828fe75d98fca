// Export of a tensor's bytes as a DLPack capsule. The capsule keeps the storage alive, not the
// handle: `p.data = q` must not change what a consumer sees.
#include <plait/fork.hpp>

#include <map>

#include "binding.hpp"

namespace plait::python {
namespace {

// Exported storages, by their first byte. An array of another library that lies within one of them
// is imported as that storage, so that writes through it raise the storage's version. An export
// keeps its storage alive, so every entry is alive.
struct Out {
  plait_storage *storage;
  uint64_t exports;
};
struct Registry {
  ForkMutex mutex;
  std::map<const char *, Out> by_begin;
};
Registry *const all = new Registry;  // never destroyed: deleters may run after static objects
Registry &registry() { return *all; }
bool is_listed(const plait_storage *s) { return s->device.device_type == kDLCPU && s->nbytes > 0; }

void list(plait_storage *s) {
  if (!is_listed(s)) return;
  Registry &r = registry();
  const std::lock_guard<ForkMutex> lock(r.mutex);
  Out &out = r.by_begin.try_emplace(static_cast<const char *>(s->data), Out{s, 0}).first->second;
  if (out.storage == s) out.exports++;
}
void unlist(plait_storage *s) {
  if (!is_listed(s)) return;
  Registry &r = registry();
  const std::lock_guard<ForkMutex> lock(r.mutex);
  const auto it = r.by_begin.find(static_cast<const char *>(s->data));
  if (it != r.by_begin.end() && it->second.storage == s && --it->second.exports == 0)
    r.by_begin.erase(it);
}

struct Exported {
  union {
    DLManagedTensor old;
    DLManagedTensorVersioned versioned;
  } managed;
  plait_storage *storage;
  int64_t dims[1];  // shape, then strides
};

void drop(Exported *e) {
  unlist(e->storage);
  plait_release(e->storage);
  std::free(e);
}

void end_capsule(PyObject *capsule) {  // an unconsumed one
  const PendingError pending;
  for (const char *fresh : {"dltensor", "dltensor_versioned"})
    if (PyCapsule_IsValid(capsule, fresh))
      drop(static_cast<Exported *>(PyCapsule_GetPointer(capsule, fresh)));
}

}  // namespace

void exported(plait_storage *s, int out) {
  if (out) {
    list(s);
    __atomic_fetch_or(&s->flags, PLAIT_STORAGE_EXPORTED, __ATOMIC_RELAXED);
  } else {
    unlist(s);
  }
}

plait_storage *exported_storage(const void *begin, const void *end) {
  Registry &r = registry();
  const std::lock_guard<ForkMutex> lock(r.mutex);
  auto it = r.by_begin.upper_bound(static_cast<const char *>(begin));
  if (it == r.by_begin.begin()) return nullptr;
  plait_storage *s = (--it)->second.storage;
  if (static_cast<const char *>(end) > static_cast<const char *>(s->data) + s->nbytes)
    return nullptr;
  plait_retain(s);
  return s;
}

// The streams of `__dlpack__` by number, as the array API standard has them: of CUDA 1 is the
// default one and 0 is refused, of ROCm 0 is the default one and 1 and 2 are refused; None is the
// default one, -1 wants no waiting. Other numbers are the device's own handles; 0 is the default
// stream.
int hand_over(plait_tensor *t, PyObject *stream) {
  const DLDevice d = t->dl.device;
  const bool given = stream && stream != Py_None;
  const int64_t number = given ? PyLong_AsLongLong(stream) : 0;
  if (given && number == -1 && PyErr_Occurred()) {
    PyErr_Clear();
    PyErr_Format(PyExc_TypeError, "__dlpack__: `stream` must be an int or None, got %R", stream);
    return -1;
  }
  if (given && number == -1) return 0;
  // the standard's numbers for streams without a handle; what is larger is a live stream's handle
  const bool is_default = number <= (d.device_type == kDLCUDA ? 1 : 2);
  const bool refused =
      given && (!is_accelerator(d) || number < 0 || (number > 2 && number < 4096) ||
                (d.device_type == kDLCUDA && number == 0) ||
                (d.device_type == kDLROCM && (number == 1 || number == 2)));
  if (refused) {
    const char *what = is_accelerator(d) ? "the number of a stream, -1 or None" : "None or -1";
    PyErr_Format(PyExc_BufferError, "__dlpack__: `stream` must be %s for a tensor on %s, got %R",
                 what, device_text(state.runtime, d).c_str(), stream);
    return -1;
  }
  if (!is_accelerator(d)) return 0;
  const plait_runtime *runtime = state.runtime;
  plait_thread *thread = runtime->thread();
  plait_stream *ours = runtime->stream(thread, d), *theirs = nullptr;
  plait_status s = PLAIT_OK;
  if (!is_default)
    s = runtime->stream_wrap(thread, d, reinterpret_cast<void *>(uintptr_t(number)), &theirs);
  const bool one = ours && theirs ? ours->native == theirs->native : ours == theirs;
  if (s >= 0 && !one) s = wait_between(thread, d, ours, d, theirs);
  plait_release(theirs);
  return s < 0 ? (raise(thread, s), -1) : 0;
}

PyObject *export_dlpack(plait_tensor *t, int versioned, uint64_t flags) {
  if (t->dl.device.device_type == PLAIT_META) {
    PyErr_SetString(PyExc_BufferError,
                    "__dlpack__: a tensor with bytes is required, got one on the device meta");
    return nullptr;
  }
#ifdef Py_GIL_DISABLED
  // another thread may replace the tensor's memory: an alias has one size and one memory
  Tensor alias;
  plait_thread *thread = state.runtime->thread();
  if (const plait_status s = state.runtime->tensor_alias(thread, t, alias.out()); s < 0)
    return raise(thread, s);
  t = alias.get();
#endif
  const bool readonly = t->storage->flags & PLAIT_STORAGE_READONLY;
  if (readonly && !versioned) {
    PyErr_SetString(
        PyExc_BufferError,
        "__dlpack__: a read-only tensor needs a consumer of DLPack 1.0 (max_version=(1, 0))");
    return nullptr;
  }
  const auto n = size_t(t->dl.ndim);
  auto *e = static_cast<Exported *>(std::calloc(1, sizeof(Exported) + 2 * n * sizeof(int64_t)));
  if (!e) return PyErr_SetString(PyExc_MemoryError, "out of memory"), nullptr;
  if (n) {
    memcpy(e->dims, t->dl.shape, n * sizeof(int64_t));
    memcpy(e->dims + n, t->dl.strides, n * sizeof(int64_t));
  }
  e->storage = t->storage;
  plait_retain(e->storage);
  exported(e->storage, 1);
  DLTensor dl = t->dl;
  dl.shape = e->dims;
  dl.strides = e->dims + n;
  if (versioned) {
    DLManagedTensorVersioned &m = e->managed.versioned;
    m.version = {DLPACK_MAJOR_VERSION, DLPACK_MINOR_VERSION};
    m.flags = flags | (readonly ? DLPACK_FLAG_BITMASK_READ_ONLY : 0);
    m.dl_tensor = dl;
    m.deleter = [](DLManagedTensorVersioned *self) { drop(reinterpret_cast<Exported *>(self)); };
  } else {
    DLManagedTensor &m = e->managed.old;
    m.dl_tensor = dl;
    m.deleter = [](DLManagedTensor *self) { drop(reinterpret_cast<Exported *>(self)); };
  }
  PyObject *capsule = PyCapsule_New(e, versioned ? "dltensor_versioned" : "dltensor", end_capsule);
  if (!capsule) drop(e);
  return capsule;
}

}  // namespace plait::python
