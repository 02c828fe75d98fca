#include "pass_marks.hpp"

#include <algorithm>

namespace plait::autograd {

PassMarks::~PassMarks() {
  for (Node *n : visited_) {
    if (!owns(n)) continue;
    for (uint32_t i = 0; i < n->n_outs; i++) drop(n->buffers[i]);
    n->owner.store(nullptr, std::memory_order_release);
  }
  for (auto &[node, marks] : foreign_)
    for (plait_tensor *t : marks->buffers) plait_release(t);
}

// Claims a node for this pass; true the first time that the pass sees it.
bool PassMarks::claim(Node *n) {
  // a node that another pass owned before may be free now, but this pass keeps its marks here
  if (!foreign_.empty() && find_foreign(n)) return false;
  PassMarks *owner = nullptr;
  if (n->owner.compare_exchange_strong(owner, this, std::memory_order_acquire,
                                       std::memory_order_relaxed)) {
    n->pending = 0;
    n->capture = 0;
    n->needed = true;
    return true;
  }
  if (owner == this) return false;
  auto &marks = foreign_[n];
  if (marks) return false;
  marks = std::make_unique<Foreign>();
  marks->buffers.resize(n->n_outs, nullptr);
  return true;
}

void PassMarks::add(Node *n) {
  // it is listed before it is claimed, so that a failure in between leaves no mark
  visited_.push_back(n);
  if (!claim(n)) visited_.pop_back();
}

void PassMarks::discover() {
  for (size_t at = 0; at < visited_.size(); at++) {
    Node *n = visited_[at];
    for (uint32_t i = 0; i < n->n_edges; i++) {
      Node *to = n->edges[i].node;
      if (!to) continue;
      add(to);
      pending(to)++;
    }
  }
}

void PassMarks::mark_needed(std::vector<Capture> &captures) {
  for (Node *n : visited_) needed(n) = false;
  for (size_t i = 0; i < captures.size(); i++) {
    Node *n = captures[i].edge.node.get();
    if (!n || !has(n)) continue;  // not reached from the roots
    captures[i].next = capture(n);
    capture(n) = int32_t(i) + 1;
    needed(n) = true;
  }
  std::vector<Node *> order(visited_);
  std::sort(order.begin(), order.end(), older);  // edges lead to older nodes
  for (Node *n : order) {
    bool any = needed(n);
    for (uint32_t i = 0; i < n->n_edges && !any; i++)
      any = n->edges[i].node && needed(n->edges[i].node);
    needed(n) = any;
  }
}

}  // namespace plait::autograd
