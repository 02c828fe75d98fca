// What kernels that Python registers have in common, whatever they are written in.
#pragma once
#include <atomic>
#include <memory>

#include "binding.hpp"

namespace plait::python {

// What the entry of a kernel points to. The tables of the registry outlive their kernels, because a
// call may still use them; so does this object.
class Registered {
 public:
  Registered() = default;
  Registered(const Registered &) = delete;
  Registered &operator=(const Registered &) = delete;
  virtual ~Registered() = default;
  virtual void close() = 0;  // releases what the kernel holds

  uint64_t undo = 0;
  std::atomic<bool> open{false};
};

// Registers a kernel for an operator; `owner` names the plug-in that it stands under. The capsule
// that `retract` takes, or nullptr with an exception.
PyObject *register_kernel(const char *name, PyObject *device, const char *owner, plait_kernel fn,
                          std::unique_ptr<Registered> result);

class BelowLayers {  // operators that a kernel calls are not recorded
 public:
  explicit BelowLayers(plait_thread *t) : thread_(t), before_(t->excluded) {
    t->excluded = ~uint64_t(0);
  }
  ~BelowLayers() { thread_->excluded = before_; }
  BelowLayers(const BelowLayers &) = delete;
  BelowLayers &operator=(const BelowLayers &) = delete;

 private:
  plait_thread *thread_;
  uint64_t before_;
};

}  // namespace plait::python
