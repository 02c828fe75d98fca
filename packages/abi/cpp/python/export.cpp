// Export of a tensor's bytes by DLPack, with a capsule or without. The export keeps the storage
// alive, not the handle: `p.data = q` must not change what a consumer sees.
#include <plait/fork.hpp>

#include <map>

#include "binding.hpp"

namespace plait::python {
namespace {

// Exported storages, by their first byte. An array of another library that lies within one of them
// is imported as that storage, so that writes through it raise the storage's version. An export
// keeps its storage alive, so every entry with exports is alive. One without exports stays for a
// while, for the next export of the same bytes: its storage is not read.
struct Out {
  plait_storage *storage;
  uint64_t exports;
};
struct Registry {
  ForkMutex mutex;
  std::map<const char *, Out> by_begin;
  uint64_t unused = 0;  // entries without exports
};
constexpr uint64_t most_unused = 64;
Registry *const all = new Registry;  // never destroyed: deleters may run after static objects
Registry &registry() { return *all; }
bool is_listed(const plait_storage *s) { return s->device.device_type == kDLCPU && s->nbytes > 0; }

Out *list(plait_storage *s) {
  if (!is_listed(s)) return nullptr;
  Registry &r = registry();
  const std::lock_guard<ForkMutex> lock(r.mutex);
  const auto [at, fresh] = r.by_begin.try_emplace(static_cast<const char *>(s->data), Out{s, 0});
  Out &out = at->second;
  if (!fresh && !out.exports) {
    out.storage = s;
    r.unused--;
  }
  if (out.storage != s) return nullptr;
  out.exports++;
  return &out;
}

void forget_unused(Registry &r) {
  for (auto it = r.by_begin.begin(); it != r.by_begin.end();)
    it = it->second.exports ? std::next(it) : r.by_begin.erase(it);
  r.unused = 0;
}

void unlist(Out *out) {
  if (!out) return;
  Registry &r = registry();
  const std::lock_guard<ForkMutex> lock(r.mutex);
  if (--out->exports == 0 && ++r.unused > most_unused) forget_unused(r);
}

struct Exported {
  union {
    DLManagedTensor old;
    DLManagedTensorVersioned versioned;
  } managed;
  plait_storage *storage;
  Out *listed;
  int64_t dims[1];  // shape, then strides
};

void drop(Exported *e) {
  unlist(e->listed);
  plait_release(e->storage);
  std::free(e);
}

void end_capsule(PyObject *capsule) {  // an unconsumed one
  const PendingError pending;
  for (const char *fresh : {"dltensor", "dltensor_versioned"})
    if (PyCapsule_IsValid(capsule, fresh))
      drop(static_cast<Exported *>(PyCapsule_GetPointer(capsule, fresh)));
}

Out *handed_out(plait_storage *s) {
  if (!(__atomic_load_n(&s->flags, __ATOMIC_RELAXED) & PLAIT_STORAGE_EXPORTED))
    __atomic_fetch_or(&s->flags, PLAIT_STORAGE_EXPORTED, __ATOMIC_RELAXED);
  return list(s);
}

}  // namespace

void exported(plait_storage *s, int out) {
  if (out) {
    handed_out(s);
  } else if (is_listed(s)) {
    Registry &r = registry();
    Out *listed = nullptr;
    {
      const std::lock_guard<ForkMutex> lock(r.mutex);
      const auto it = r.by_begin.find(static_cast<const char *>(s->data));
      if (it != r.by_begin.end() && it->second.storage == s && it->second.exports)
        listed = &it->second;
    }
    unlist(listed);
  }
}

plait_storage *exported_storage(const void *begin, const void *end) {
  Registry &r = registry();
  const std::lock_guard<ForkMutex> lock(r.mutex);
  auto it = r.by_begin.upper_bound(static_cast<const char *>(begin));
  do {
    if (it == r.by_begin.begin()) return nullptr;
    --it;
  } while (!it->second.exports);
  plait_storage *s = it->second.storage;
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
    const char *subject = is_accelerator(d) ? "the number of a stream, -1 or None" : "None or -1";
    PyErr_Format(PyExc_BufferError, "__dlpack__: `stream` must be %s for a tensor on %s, got %R",
                 subject, device_text(state.runtime, d).c_str(), stream);
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

namespace {

// An export of a tensor's bytes; nullptr if there is no memory. What the two kinds of struct differ
// in is not filled.
Exported *new_export(plait_tensor *t, DLTensor *(*part)(Exported *)) {
  const auto n = size_t(t->dl.ndim);
  auto *e = static_cast<Exported *>(std::malloc(sizeof(Exported) + 2 * n * sizeof(int64_t)));
  if (!e) return nullptr;
  for (size_t i = 0; i < n; i++) {
    e->dims[i] = t->dl.shape[i];
    e->dims[n + i] = t->dl.strides[i];
  }
  e->storage = t->storage;
  plait_retain(e->storage);
  e->listed = handed_out(e->storage);
  DLTensor *dl = part(e);
  *dl = t->dl;
  dl->shape = e->dims;
  dl->strides = e->dims + n;
  return e;
}

bool has_bytes(const plait_tensor *t) {
  if (t->dl.device.device_type != PLAIT_META) return true;
  PyErr_SetString(PyExc_BufferError,
                  "__dlpack__: a tensor with bytes is required, got one on the device meta");
  return false;
}

// The tensor to export. Where there is no global lock another thread may replace its memory
// meanwhile; an alias has one size and one memory.
class Steady {
 public:
  explicit Steady(plait_tensor *t) : tensor_(t) {
#ifdef Py_GIL_DISABLED
    plait_thread *thread = state.runtime->thread();
    const plait_status s = state.runtime->tensor_alias(thread, t, alias_.out());
    if (s < 0) raise(thread, s);
    tensor_ = s < 0 ? nullptr : alias_.get();
#endif
  }
  plait_tensor *get() const { return tensor_; }  // nullptr with an exception

 private:
#ifdef Py_GIL_DISABLED
  Tensor alias_;
#endif
  plait_tensor *tensor_;
};

DLManagedTensor *new_unversioned(plait_tensor *tensor) {
  const Steady steady(tensor);
  plait_tensor *t = steady.get();
  if (!t) return nullptr;
  if (t->storage->flags & PLAIT_STORAGE_READONLY) {
    PyErr_SetString(
        PyExc_BufferError,
        "__dlpack__: a read-only tensor needs a consumer of DLPack 1.0 (max_version=(1, 0))");
    return nullptr;
  }
  Exported *e = new_export(t, [](Exported *result) { return &result->managed.old.dl_tensor; });
  if (!e) return PyErr_SetString(PyExc_MemoryError, "out of memory"), nullptr;
  e->managed.old.manager_ctx = nullptr;
  e->managed.old.deleter = [](DLManagedTensor *self) { drop(reinterpret_cast<Exported *>(self)); };
  return &e->managed.old;
}

}  // namespace

DLManagedTensorVersioned *new_managed(plait_tensor *t, uint64_t flags) {
  Exported *e =
      new_export(t, [](Exported *result) { return &result->managed.versioned.dl_tensor; });
  if (!e) return nullptr;
  DLManagedTensorVersioned &m = e->managed.versioned;
  m.version = {DLPACK_MAJOR_VERSION, DLPACK_MINOR_VERSION};
  m.manager_ctx = nullptr;
  m.flags =
      flags | (t->storage->flags & PLAIT_STORAGE_READONLY ? DLPACK_FLAG_BITMASK_READ_ONLY : 0);
  m.deleter = [](DLManagedTensorVersioned *self) { drop(reinterpret_cast<Exported *>(self)); };
  return &m;
}

DLManagedTensorVersioned *export_managed(plait_tensor *t, uint64_t flags) {
  if (!has_bytes(t)) return nullptr;
  const Steady steady(t);
  t = steady.get();
  if (!t) return nullptr;
  DLManagedTensorVersioned *result = new_managed(t, flags);
  if (!result) PyErr_SetString(PyExc_MemoryError, "out of memory");
  return result;
}

PyObject *export_dlpack(plait_tensor *t, int versioned, uint64_t flags) {
  if (!has_bytes(t)) return nullptr;
  void *result = versioned ? static_cast<void *>(export_managed(t, flags)) : new_unversioned(t);
  if (!result) return nullptr;
  PyObject *capsule =
      PyCapsule_New(result, versioned ? "dltensor_versioned" : "dltensor", end_capsule);
  if (!capsule) drop(static_cast<Exported *>(result));
  return capsule;
}

}  // namespace plait::python
