// Tensors, storages and generators: making, sharing, dropping.
#include <malloc.h>
#include <plait/place.h>
#include <plait/sparse.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>

#include "devices.hpp"
#include "uses.hpp"

namespace plait::abi {
namespace {

// What lies behind the fields of a storage: elements of small tensors of the CPU, with which a
// block fills malloc's 144 bytes; the stream of a storage of another device.
constexpr uint64_t kInlineBytes = 56;
constexpr uint64_t kInlineAt = (sizeof(plait_storage) + 15) / 16 * 16;
constexpr uint64_t kStorageBlock = kInlineAt + kInlineBytes;
void *inline_elements(plait_storage *s) { return reinterpret_cast<char *>(s) + kInlineAt; }
plait_stream *&stream_slot(plait_storage *s) {
  return *static_cast<plait_stream **>(inline_elements(s));
}
// number of freed blocks after which malloc returns pages to the system
constexpr int64_t kTrimAfter = 30000;

int64_t *inline_dims(plait_tensor *t) { return static_cast<TensorBlock *>(t)->inline_dims; }

void *take_block(BlockCache Thread::*cache, size_t size) {
  Thread *t = this_thread();
  if (void *p = (t->*cache).take()) return p;
  if (++t->live > t->peak) t->peak = t->live;
  return std::malloc(size);
}
void give_block(BlockCache Thread::*cache, void *p) {
  Thread *t = this_thread_if_alive();
  if (t && (t->*cache).give(p)) return;
  std::free(p);
  // malloc keeps the pages below its last live block: once many blocks are freed, give them back
  if (t && t->peak - --t->live > kTrimAfter) {
#if defined(__GLIBC__)
    malloc_trim(0);
#endif
    t->peak = t->live;
  }
}

// Memory for a list of tensors or for sizes and strides, most of which are small.
constexpr size_t kSmallBytes = 256;
void *take_bytes(size_t size) {
  return size <= kSmallBytes ? take_block(&Thread::small, kSmallBytes) : std::malloc(size);
}
void give_bytes(void *p, size_t size) {
  size <= kSmallBytes ? give_block(&Thread::small, p) : std::free(p);
}
size_t dims_bytes(int32_t ndim) { return 2 * size_t(ndim) * sizeof(int64_t); }

void watch_memory(uint32_t kind, const plait_storage *s) {
  if (!(__atomic_load_n(&observed, __ATOMIC_RELAXED) & kind)) return;
  plait_event e{};
  e.size = sizeof e;
  e.kind = kind;
  e.a = s->nbytes;
  e.b = reinterpret_cast<uint64_t>(s->data);
  e.device = s->device;
  emit(&e);
}

void drop_storage(plait_object *o) {
  auto *s = reinterpret_cast<plait_storage *>(o);
  // what others lent, and storages without bytes, had no ALLOC event either
  if (s->allocator || s->data == inline_elements(s)) watch_memory(PLAIT_EVENT_FREE, s);
  const bool on_device = is_accelerator(s->device);
  if (on_device) count_live(s->device, -1);
  if (on_device && is_gone(s->device)) {
    // its memory is the parent's
  } else if (s->allocator) {
    s->allocator->free(s->allocator->ctx, s->data, s->nbytes, s->block);
  } else if (s->release) {
    s->release(s->block);
  }
  if (on_device) plait_release(stream_slot(s));
  give_block(&Thread::storages, s);
}

void drop_tensor(plait_object *o) {
  auto *t = reinterpret_cast<plait_tensor *>(o);
  for (const int i : {0, 2, 3})
    if (t->slot[i]) plait_release_object(static_cast<plait_object *>(t->slot[i]));
  if (const plait_host *host = in_force(roles.host); host && t->flags & PLAIT_TENSOR_OWNS_WRAPPER)
    host->release(host->ctx, t->slot[1]);
  if (t->dl.shape != inline_dims(t)) give_bytes(t->dl.shape, dims_bytes(t->dl.ndim));
  plait_release(t->storage);
  plait_release(t->base);
  give_block(&Thread::tensors, t);
}

void drop_generator(plait_object *o) {
  plait_release_object(reinterpret_cast<plait_generator *>(o)->state);
  std::free(o);
}
const plait_type generator_type{PLAIT_HEADER(plait_type), "generator", drop_generator};

plait_storage *storage_block(DLDevice device, uint64_t nbytes) {
  auto *s = static_cast<plait_storage *>(take_block(&Thread::storages, kStorageBlock));
  if (!s) return nullptr;
  stream_slot(s) = nullptr;
  s->o = {1, &storage_type};
  s->nbytes = nbytes;
  s->version = s->flags = 0;
  s->device = device;
  s->allocator = nullptr;
  s->block = nullptr;
  s->release = nullptr;
  if (is_accelerator(device)) count_live(device, 1);
  return s;
}
// Takes back a storage that got no memory.
void give_back(plait_storage *s) {
  if (is_accelerator(s->device)) {
    count_live(s->device, -1);
    plait_release(stream_slot(s));
  }
  give_block(&Thread::storages, s);
}

std::string size_text(uint64_t bytes) {  // "3.00 GiB (3221225472 bytes)"
  static const char *units[] = {"KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
  char out[64];
  if (bytes < 1024) {
    std::snprintf(out, sizeof out, "%llu bytes", (unsigned long long)bytes);
    return out;
  }
  double size = double(bytes) / 1024;
  int unit = 0;
  for (; size >= 1024 && unit < 5; unit++) size /= 1024;
  std::snprintf(out, sizeof out, "%.2f %s (%llu bytes)", size, units[unit],
                (unsigned long long)bytes);
  return out;
}

// A handle with its sizes and strides set; takes over the storage reference.
plait_status handle(plait_thread *thread, plait_storage *storage, void *data, DLDataType dtype,
                    int32_t ndim, const int64_t *shape, const int64_t *strides,
                    plait_tensor **out) {
  auto *t = static_cast<plait_tensor *>(take_block(&Thread::tensors, sizeof(TensorBlock)));
  int64_t *dims = t ? inline_dims(t) : nullptr;
  if (t && ndim > 5) dims = static_cast<int64_t *>(take_bytes(dims_bytes(ndim)));
  if (!dims) {
    std::free(t);
    plait_release(storage);
    return raise(thread, PLAIT_MEMORY_ERROR, nullptr, "out of memory for a tensor handle");
  }
  t->o = {1, &tensor_type};
  static_cast<TensorBlock *>(t)->uses = 0;
  t->dl = {data, storage->device, ndim, dtype, dims, dims + ndim, 0};
  if (ndim <= 5) t->dl.strides = dims + 5;
  t->storage = storage;
  t->layers = t->flags = 0;
  t->slot[0] = t->slot[1] = t->slot[2] = t->slot[3] = nullptr;
  t->base = nullptr;
  if (ndim) std::memcpy(t->dl.shape, shape, size_t(ndim) * sizeof(int64_t));
  if (strides) {
    if (ndim) std::memcpy(t->dl.strides, strides, size_t(ndim) * sizeof(int64_t));
  } else {
    int64_t step = 1;
    for (int32_t i = ndim - 1; i >= 0; i--) {
      t->dl.strides[i] = step;
      if (shape[i] > 1)
        step =
            int64_t(uint64_t(step) * uint64_t(shape[i]));  // may overflow; then nothing is stored
    }
  }
  *out = t;
  return PLAIT_OK;
}

// The number of elements of a new storage; negative sizes, too many dimensions and overflow are
// errors.
plait_status fresh_extent(plait_thread *thread, DLDataType dtype, int32_t ndim,
                          const int64_t *shape, const int64_t *strides, uint64_t *nbytes) {
  if (ndim < 0 || ndim > PLAIT_MAX_DIMS)
    return raise(thread, PLAIT_SHAPE_ERROR, nullptr, "a tensor has at most %d dimensions; got %d",
                 PLAIT_MAX_DIMS, ndim);
  if (dtype.lanes != 1 || itemsize(dtype) == 0)
    return raise(thread, PLAIT_DTYPE_ERROR, nullptr,
                 "dtype with code %d, %d bits and %d lanes is not supported", dtype.code,
                 dtype.bits, dtype.lanes);
  bool empty = false, overflow = false;
  int64_t last = 0, count = 1;
  for (int32_t i = 0; i < ndim; i++) {
    int64_t step = 0;
    if (shape[i] < 0)
      return raise(thread, PLAIT_SHAPE_ERROR, nullptr, "sizes must not be negative; got %s",
                   text(shape, ndim).c_str());
    if (strides && strides[i] < 0)
      return raise(thread, PLAIT_SHAPE_ERROR, nullptr,
                   "a new tensor's strides must not be negative; got %s",
                   text(strides, ndim).c_str());
    empty |= shape[i] == 0;
    if (shape[i] == 0) continue;
    overflow |= __builtin_mul_overflow(count, shape[i], &count);
    if (strides) overflow |= __builtin_mul_overflow(strides[i], shape[i] - 1, &step);
    overflow |= __builtin_add_overflow(last, step, &last);
  }
  int64_t elements = strides ? last + 1 : count, bytes = 0;
  overflow |= __builtin_mul_overflow(elements, itemsize(dtype), &bytes);
  // The product of the other sizes must fit too if one is 0: code may multiply some of the sizes.
  if (overflow)
    return raise(thread, PLAIT_SHAPE_ERROR, nullptr,
                 "shape %s of %s has more bytes than 64 bits can count", text(shape, ndim).c_str(),
                 plait::name(dtype));
  *nbytes = empty ? 0 : uint64_t(bytes);
  return PLAIT_OK;
}

// Gives a storage memory. PLAIT_MEMORY_ERROR without an error in the thread says that there is
// none.
plait_status allocate(plait_thread *thread, const plait_allocator *a, plait_storage *s,
                      plait_stream *stream) {
  const plait_error *before = thread->error;
  const plait_status status = a->alloc(a->ctx, s->device, s->nbytes, stream, &s->data, &s->block);
  if (status == PLAIT_OK || (is_code(status) && thread->error && thread->error != before))
    return status;
  clear(thread);
  // before 0.5 every status meant that there is no memory
  const bool is_new = a->h.major || a->h.minor >= 5;
  if (!is_new || status > 0 || status == PLAIT_MEMORY_ERROR) return PLAIT_MEMORY_ERROR;
  return raise(thread, is_own_code(status) ? status : PLAIT_ERROR, nullptr,
               "`alloc` of the allocator `%s` failed with status %d and gave no text", a->name,
               status);
}

}  // namespace

plait_stream *stream_of(const plait_storage *s) {
  return is_accelerator(s->device) ? stream_slot(const_cast<plait_storage *>(s)) : nullptr;
}

const plait_type tensor_type{PLAIT_HEADER(plait_type), "tensor", drop_tensor};
const plait_type storage_type{PLAIT_HEADER(plait_type), "storage", drop_storage};

void BlockCache::drain() {
  while (n_) std::free(block_[--n_]);
}

Extent extent(const plait_tensor *t) {
  int64_t low = 0, high = 0;
  for (int32_t i = 0; i < t->dl.ndim; i++) {
    if (t->dl.shape[i] == 0) return {nullptr, nullptr};
    const int64_t span = (t->dl.shape[i] - 1) * t->dl.strides[i];
    (span < 0 ? low : high) += span;
  }
  const auto *p = static_cast<const char *>(t->dl.data);
  const int64_t size = itemsize(t->dl.dtype);
  return {p + low * size, p + (high + 1) * size};
}

plait_status storage_new(plait_thread *thread, DLDevice device, uint64_t nbytes,
                         plait_storage **out) {
  plait_storage *s = storage_block(device, nbytes);
  if (!s) return raise(thread, PLAIT_MEMORY_ERROR, nullptr, "out of memory for a storage");
  s->data = nullptr;
  if (device.device_type == PLAIT_META || nbytes == 0) {
    *out = s;
    return PLAIT_OK;
  }
  const auto type = uint32_t(device.device_type);
  const plait_allocator *a =
      type < PLAIT_MAX_DEVICE_TYPES ? in_force(roles.allocator[type]) : nullptr;
  if (!a) {
    give_back(s);
    return no_device(thread, device);
  }
  plait_stream *stream = nullptr;
  if (type != kDLCPU) {
    if (const plait_status refused = begin_use(thread, device); refused < 0) {
      give_back(s);
      return refused;
    }
    stream = current_stream(thread, device);
    if (stream) plait_retain(stream);
    stream_slot(s) = stream;
  }
  if (type == kDLCPU && nbytes <= kInlineBytes && nbytes < a->inline_below) {
    s->data = inline_elements(s);
  } else if (const plait_status refused = allocate(thread, a, s, stream); refused != PLAIT_OK) {
    give_back(s);
    if (refused != PLAIT_MEMORY_ERROR || thread->error) return refused;
    plait_alloc_stats stats{};
    stats.size = sizeof stats;
    if (a->stats) a->stats(a->ctx, device, &stats);
    return raise(thread, PLAIT_MEMORY_ERROR, nullptr,
                 "out of memory: %s requested; %s are live in %llu blocks, %s are cached, of which "
                 "the largest free block has %s",
                 size_text(nbytes).c_str(), size_text(stats.live_bytes).c_str(),
                 (unsigned long long)stats.live_blocks, size_text(stats.cached_bytes).c_str(),
                 size_text(stats.largest_cached).c_str());
  } else {
    s->allocator = a;
    if (!s->data || uint64_t(reinterpret_cast<uintptr_t>(s->data)) % 64) {
      void *address = s->data;
      a->free(a->ctx, address, nbytes, s->block);
      give_back(s);
      return raise(thread, PLAIT_ERROR, nullptr,
                   "the allocator `%s` for %s gave memory at %p; an address that is a multiple of "
                   "64 is required",
                   a->name, device_text(device).c_str(), address);
    }
  }
  watch_memory(PLAIT_EVENT_ALLOC, s);
  *out = s;
  return PLAIT_OK;
}

plait_status storage_wrap(plait_thread *thread, void *data, uint64_t nbytes, DLDevice device,
                          uint64_t flags, void (*release)(void *), void *block,
                          plait_storage **out) {
  plait_storage *s = storage_block(device, nbytes);
  if (!s) return raise(thread, PLAIT_MEMORY_ERROR, nullptr, "out of memory for a storage");
  s->data = data;
  s->flags = flags | PLAIT_STORAGE_EXTERNAL;
  s->release = release;
  s->block = block;
  *out = s;
  return PLAIT_OK;
}

// The place on this thread for a result of that size, which is its own from now on; or nullptr.
static const plait_place *take_place(plait_thread *thread, uint64_t nbytes) {
  void **link = &thread->slot[2];
  for (auto *p = static_cast<plait_place *>(*link); p; p = p->next) {
    if (p->nbytes == nbytes) return *link = p->next, p;
    link = reinterpret_cast<void **>(&p->next);
  }
  return nullptr;
}

plait_status tensor_new(plait_thread *thread, DLDataType dtype, int32_t ndim, const int64_t *shape,
                        const int64_t *strides, DLDevice device, plait_tensor **out) {
  uint64_t nbytes = 0;
  plait_status s = fresh_extent(thread, dtype, ndim, shape, strides, &nbytes);
  plait_storage *storage = nullptr;
  if (__builtin_expect(thread->slot[2] != nullptr, 0) && s >= 0 && !strides &&
      device.device_type == kDLCPU) {
    if (const plait_place *place = take_place(thread, nbytes)) {
      plait_retain(place->storage);
      return handle(thread, place->storage, place->data, dtype, ndim, shape, nullptr, out);
    }
  }
  if (s >= 0) s = storage_new(thread, device, nbytes, &storage);
  return s < 0 ? s : handle(thread, storage, storage->data, dtype, ndim, shape, strides, out);
}

plait_status tensor_on(plait_thread *thread, plait_storage *storage, void *data, DLDataType dtype,
                       int32_t ndim, const int64_t *shape, const int64_t *strides,
                       plait_tensor **out) {
  if (ndim < 0 || ndim > PLAIT_MAX_DIMS)
    return raise(thread, PLAIT_SHAPE_ERROR, nullptr, "a tensor has at most %d dimensions; got %d",
                 PLAIT_MAX_DIMS, ndim);
  plait_status s = PLAIT_OK;
  plait_retain(storage);
  s = handle(thread, storage, data, dtype, ndim, shape, strides, out);
  if (s < 0) return s;
  bool overflow = false, empty = false, uncountable = false;
  int64_t low = 0, high = 0, count = 1;
  for (int32_t i = 0; i < ndim; i++) {
    int64_t span = 0;
    empty |= shape[i] <= 0;
    if (shape[i] < 0) {
      overflow = true;
      continue;
    }
    if (shape[i]) uncountable |= __builtin_mul_overflow(count, shape[i], &count);
    overflow |= __builtin_mul_overflow(shape[i] - 1, (*out)->dl.strides[i], &span);
    overflow |= __builtin_add_overflow(span < 0 ? low : high, span, span < 0 ? &low : &high);
  }
  overflow |= __builtin_mul_overflow(low, itemsize(dtype), &low);
  overflow |= __builtin_add_overflow(high, 1, &high) ||
              __builtin_mul_overflow(high, itemsize(dtype), &high);
  const int64_t at = static_cast<const char *>(data) - static_cast<const char *>(storage->data);
  overflow |= __builtin_add_overflow(at, low, &low) || __builtin_add_overflow(at, high, &high);
  const bool inside = !overflow && low >= 0 && high <= int64_t(storage->nbytes);
  bool negative = false;
  for (int32_t i = 0; i < ndim; i++) negative |= shape[i] < 0;
  if (!negative && !uncountable && (empty || inside || storage->device.device_type == PLAIT_META))
    return PLAIT_OK;
  plait_release(*out);
  *out = nullptr;
  if (uncountable)
    return raise(thread, PLAIT_SHAPE_ERROR, nullptr,
                 "shape %s has more elements than 64 bits can count", text(shape, ndim).c_str());
  return raise(thread, PLAIT_SHAPE_ERROR, nullptr,
               "shape %s with strides %s at byte %lld reaches outside a storage of %llu bytes",
               text(shape, ndim).c_str(), strides ? text(strides, ndim).c_str() : "in C order",
               (long long)at, (unsigned long long)storage->nbytes);
}

constexpr uint64_t layers_of_aliases() {
  uint64_t bits = 0;
  for (uint32_t bit = 0; bit < 64; bit++) bits |= uint64_t(sees_aliases(bit)) << bit;
  return bits;
}

plait_status tensor_alias(plait_thread *thread, plait_tensor *t, plait_tensor **out) {
  const Use use(t);
  plait_retain(t->storage);
  const plait_status s = handle(thread, t->storage, t->dl.data, t->dl.dtype, t->dl.ndim,
                                t->dl.shape, t->dl.strides, out);
  if (s >= 0) (*out)->flags |= t->flags & PLAIT_TENSOR_DATA;
  if (s >= 0) (*out)->layers |= t->layers & layers_of_aliases();
  if (s >= 0 && __builtin_expect(t->slot[3] != nullptr, 0)) {
    auto *sparse = static_cast<plait_sparse *>(t->slot[3]);
    plait_retain(sparse);
    (*out)->slot[3] = sparse;
    (*out)->layers |= sparse->layer;
  }
  return s;
}

plait_status tensor_repoint(plait_thread *thread, plait_tensor *t, plait_tensor *source) {
  if (t == source) return PLAIT_OK;
  plait_tensor *fresh = nullptr;
  if (const plait_status s = tensor_alias(thread, source, &fresh); s < 0) return s;
  const Exclusive alone(t);
  if (!alone) {
    plait_release(fresh);
    return raise(thread, PLAIT_ERROR, nullptr,
                 "the memory of a tensor would be replaced (.data, set_, resize_ or out=) while a "
                 "call of another thread uses the tensor; let the threads wait for each other");
  }
  // swap the fields that describe the bytes and keep those of the handle; the temporary then
  // releases the old bytes
  std::swap(t->dl, fresh->dl);
  std::swap(t->storage, fresh->storage);
  std::swap_ranges(inline_dims(t), inline_dims(t) + 10, inline_dims(fresh));
  std::swap(t->base, fresh->base);  // it is not a view of its old base
  for (plait_tensor *x : {t, fresh}) {
    if (x->dl.ndim > 5) continue;
    x->dl.shape = inline_dims(x);
    x->dl.strides = inline_dims(x) + 5;
  }
  plait_release(fresh);
  return PLAIT_OK;
}

plait_status tensors_value(plait_thread *thread, plait_tensor *const *list, uint32_t n,
                           plait_value *out) {
  auto **copy = static_cast<plait_tensor **>(take_bytes((n ? n : 1) * sizeof(plait_tensor *)));
  if (!copy)
    return raise(thread, PLAIT_MEMORY_ERROR, nullptr, "out of memory for a list of tensors");
  for (uint32_t i = 0; i < n; i++) {
    if (list[i]) plait_retain(list[i]);
    copy[i] = list[i];
  }
  *out = tensors(copy, n);
  return PLAIT_OK;
}

void release_value(plait_value *v) {
  if (v->tag == PLAIT_TENSOR) {
    plait_release(v->u.t);
  } else if (v->tag == PLAIT_OBJECT) {
    plait_release_object(v->u.o);
  } else if (v->tag == PLAIT_TENSORS) {
    for (uint32_t i = 0; i < v->n; i++) plait_release(v->u.ts[i]);
    give_bytes(const_cast<plait_tensor **>(v->u.ts), (v->n ? v->n : 1) * sizeof(plait_tensor *));
  }
  *v = none();
}

// Two racing writers may raise the version by 1 instead of 2; readers only test whether it changed.
void touched(plait_storage *s) {
  __atomic_store_n(&s->version, __atomic_load_n(&s->version, __ATOMIC_RELAXED) + 1,
                   __ATOMIC_RELAXED);
}

plait_generator *generator_new(uint64_t seed) {
  auto *g = static_cast<plait_generator *>(std::malloc(sizeof(plait_generator)));
  if (g) *g = {{1, &generator_type}, seed, 0, {kDLCPU, 0}, nullptr};
  return g;
}

}  // namespace plait::abi
