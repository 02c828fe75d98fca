// What one backward pass marks on the nodes that it reaches: how many gradients are still to come,
// those that have come, which node is asked for, and which is needed.
#pragma once
#include <memory>
#include <unordered_map>
#include <vector>

#include "history.hpp"

namespace plait::autograd {

struct Capture {  // a gradient that is asked for
  Place place;
  plait_tensor **out;
  int32_t next;  // index + 1 of the next capture at the same node
};

// The marks live in the node while the pass owns it. Where another pass was there first, they live
// here.
class PassMarks {
 public:
  PassMarks() = default;
  ~PassMarks();
  PassMarks(const PassMarks &) = delete;
  PassMarks &operator=(const PassMarks &) = delete;

  void add_root(Node *n) { add(n); }
  // Reaches everything below the roots and counts the gradients that each node will get.
  void discover();
  // Marks as needed only what lies on a path to a captured node, and lists the captures at theirs.
  void mark_needed(std::vector<Capture> &captures);

  const std::vector<Node *> &visited() const { return visited_; }
  bool has(Node *n) { return mine(n) || elsewhere(n); }
  uint32_t &pending(Node *n) { return mine(n) ? n->pending : elsewhere(n)->pending; }
  int32_t &capture(Node *n) { return mine(n) ? n->capture : elsewhere(n)->capture; }
  bool &needed(Node *n) { return mine(n) ? n->needed : elsewhere(n)->needed; }
  plait_tensor **buffers(Node *n) { return mine(n) ? n->buffers : elsewhere(n)->buffers.data(); }
  // The node has run: another pass may own it.
  void give_up(Node *n) {
    if (mine(n)) n->owner.store(nullptr, std::memory_order_release);
  }

 private:
  struct Foreign {  // marks on a node that another pass owns
    uint32_t pending = 0;
    int32_t capture = 0;
    bool needed = true;
    std::vector<plait_tensor *> buffers;
  };

  Foreign *elsewhere(Node *n) {
    const auto it = foreign_.find(n);
    return it == foreign_.end() ? nullptr : it->second.get();
  }
  bool mine(const Node *n) const { return n->owner.load(std::memory_order_relaxed) == this; }
  void add(Node *);
  bool claim(Node *);

  std::vector<Node *> visited_;
  std::unordered_map<Node *, std::unique_ptr<Foreign>> foreign_;
};

}  // namespace plait::autograd
