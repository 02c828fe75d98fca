#include "kernel/packed_weight.h"

#include <plait/fork.hpp>

#include <cstdlib>
#include <mutex>

#include "kernel/settings.h"

namespace plait::core {
namespace {

constexpr int kDims = 5;
constexpr uint64_t kSmallest = 4096;  // bytes of weights: to pack fewer takes no time
constexpr uint64_t kMost = uint64_t(512) << 20;  // bytes that are kept
constexpr uint32_t kBuckets = 1024;
// Memory that other code may write.
constexpr uint64_t kForeign = PLAIT_STORAGE_EXTERNAL | PLAIT_STORAGE_SHARED | PLAIT_STORAGE_MAPPED |
                              PLAIT_STORAGE_EXPORTED | PLAIT_STORAGE_PINNED;

struct Key {
  const void *data;
  DLDataType dtype;
  PackedForm form;
  uint64_t bytes;
  int ndim;
  int64_t shape[kDims], strides[kDims];
  bool operator==(const Key &o) const {
    if (data != o.data || form != o.form || bytes != o.bytes || ndim != o.ndim ||
        memcmp(&dtype, &o.dtype, sizeof dtype) != 0)
      return false;
    for (int i = 0; i < ndim; i++)
      if (shape[i] != o.shape[i] || strides[i] != o.strides[i]) return false;
    return true;
  }
};

}  // namespace

struct KeptBytes {
  KeptBytes *next;  // of the same storage
  Key key;
  uint64_t version;  // of the storage when the bytes were requested
  bool asked, making;
  uint32_t users;
  void *data, *block;
  const plait_allocator *from;
};

namespace {

// A storage whose weights were requested. Its type is replaced by one whose drop comes here.
struct Watched {
  Watched *next;
  plait_storage *storage;
  const plait_type *type;
  KeptBytes *kept;
};

ForkMutex mutex;
using Lock = std::lock_guard<ForkMutex>;
Watched *watched[kBuckets];
uint64_t kept_bytes;  // atomic

Watched **place_of(const plait_storage *s) {
  const uint64_t mixed = (reinterpret_cast<uintptr_t>(s) >> 4) * 0x9E3779B97F4A7C15u;
  Watched **at = &watched[mixed >> 54];
  while (*at && (*at)->storage != s) at = &(*at)->next;
  return at;
}

void free_bytes(KeptBytes *k) {
  if (!k->data) return;
  k->from->free(k->from->ctx, k->data, k->key.bytes, k->block);
  k->data = nullptr;
  __atomic_fetch_sub(&kept_bytes, k->key.bytes, __ATOMIC_RELAXED);
}

void drop_watched(plait_object *o) {
  Watched *w;
  {
    const Lock lock(mutex);
    Watched **at = place_of(reinterpret_cast<plait_storage *>(o));
    w = *at;
    *at = w->next;
  }
  o->type = w->type;
  while (KeptBytes *k = w->kept) {  // they are unused: a call would hold the storage
    w->kept = k->next;
    free_bytes(k);
    std::free(k);
  }
  std::free(w);
  o->type->drop(o);
}

const plait_type watched_type{PLAIT_HEADER(plait_type), "storage", drop_watched};

template <class T>
T *make() {
  return static_cast<T *>(std::calloc(1, sizeof(T)));
}

Watched *watch(plait_storage *s) {
  Watched **at = place_of(s);
  if (*at) return *at;
  Watched *w = make<Watched>();
  if (!w) return nullptr;
  w->storage = s;
  w->type = s->o.type;
  *at = w;
  s->o.type = &watched_type;  // its last owner, which reads it, releases it after this call
  return w;
}

KeptBytes *entry(plait_storage *s, const Key &key) {
  Watched *w = watch(s);
  if (!w) return nullptr;
  for (KeptBytes *k = w->kept; k; k = k->next)
    if (k->key == key) return k;
  KeptBytes *k = make<KeptBytes>();
  if (!k) return nullptr;
  k->key = key;
  k->next = w->kept;
  w->kept = k;
  return k;
}

bool key_of(const plait_tensor *t, PackedForm form, uint64_t bytes, Key *key) {
  const DLTensor &d = t->dl;
  if (d.ndim > kDims) return false;
  *key = {d.data, d.dtype, form, bytes, d.ndim, {}, {}};
  for (int i = 0; i < d.ndim; i++) {
    key->shape[i] = d.shape[i];
    key->strides[i] = d.strides[i];
  }
  return true;
}

// Bytes of a storage, or of all, that are not those of the weights as they are now.
void drop_old(Watched *w, bool all) {
  const uint64_t version = __atomic_load_n(&w->storage->version, __ATOMIC_ACQUIRE);
  const bool foreign = __atomic_load_n(&w->storage->flags, __ATOMIC_RELAXED) & kForeign;
  for (KeptBytes *k = w->kept; k; k = k->next)
    if ((all || foreign || k->version != version) && !k->users && !k->making) free_bytes(k);
}

void drop_all() {
  for (Watched *first : watched)
    for (Watched *w = first; w; w = w->next) drop_old(w, true);
}

}  // namespace

bool may_keep_packed(const plait_call *c, int i) {
  const plait_storage *s = c->in[i].u.t->storage;
  const plait_engine *e = PLAIT_ROLE(plait_engine, engine_role);
  return keeps_packed_weights() && (!e || (c->thread->excluded >> e->layer & 1)) &&
         !(__atomic_load_n(&s->flags, __ATOMIC_RELAXED) & kForeign) && s->allocator &&
         !(c->owned >> i & 1) && s->nbytes >= kSmallest;
}

void PackedWeight::pass(const plait_call *c, int i) {
  if (!__atomic_load_n(&kept_bytes, __ATOMIC_RELAXED)) return;
  const Lock lock(mutex);
  if (Watched *w = *place_of(c->in[i].u.t->storage)) drop_old(w, false);
}

bool PackedWeight::find(const plait_call *c, int i, PackedForm form, uint64_t bytes) {
  const plait_tensor *t = c->in[i].u.t;
  plait_storage *s = t->storage;
  const bool may = may_keep_packed(c, i);
  if (!may && !__atomic_load_n(&kept_bytes, __ATOMIC_RELAXED)) return false;
  const uint64_t version = __atomic_load_n(&s->version, __ATOMIC_ACQUIRE);
  const Lock lock(mutex);
  if (!keeps_packed_weights()) drop_all();
  Key key;
  if (!may || !key_of(t, form, bytes, &key)) {
    if (Watched *w = *place_of(s)) drop_old(w, false);
    return false;
  }
  KeptBytes *k = entry(s, key);
  if (!k || k->making || (k->users && k->version != version)) return false;
  if (k->version != version || !k->asked) {
    free_bytes(k);
    k->version = version;
    k->asked = true;
    return false;
  }
  k->users++;
  kept_ = k;
  data_ = k->data;
  making_ = k->making = !k->data;
  return !making_;
}

plait_status PackedWeight::room(const plait_call *c, uint64_t bytes) {
  if (making_) {
    const uint64_t all = __atomic_add_fetch(&kept_bytes, bytes, __ATOMIC_RELAXED);
    kept_->from = PLAIT_ROLE(plait_allocator, roles.memory);
    if (all <= kMost && kept_->from->alloc(kept_->from->ctx, DLDevice{kDLCPU, 0}, bytes, nullptr,
                                           &kept_->data, &kept_->block) == PLAIT_OK) {
      data_ = kept_->data;
      return PLAIT_OK;
    }
    __atomic_fetch_sub(&kept_bytes, bytes, __ATOMIC_RELAXED);
    kept_->data = nullptr;
  }
  PLAIT_TRY(space_.take(c, bytes));
  data_ = space_.as<void>();
  return PLAIT_OK;
}

void PackedWeight::keep() {
  if (!making_) return;
  const Lock lock(mutex);
  kept_->making = making_ = false;
}

PackedWeight::~PackedWeight() {
  if (!kept_) return;
  const Lock lock(mutex);
  if (making_) {  // it failed
    free_bytes(kept_);
    kept_->making = false;
  }
  kept_->users--;
}

}  // namespace plait::core
