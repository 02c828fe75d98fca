// The marks of one backward pass on the nodes that it reaches: the number of gradients still to
// come, the gradients that have arrived, captures, and whether the node is needed.
#pragma once
#include <memory>
#include <unordered_map>
#include <vector>

#include "history.hpp"

namespace plait::autograd {

struct Capture {  // a requested gradient
  GradientEdge edge;
  plait_tensor **out;
  int32_t next;  // index + 1 of the next capture at the same node
};

// The marks are in the node while the pass owns it. If another pass owns the node, they are here.
class PassMarks {
 public:
  PassMarks() = default;
  ~PassMarks();
  PassMarks(const PassMarks &) = delete;
  PassMarks &operator=(const PassMarks &) = delete;

  void add_root(Node *n) { add(n); }
  // Visits all nodes below the roots and counts the gradients that each node will get.
  void discover();
  // Marks the nodes on paths to captured nodes as needed, and links the captures to their nodes.
  void mark_needed(std::vector<Capture> &captures);

  const std::vector<Node *> &visited() const { return visited_; }
  bool has(Node *n) { return owns(n) || find_foreign(n); }
  uint32_t &pending(Node *n) { return owns(n) ? n->pending : find_foreign(n)->pending; }
  int32_t &capture(Node *n) { return owns(n) ? n->capture : find_foreign(n)->capture; }
  bool &needed(Node *n) { return owns(n) ? n->needed : find_foreign(n)->needed; }
  plait_tensor **buffers(Node *n) { return owns(n) ? n->buffers : find_foreign(n)->buffers.data(); }
  // Releases a node that has run, so that another pass may own it.
  void release(Node *n) {
    if (owns(n)) n->owner.store(nullptr, std::memory_order_release);
  }

 private:
  struct Foreign {  // marks on a node that another pass owns
    uint32_t pending = 0;
    int32_t capture = 0;
    bool needed = true;
    std::vector<plait_tensor *> buffers;
  };

  Foreign *find_foreign(Node *n) {
    const auto it = foreign_.find(n);
    return it == foreign_.end() ? nullptr : it->second.get();
  }
  bool owns(const Node *n) const { return n->owner.load(std::memory_order_relaxed) == this; }
  void add(Node *);
  bool claim(Node *);

  std::vector<Node *> visited_;
  std::unordered_map<Node *, std::unique_ptr<Foreign>> foreign_;
};

}  // namespace plait::autograd
