// The saved values of a node for its derivative.
#pragma once
#include <vector>

#include "engine.hpp"

namespace plait::autograd {

// A call's arguments and results as its derivative sees them. It releases the values that it owns.
class Unpacked {
 public:
  // `keep`: the node keeps its values for another pass; otherwise they are moved. `within`: the
  // assigned node that contains the call, or NULL
  Unpacked(plait_thread *thread, OpNode *node, bool keep, bool create, ViewNode *within = nullptr);
  ~Unpacked();
  Unpacked(const Unpacked &) = delete;
  Unpacked &operator=(const Unpacked &) = delete;
  const plait_value *in() const { return in_; }
  const plait_value *out() const { return out_; }

 private:
  void take(plait_thread *, bool keep);
  void put(plait_value *values, uint32_t argument, uint32_t item, plait_tensor *t);
  void unpack_all(plait_thread *);
  void give_history(plait_thread *, ViewNode *within);

  OpNode *node_;
  plait_value in_[PLAIT_MAX_ARGS], out_[PLAIT_MAX_RESULTS];
  plait_tensor *few_[16];
  std::vector<plait_tensor *> many_;  // beyond 16
  plait_tensor **held_ = few_;
  uint32_t n_held_ = 0;
  std::vector<plait_tensor *> list_;  // the elements of Tensor[] arguments
};

// The saved tensor `i` of the node, with its history; hooks unpack it. Throws once a pass freed it.
Tensor saved_tensor(plait_thread *, OpNode *, uint32_t i);

// The shape of the tensor that an argument was, as far as the node knows it: from the saved tensor,
// from a layout that was saved, or from the output that the edge leads to. False: it is unknown.
bool shape_of_argument(const OpNode *, uint32_t argument, uint32_t item, int32_t *ndim,
                       const int64_t **shape);

}  // namespace plait::autograd
