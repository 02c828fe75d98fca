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
