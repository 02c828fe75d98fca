// Declarations that the files of libplait_autograd share: the runtime, the layer's bit and the
// operators that the engine calls.
#pragma once
#include <plait/layer.hpp>
#include <plait/plait.hpp>

#include <atomic>

#include "node.hpp"

namespace plait::autograd {

// An operator that is looked up at its first call, as the operator set may be loaded after the
// engine.
class LazyOperator {
 public:
  constexpr explicit LazyOperator(const char *name) : name_(name) {}
  const plait_op *get(plait_thread *thread);  // throws Error if it isn't defined

 private:
  const char *name_;
  std::atomic<const plait_op *> op_{nullptr};
};

struct Engine {
  const plait_runtime *runtime = nullptr;
  const plait_plugin *plugin = nullptr;
  uint64_t bit = 0;
  bool free_threads = false;  // the host has no global lock (plait/free_threads.h)
};
extern Engine engine;

inline plait_thread *this_thread() { return engine.runtime->thread(); }

// Sets the layers that this thread skips, for a scope.
class Excluding {
 public:
  Excluding(plait_thread *thread, bool record) : thread_(thread), before_(thread->excluded) {
    thread->excluded = record ? before_ & ~engine.bit : before_ | engine.bit;
  }
  ~Excluding() { thread_->excluded = before_; }
  Excluding(const Excluding &) = delete;
  Excluding &operator=(const Excluding &) = delete;

 private:
  plait_thread *thread_;
  uint64_t before_;
};

template <class... A>
[[noreturn]] void raise(plait_thread *thread, plait_status code, const std::string &origin,
                        const char *format, A... args) {
  throw Error(engine.runtime->raise(thread, code, origin.c_str(), format, args...));
}

// Whether the elements of a tensor are in its own bytes: those of a batched tensor of `vmap` are
// not.
inline bool has_own_bytes(const plait_tensor *t) { return !(t->layers & layers_of_bytes); }

// Operators (calls.cpp). They are recorded if the thread's mode says so.
Tensor add(plait_thread *, const Tensor &, const Tensor &);
void add_into(plait_thread *, const Tensor &target, const Tensor &);
Tensor alias(plait_thread *, const Tensor &);
Tensor clone(plait_thread *, const Tensor &);
Tensor cast(plait_thread *, const Tensor &, DType);
void copy_into(plait_thread *, const Tensor &target, const Tensor &source);
Tensor empty(plait_thread *, DType, DLDevice, const int64_t *shape, int32_t ndim);
Tensor zeros(plait_thread *, DType, DLDevice, const int64_t *shape, int32_t ndim);
Tensor ones(plait_thread *, DType, DLDevice, const int64_t *shape, int32_t ndim);
Tensor sum_to(plait_thread *, const Tensor &, const int64_t *shape, int32_t ndim);
// A copy of `memory`, a tensor of one dimension, to whose elements at these strides values are
// added. If an element occurs several times, all its values are added.
Tensor add_at(plait_thread *, const Tensor &memory, int32_t ndim, const int64_t *shape,
              const int64_t *strides, int64_t offset, const Tensor &values);
// Where the elements of a view lie in a tensor. Strides and offset count elements of the view's
// dtype; one of both dtypes may be complex and the other one that of its parts.
struct Window {
  DType dtype;
  int32_t ndim;
  const int64_t *shape, *strides;
  int64_t offset;
};
Tensor strided(plait_thread *, const Tensor &, const Window &);
// A copy of `memory`, a dense tensor of one dimension, with other values in the window.
Tensor with_strided(plait_thread *, const Tensor &memory, const Window &, const Tensor &values);
Tensor reshape(plait_thread *, const Tensor &, const int64_t *shape, size_t ndim);
Tensor flat(plait_thread *, const Tensor &);
Tensor expand(plait_thread *, const Tensor &, const int64_t *shape, int32_t ndim);
inline Tensor zeros(plait_thread *thread, const Layout &l) {
  return zeros(thread, l.dtype, l.device, l.shape, l.ndim);
}

// Releases an object and sets the pointer to NULL.
template <class T>
void drop(T *&p) {
  plait_release(p);
  p = nullptr;
}
// Whether there is no other reference to these bytes, so that they may be written or reused.
bool exclusive(const plait_tensor *);
// Whether no two elements have the same address.
bool distinct(int32_t ndim, const int64_t *shape, const int64_t *strides);
inline bool differentiable(DType d) { return is_floating(d) || d.code == kDLComplex; }

}  // namespace plait::autograd
