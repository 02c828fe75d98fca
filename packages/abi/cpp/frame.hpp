// Shared by the files that carry out a call: the call with its values, and what it may write to.
#pragma once
#include "runtime.hpp"

namespace plait::abi {

// The call as shape functions and kernels see it. `plait_call::size` tells a Frame from a bare
// plait_call.
struct Frame : plait_call {
  plait_value in_[PLAIT_MAX_ARGS];
  plait_value out_[PLAIT_MAX_RESULTS];
  plait_tensor *target[PLAIT_MAX_RESULTS];  // of the in-place and out= forms: where results must
                                            // end up (borrowed)
  std::vector<plait_tensor *> list;  // of a Tensor[] result that is growing
};

// The call as its maker wrote it; fields that the maker does not know are 0.
inline plait_call known_part(const plait_call *c) {
  if (__builtin_expect(c->size >= sizeof(plait_call), 1)) return *c;
  plait_call known{};
  std::memcpy(&known, c, c->size);
  return known;
}

inline void release_all(plait_value *v, uint16_t n) {
  for (uint16_t i = 0; i < n; i++) release_value(v + i);
}

template <class F>
void each_tensor(const plait_value *values, uint32_t n, F &&f) {
  for (uint32_t i = 0; i < n; i++) {
    if (values[i].tag == PLAIT_TENSOR) {
      f(values[i].u.t, values + i);
    } else if (values[i].tag == PLAIT_TENSORS) {
      for (uint32_t k = 0; k < values[i].n; k++)
        if (values[i].u.ts[k]) f(values[i].u.ts[k], values + i);
    }
  }
}

// The kernel that a device has for an operator, or nullptr.
inline const plait_entry *backend_entry(const plait_op *op, DLDeviceType type) {
  return uint64_t(type) < op->n_backend ? __atomic_load_n(&op->backend, __ATOMIC_ACQUIRE)[type]
                                        : nullptr;
}

// From dispatch.cpp.

// What a status of a shape function, kernel or decomposition means: more than PLAIT_DECLINE, and an
// error without a text of its own (`before` was the thread's error when it began), become errors
// that name the operator.
plait_status judged(const plait_call *, plait_status, const plait_error *before);
// Calls `op` below all layers, so that nothing is recorded; arguments from `n` on take their
// defaults.
plait_status base_call(const plait_op *op, plait_thread *, plait_value *in, uint16_t n,
                       plait_value *out);

// The error of a call for which there is no kernel; `results` are those that the shape function
// made, or nullptr.
plait_status no_kernel(const plait_call *, const plait_value *results = nullptr);

// From decomposition.cpp.

enum class Layers { off, on };
// Runs the function form; the other forms copy its result into their target by `copy_`, which
// layers see. `kept`: a layer keeps what the parts read.
plait_status decomposed(plait_call *, Layers, bool kept = false);
// Does for a composite what a shape function does: its decomposition, run on meta tensors, refuses
// wrong arguments and says what the results are. PLAIT_DECLINE where they depend on values.
plait_status shape_by_decomposition(Frame *);

// From targets.cpp.

plait_status writable(const plait_call *, const plait_tensor *, const char *name);
// Whether a result may end up in the target of the in-place or out= form; an `out` of another shape
// takes on its shape.
plait_status accept(const plait_call *, plait_tensor *target, DLDataType, int32_t ndim,
                    const int64_t *shape);
// Makes result `i` of a call with targets: the target itself, or a temporary with these strides
// (NULL: C order).
plait_status into_target(Frame *, uint32_t i, DLDataType, int32_t ndim, const int64_t *shape,
                         const int64_t *strides);
// The input that the result may be written over: a temporary of its shape, dtype and strides that
// nobody reads afterwards. NULL: none.
plait_tensor *overwritable(const Frame *, DLDataType, int32_t ndim, const int64_t *shape,
                           const int64_t *strides);
// Copies results of the in-place and out= forms from temporaries to their targets.
plait_status deliver(Frame *, plait_call *);
// Checks the arguments that the operator writes and makes copies of sources that overlap them;
// `written` gets their bits.
plait_status prepare_writes(Frame *, uint64_t *written);

// The thread's default device while it lives.
class DefaultDevice {
 public:
  DefaultDevice(plait_thread *thread, DLDevice device) : thread_(thread), before_(thread->device) {
    thread->device = device;
  }
  DefaultDevice(const DefaultDevice &) = delete;
  DefaultDevice &operator=(const DefaultDevice &) = delete;
  ~DefaultDevice() { thread_->device = before_; }

 private:
  plait_thread *thread_;
  DLDevice before_;
};

}  // namespace plait::abi
