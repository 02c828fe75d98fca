// What the function of a layer needs of its thread: the masks of plait_thread that say which layers
// see a call (docs/design/0033).
#ifndef PLAIT_LAYER_HPP
#define PLAIT_LAYER_HPP
#include "abi.h"

namespace plait {

// The layers below 16: they give the bytes of a tensor another meaning
// (plait_runtime::tensor_alias). The elements of a tensor with one of them are not in its own
// bytes.
constexpr uint64_t layers_of_bytes = 0xffff;

// Of plait_storage::flags: a layer has a reference for calls that wait (docs/design/0054). The one
// who asks whether a storage has a sole owner does not count it.
constexpr uint64_t storage_waits = uint64_t(1) << 31;

inline bool has_sole_owner(const plait_storage *s) {
  const bool waits = __atomic_load_n(&s->flags, __ATOMIC_RELAXED) & storage_waits;
  return __atomic_load_n(&s->o.refs, __ATOMIC_ACQUIRE) == (waits ? 2u : 1u);
}

// The calls that wait to write to a tensor of the CPU are made. It is called by who is about to use
// its bytes without an operator.
inline plait_status make_waiting_calls(plait_thread *thread, plait_tensor *t) {
  if (!(__atomic_load_n(&t->storage->flags, __ATOMIC_RELAXED) & storage_waits)) return PLAIT_OK;
  plait_tensor *here = nullptr;
  const plait_status s = thread->runtime->host_copy(thread, t, &here);
  plait_release(here);
  return s;
}

// The layers above the one with this bit are off for a scope. The layer itself sees the calls on
// tensors that are marked, and all calls only where it saw the whole: the parts of a decomposition
// are seen as the whole was.
class InsideLayer {
 public:
  InsideLayer(plait_thread *t, uint64_t bit, bool seen = false)
      : thread_(t), excluded_(t->excluded), included_(t->included) {
    t->excluded |= ~(bit | (bit - 1));
    if (!seen) t->included &= ~bit;
  }
  InsideLayer(const InsideLayer &) = delete;
  InsideLayer &operator=(const InsideLayer &) = delete;
  ~InsideLayer() {
    thread_->excluded = excluded_;
    thread_->included = included_;
  }

 private:
  plait_thread *thread_;
  uint64_t excluded_, included_;
};

// Shows every call of a thread to the layer with this bit, or no longer; whether it was so.
inline bool watch_calls(plait_thread *t, uint64_t bit, bool on) {
  const bool before = t->included & bit;
  t->included = on ? t->included | bit : t->included & ~bit;
  return before;
}

}  // namespace plait
#endif  // PLAIT_LAYER_HPP
