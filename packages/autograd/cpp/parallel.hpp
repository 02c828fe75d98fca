// Derivatives of several nodes at once. Where branches of the graph are independent, several nodes
// are ready at the same time. Their derivatives run on the threads of the executor. Their results
// are delivered in the order of one thread, so that all sums have the same bits as with one thread.
#pragma once
#include <vector>

#include "pass_marks.hpp"

namespace plait::autograd {

struct Modes {  // of a thread
  uint64_t excluded, included;
  DLDevice device;
};

class ParallelDerivatives {
 public:
  // Only one thread is used if `serial`: for a pass that is recorded itself, or that computes the
  // gradients of some inputs only.
  void start(plait_thread *, bool keep, bool serial);
  // Whether derivatives may run before their turn.
  bool on() const { return width_ > 1; }
  // Computes `first` and other nodes that are ready, if that is worth it.
  void look_ahead(Node *first, const std::vector<Node *> &others, PassMarks &);
  // Takes the gradients that were computed for the node, if there are any.
  bool take(const Node *n, plait_tensor **gx) { return !done_.empty() && move_result(n, gx); }

 private:
  struct Derivative {
    OpNode *node;
    plait_tensor *const *gy;
    uint64_t need;
    std::vector<Tensor> gx;
    bool done;
  };
  bool move_result(const Node *, plait_tensor **gx);
  void compute(Derivative &, const Modes &) const noexcept;

  plait_thread *thread_ = nullptr;
  bool keep_ = false;
  uint32_t width_ = 1;  // threads that may run derivatives at once
  std::vector<Derivative> done_;
};

}  // namespace plait::autograd
