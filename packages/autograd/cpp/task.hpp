// One backward pass.
#pragma once
#include <memory>
#include <unordered_map>
#include <vector>

#include "history.hpp"

namespace plait::autograd {

class Unpacked;

// The marks of a pass on a node. They live in the node while the pass owns it; where another pass
// was there first, here.
struct Marks {
  uint32_t pending = 0;
  int32_t capture = 0;
  bool needed = true;
  std::vector<plait_tensor *> buffers;
};

class Task {
 public:
  // accumulate: leaves among the captured tensors get their gradient as without captures
  Task(plait_thread *thread, bool retain, bool create, bool accumulate)
      : thread_(thread), retain_(retain), create_(create), accumulate_(accumulate) {}
  ~Task();
  Task(const Task &) = delete;
  Task &operator=(const Task &) = delete;

  void root(plait_tensor *tensor, plait_tensor *gradient);
  // The gradient of `tensor` goes to *out (a new reference), and no leaf is touched.
  void capture(plait_tensor *tensor, plait_tensor **out);
  void run();

  bool retains() const { return retain_; }
  Node *running() const { return running_; }
  uint64_t number() const { return number_; }
  bool will_run(Node *n) { return (mine(n) || elsewhere(n)) && (captures_.empty() || needed(n)); }
  static Task *current() noexcept;  // the innermost pass of this thread

 private:
  struct Capture {
    Place place;
    plait_tensor **out;
    int32_t next;  // index + 1 of the next capture at the same node
  };

  bool claim(Node *);
  Marks *elsewhere(Node *n) {
    const auto it = foreign_.find(n);
    return it == foreign_.end() ? nullptr : it->second.get();
  }
  bool mine(const Node *n) const { return n->owner.load(std::memory_order_relaxed) == this; }
  uint32_t &pending(Node *n) { return mine(n) ? n->pending : elsewhere(n)->pending; }
  int32_t &captures(Node *n) { return mine(n) ? n->capture : elsewhere(n)->capture; }
  bool &needed(Node *n) { return mine(n) ? n->needed : elsewhere(n)->needed; }
  plait_tensor **buffers(Node *n) { return mine(n) ? n->buffers : elsewhere(n)->buffers.data(); }

  void discover();
  void mark_needed();
  void begin_roots();
  void loop();
  void look_ahead(Node *);
  bool computed(Node *, plait_tensor **gx);
  void execute(Node *);
  void capture_at(Node *, plait_tensor **gradients);
  void retain_at(Node *, plait_tensor **gradients);
  void arrived_at(Node *, plait_tensor **gradients);
  bool before(Node *, plait_tensor **gradients);
  void evaluate_watched(Node *, plait_tensor **gradients);
  void after(Node *, plait_tensor *const *gradients);
  void accumulated(Node *);
  void check_nan(Node *, plait_tensor *const *gradients);
  [[noreturn]] void refuse_nan(Node *, uint32_t edge);
  void evaluate(Node *, plait_tensor **gradients);
  void evaluate_op(OpNode *, plait_tensor **gradients);
  void evaluate_assigned(ViewNode *, plait_tensor **gradients);
  void evaluate_host(HostNode *, plait_tensor **gradients);
  void vjp(plait_thread *, OpNode *, plait_tensor *const *gy, uint64_t need, plait_tensor **gx,
           bool keep, ViewNode *within = nullptr) const;
  void accumulate(Leaf *, plait_tensor **gradient);
  void deliver(const Node *from, uint32_t position, Tensor gradient);
  Tensor fitted(const Node *from, uint32_t position, const Layout &, Tensor gradient);
  void arrive(plait_tensor **slot, Tensor gradient);
  void ready(Node *);
  void leave(Node *) noexcept;
  bool wants(const Edge &e) { return e.node && (captures_.empty() || needed(e.node)); }

  static uint64_t next_number() noexcept;

  plait_thread *thread_;
  const uint64_t number_ = next_number();
  bool retain_, create_, accumulate_;
  std::vector<std::pair<Place, Tensor>> roots_;
  std::vector<Capture> captures_;
  std::vector<Node *> visited_;
  std::unordered_map<Node *, std::unique_ptr<Marks>> foreign_;
  std::vector<Node *> heap_;  // ready, the youngest on top
  Node *next_ = nullptr;      // ready and younger than all in the heap
  Node *running_ = nullptr;
  const Node *gathering_ = nullptr;  // its gradients wait here until its hooks have seen them
  std::vector<Tensor> gathered_;

  struct Ahead {  // a node whose derivative ran before its turn
    OpNode *node;
    plait_tensor *const *gy;
    uint64_t need;
    std::vector<Tensor> gx;
    bool done;
  };
  void compute(Ahead &, uint64_t excluded, uint64_t included) const noexcept;
  uint32_t width_ = 1;  // threads that may run derivatives at once
  std::vector<Ahead> ahead_;
};

}  // namespace plait::autograd
