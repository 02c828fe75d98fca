// The evaluation of a node in a backward pass: gradients of its inputs from those of its outputs.
#pragma once
#include <utility>
#include <vector>

#include "engine.hpp"

namespace plait::autograd {

class Gradients {  // an owned array of possibly NULL tensors
 public:
  explicit Gradients(uint32_t n) : n_(n) {
    make_room();
    for (uint32_t i = 0; i < n; i++) at_[i] = nullptr;
  }
  // Takes the gradients from the slots and sets the slots to NULL.
  Gradients(uint32_t n, plait_tensor **slots) : n_(n) {
    make_room();
    for (uint32_t i = 0; i < n; i++) at_[i] = std::exchange(slots[i], nullptr);
  }
  ~Gradients() {
    for (uint32_t i = 0; i < n_; i++) plait_release(at_[i]);
  }
  Gradients(const Gradients &) = delete;
  Gradients &operator=(const Gradients &) = delete;
  uint32_t size() const { return n_; }
  plait_tensor **data() { return at_; }
  plait_tensor *&operator[](uint32_t i) { return at_[i]; }
  Tensor take(uint32_t i) { return Tensor::steal(std::exchange(at_[i], nullptr)); }
  void put(uint32_t i, Tensor t) {
    drop(at_[i]);
    at_[i] = t.release();
  }
  void clear() {
    for (uint32_t i = 0; i < n_; i++) drop(at_[i]);
  }

 private:
  static constexpr uint32_t kFew = 8;
  void make_room() {
    if (n_ <= kFew) return;
    many_.resize(n_);
    at_ = many_.data();
  }
  uint32_t n_;
  plait_tensor *few_[kFew];
  std::vector<plait_tensor *> many_;
  plait_tensor **at_ = few_;
};

class GradientPlaces;

struct Evaluation {
  plait_thread *thread;
  bool keep;    // the node keeps its saved values, for another pass
  bool create;  // the operators of derivatives are recorded too
  GradientPlaces *places = nullptr;  // where results of the operator's derivative are made
};

// Fills `result`, one for each edge, and takes the gradients of the outputs, some of which may be
// missing. `need` has the edges whose gradients are needed, by bit_of. A leaf adds to its gradient
// instead.
void evaluate(const Evaluation &, Node *, uint64_t need, Gradients &gradients, Gradients &result);

// The vector-Jacobian product of an operator's call. `zero`: the bits of gradients that nothing
// gave. `within`: the assigned node that contains the call, or NULL.
void vjp(const Evaluation &, OpNode *, plait_tensor *const *gy, uint64_t zero, uint64_t need,
         plait_tensor **gx, ViewNode *within = nullptr);

}  // namespace plait::autograd
