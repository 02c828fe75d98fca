// Runs a fused step over all its tensors, with any strides, in parallel pieces for large tensors.
#ifndef PLAIT_OPTIM_WALK_HPP
#define PLAIT_OPTIM_WALK_HPP
#include "lists.hpp"

namespace plait::optim {

// One call of a fused step. `apply` updates n elements of parameter i; they lie contiguously at
// data[list], NULL for an absent list. It may run on several threads at once, on different
// elements.
struct Update {
  explicit Update(const Lists &l) : lists(l) {}
  virtual void apply(uint32_t i, void *const *data, int64_t n) const = 0;
  const Lists &lists;
  uint32_t written = 0;  // bits of the lists that `apply` writes

 protected:
  ~Update() = default;
};

// Results do not depend on the number of threads: elements are independent.
void run(const plait_call *call, const Update &update);

}  // namespace plait::optim
#endif  // PLAIT_OPTIM_WALK_HPP
