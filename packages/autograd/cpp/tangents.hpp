// The storage of tangents: slot[2] of a root; a view's tangent is a view of its root's.
#pragma once
#include <plait/fork.hpp>

#include <mutex>
#include <vector>

#include "engine.hpp"

namespace plait::autograd {

struct Dual;

// A dual level. It has a list of its tangents, to free them at its end; they may be dropped on any
// thread.
struct Level {
  plait_object o;
  uint64_t number;
  bool recorded;  // whether tangents get a history when operators are recorded
  ProcessLock lock;
  Dual *first = nullptr;
  // A result that autograd saved while the operator ran, before the result had a tangent: the
  // result (borrowed), and the tensor or Packed object that gets its tangent later. Only the
  // level's thread uses it.
  struct Expected {
    const plait_tensor *result;
    plait_object *receiver;
  };
  std::vector<Expected> expected;
};

extern uint64_t forward_bit;  // the layer's

inline Level *level_of(const plait_thread *thread) {  // NULL: no dual level is entered
  return static_cast<Level *>(thread->slot[1]);
}
inline bool carrying(const plait_thread *thread) {
  return level_of(thread) && !(thread->excluded & forward_bit);
}
void enter_level(plait_thread *, bool recorded);
void leave_level(plait_thread *);  // frees its tangents

// The tangent of a tensor at this thread's level, or none. A view's tangent is a view of its
// base's.
Tensor tangent_of(plait_thread *, plait_tensor *);
// Sets the tangent of a root, with the root's layout; none removes it. A view that is given a
// tangent (or none) of its own, as a function's result, keeps it until its memory is written to.
void set_tangent(plait_thread *, plait_tensor *, Tensor tangent);
// Sets the tangent of the target of a write, or none, which for a view means zeros. A tangent that
// something else refers to is not written to.
void write_tangent(plait_thread *, plait_tensor *target, const Tensor &tangent);

// The result of a pack hook for a saved tensor, with the tensor's tangent.
struct Packed {
  plait_object o;
  plait_object *what;
  Dual *dual;
};
plait_object *packed_with_tangent(plait_object *object);  // steals
Packed *as_packed(plait_object *) noexcept;             // or NULL

// Gives a saved tensor the tangent of the tensor that it was made from.
void give_tangent(plait_thread *, const plait_tensor *from, plait_tensor *to);
void give_tangent(plait_thread *, const Packed *from, plait_tensor *to);
void keep_tangent(plait_thread *, Packed *, Tensor tangent);
// Gives a saved tensor the tangent of `result` once that is known.
void expect_tangent(plait_thread *, const plait_tensor *result, plait_object *receiver);

// Collects expected tangents while an operator runs, for a scope.
class Expecting {
 public:
  explicit Expecting(plait_thread *thread) : thread_(thread), level_(level_of(thread)) {
    mark_ = level_->expected.size();
  }
  ~Expecting();
  Expecting(const Expecting &) = delete;
  Expecting &operator=(const Expecting &) = delete;
  void settle(const plait_tensor *result, const Tensor &tangent);

 private:
  plait_thread *thread_;
  Level *level_;
  size_t mark_;
};

}  // namespace plait::autograd
