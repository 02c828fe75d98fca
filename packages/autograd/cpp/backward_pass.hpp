// One backward pass.
#pragma once
#include <unordered_set>

#include "evaluate.hpp"
#include "parallel.hpp"
#include "pass_marks.hpp"
#include "ready_queue.hpp"

namespace plait::autograd {

class BackwardPass {
 public:
  // accumulate: leaves among the captured tensors add to their gradients as in a pass without
  // captures
  BackwardPass(plait_thread *thread, bool retain, bool create, bool accumulate)
      : evaluation_{thread, retain, create}, accumulate_(accumulate) {}
  BackwardPass(const BackwardPass &) = delete;
  BackwardPass &operator=(const BackwardPass &) = delete;

  void root(plait_tensor *tensor, plait_tensor *gradient);
  // The gradient of `tensor` goes to *out (a new reference), and no leaf is touched.
  void capture(plait_tensor *tensor, plait_tensor **out);
  void run();
  // Lets a callable of the host language be called once when the walk has ended, after those that
  // were added before.
  void at_end(plait_object *callable) { callbacks_.push_back(Ref<plait_object>::share(callable)); }

  bool retains() const { return evaluation_.keep; }
  Node *running() const { return running_; }  // NULL before and after the walk
  uint64_t number() const { return number_; }
  bool will_run(Node *n) { return marks_.has(n) && (captures_.empty() || marks_.needed(n)); }
  static BackwardPass *current() noexcept;  // the innermost pass of this thread

 private:
  plait_thread *thread() const { return evaluation_.thread; }
  void begin_roots();
  void walk();
  void run_callbacks();
  void execute(Node *);
  void record(Node *, bool extra, Gradients &);
  void capture_at(Node *, Gradients &);
  void evaluate_node(Node *, Gradients &gradients, Gradients &result);
  void evaluate_watched(Node *, Gradients &gradients, Gradients &result);
  void deliver(const Node *from, uint32_t position, Tensor gradient);
  void deliver_on_device(const Node *from, uint32_t position, DLDevice here, DLDevice there,
                         Tensor gradient);
  // The stream of a device that a node's gradients are computed in: a leaf's are in the one that is
  // current where the pass was begun.
  plait_stream *stream_of(const Node *, DLDevice) const;
  void arrive(plait_tensor **slot, Tensor gradient);
  bool wants(const Edge &e) { return e.node && (captures_.empty() || marks_.needed(e.node)); }

  static uint64_t next_number() noexcept;

  const Evaluation evaluation_;
  const bool accumulate_;
  const uint64_t number_ = next_number();
  std::vector<std::pair<GradientEdge, Tensor>> roots_;
  std::vector<Capture> captures_;
  PassMarks marks_;
  ReadyQueue ready_;
  ParallelDerivatives parallel_;
  Node *running_ = nullptr;
  std::unordered_set<const Node *> unknown_;  // a recorded pass: see `record`
  std::vector<Ref<plait_object>> callbacks_;
};

}  // namespace plait::autograd
