// Gradients that are made where a leaf's owner wants them, such as in a bucket that is sent.
#pragma once
#include <plait/place.h>

#include "evaluate.hpp"
#include "pass_marks.hpp"

namespace plait::autograd {

void set_place(Leaf *, Tensor place);  // or none
Tensor place_of(Leaf *);
// whether a gradient lies at the place
bool lies_at(const plait_tensor *place, const plait_tensor *gradient);

// The places of the leaves that gradients of a node's call go to. Only of those whose gradient is
// the first one: what arrives later is added.
class GradientPlaces {
 public:
  GradientPlaces(plait_thread *, const Node *, PassMarks &);
  GradientPlaces(const GradientPlaces &) = delete;
  ~GradientPlaces() { withdraw(); }
  // Between these two the thread's next results of those sizes are made at the places.
  void offer();
  void withdraw();
  // Moves other tensors out of the memory that is reserved for the leaf's gradient.
  void clear(Gradients &result);

 private:
  static constexpr uint32_t most = 4;
  plait_thread *thread_;
  void *before_ = nullptr;
  bool offered_ = false;
  uint32_t n_ = 0;
  struct Entry {
    plait_place place;
    uint32_t edge;
    Tensor tensor;
  } entries_[most];
};

}  // namespace plait::autograd
