// What the files of deferred calls share: arguments and marks of calls, versions of storages, and
// the default generator.
#pragma once
#include <utility>

#include "deferral/deferral.hpp"

namespace plait::graph {

extern uint64_t deferral_layer;  // its bit; 0: there is no layer yet

// Of plait_storage::flags: it has a number in a path. Another storage at the address of one that is
// gone has not.
constexpr uint64_t storage_is_numbered = uint64_t(1) << 30;
inline bool is_numbered(const plait_storage *s) {
  return __atomic_load_n(&s->flags, __ATOMIC_RELAXED) & storage_is_numbered;
}

template <class F>
void each_tensor(const plait_value *values, uint16_t n, F &&f) {
  for (uint16_t i = 0; i < n; i++) {
    if (values[i].tag == PLAIT_TENSOR) f(values[i].u.t);
    if (values[i].tag != PLAIT_TENSORS) continue;
    for (uint32_t k = 0; k < values[i].n; k++)
      if (values[i].u.ts[k]) f(values[i].u.ts[k]);
  }
}

template <class F>
void each_tensor(const plait_call *c, F &&f) {
  each_tensor(c->in, c->n_in, f);
  if (c->form != PLAIT_FUNCTION) each_tensor(c->out, c->n_out, f);
}

inline void mark(plait_tensor *t) {
  __atomic_fetch_or(&t->layers, deferral_layer, __ATOMIC_RELAXED);
}
inline void unmark(plait_tensor *t) {
  if (__atomic_load_n(&t->layers, __ATOMIC_RELAXED) & deferral_layer)
    __atomic_fetch_and(&t->layers, ~deferral_layer, __ATOMIC_RELAXED);
}

inline uint64_t version_of(const plait_storage *s) {
  return __atomic_load_n(&s->version, __ATOMIC_ACQUIRE);
}
inline void set_version(plait_storage *s, uint64_t version) {
  __atomic_store_n(&s->version, version, __ATOMIC_RELEASE);
}

inline plait_generator *default_generator() {
  const auto *rng = role<plait_rng>(runtime);
  return rng ? rng->default_generator(rng->ctx) : nullptr;
}
inline uint64_t offset_of(const plait_generator *g) {
  return g ? __atomic_load_n(&g->offset, __ATOMIC_ACQUIRE) : 0;
}
inline void set_offset(plait_generator *g, uint64_t offset) {
  __atomic_store_n(&g->offset, offset, __ATOMIC_RELEASE);
}

// Calls f without the lock of the host language.
template <class F>
void without_host_lock(F &&f) {
  const auto *host = role<plait_host>(runtime);
  if (!host) return f();
  host->unlocked(
      host->ctx, [](void *arg) { (*static_cast<std::remove_reference_t<F> *>(arg))(); }, &f);
}

// Waits for another thread without the lock of the host language, which that may need.
class Deferral::Lock {
 public:
  explicit Lock(std::recursive_mutex *m) : mutex_(m) {
    if (!m->try_lock()) without_host_lock([m] { m->lock(); });
  }
  Lock(const Lock &) = delete;
  Lock &operator=(const Lock &) = delete;
  ~Lock() { mutex_->unlock(); }

 private:
  std::recursive_mutex *mutex_;
};

}  // namespace plait::graph
