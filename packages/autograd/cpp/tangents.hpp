// Where tangents are kept: slot[2] of a root, and places within it for views.
#pragma once
#include <plait/fork.hpp>

#include <mutex>
#include <vector>

#include "engine.hpp"

namespace plait::autograd {

struct Dual;

// A dual level. It knows its tangents, so that its end frees them; they may die on any thread.
struct Level {
  plait_object o;
  uint64_t number;
  bool recorded;  // whether tangents get a history where operators are recorded
  ProcessLock lock;
  Dual *first = nullptr;
  // What autograd saves of a result while the operator runs, when that has no tangent yet: the
  // result, borrowed, and a tensor or Packed object that is to have its tangent. The level's thread
  // alone looks at it.
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

// The tangent of a tensor at this thread's level, or none. Of a view: its place in its base's.
Tensor tangent_of(plait_thread *, plait_tensor *);
// Gives a root its tangent, laid out like it; none takes it away. A view that is given one (or
// none) of its own, as a function's result, keeps it until its memory is written.
void set_tangent(plait_thread *, plait_tensor *, Tensor tangent);
// The target of a write has a new tangent, or none, which in a view is zeros. No tangent that
// somebody else sees is written.
void write_tangent(plait_thread *, plait_tensor *target, const Tensor &tangent);

// What a pack hook made of a saved tensor, with the tangent of that.
struct Packed {
  plait_object o;
  plait_object *what;
  Dual *dual;
};
plait_object *packed_with_tangent(plait_object *what);  // steals
Packed *as_packed(plait_object *) noexcept;             // or NULL

// What is saved has the tangent of the tensor that it was made from.
void give_tangent(plait_thread *, const plait_tensor *from, plait_tensor *to);
void give_tangent(plait_thread *, const Packed *from, plait_tensor *to);
void keep_tangent(plait_thread *, Packed *, Tensor tangent);
// ... or will have it, once `result` has one.
void expect_tangent(plait_thread *, const plait_tensor *result, plait_object *receiver);

// What was expected while an operator ran, for the time of a scope.
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
