// cuDNN, where that library is installed: descriptors of its graph interface, and how a graph of
// one operation is planned and run.
#pragma once
#include <initializer_list>
#include <plait/fork.hpp>
#include <utility>

#include "host/cudnn_types.h"
#include "host/launch.h"

namespace plait::cuda::cudnn {

// Whether the library is installed, is not refused by the environment, and is enabled by the user.
bool is_usable();

// A descriptor. After an error, which `works` tells, calls do nothing.
class Descriptor {
 public:
  explicit Descriptor(DescriptorType type);
  Descriptor(Descriptor &&other) noexcept : raw_(std::exchange(other.raw_, nullptr)) {}
  Descriptor &operator=(Descriptor &&other) noexcept {
    std::swap(raw_, other.raw_);
    return *this;
  }
  ~Descriptor();

  Descriptor &set(int attribute, ValueType type, int64_t n, const void *values);
  template <class T>
  Descriptor &set(int attribute, ValueType type, const T &value) {
    return set(attribute, type, 1, &value);
  }
  Descriptor &set(int attribute, const Descriptor &value);
  Descriptor &finish();

  // Reads up to `most` values of a finished descriptor; returns how many it has, or -1.
  int64_t get(int attribute, ValueType type, int64_t most, void *values) const;

  bool works() const { return raw_ != nullptr; }
  RawDescriptor raw() const { return raw_; }

 private:
  void drop();
  RawDescriptor raw_ = nullptr;
};

// How an operation is computed on a device.
struct Plan {
  Descriptor descriptor{kPlan};
  int64_t workspace = 0;
  bool works = false;
};

// Engines with one of the notes are not used, nor those that need more than `most_workspace` bytes.
struct Limits {
  uint32_t refused_notes;  // bits
  int64_t most_workspace;
};

// The library's lock, which its users hold from `handle_of` to the end of a choice.
ForkMutex &lock();

// The handle of the call's device, under the lock; NULL: it cannot be made, now or at all.
Handle handle_of(const plait_call *c);

// The first plan that the library recommends for a finished operation within the limits.
Plan choose_plan(Handle handle, const Descriptor &operation, const Limits &limits);

// A tensor of an operation, by the number that its descriptor has.
struct Pointer {
  int64_t id;
  const void *data;
};

// Puts a plan into the stream of the call; a false `*done` comes with the library's text in `text`.
plait_status run_plan(const plait_call *c, Handle handle, const Plan &plan, const char *name,
                      std::initializer_list<Pointer> tensors, bool *done, char (&text)[512]);

}  // namespace plait::cuda::cudnn
