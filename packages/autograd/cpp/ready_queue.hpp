// The nodes of a backward pass whose gradients are complete.
#pragma once
#include <algorithm>
#include <utility>
#include <vector>

#include "node.hpp"

namespace plait::autograd {

// A priority queue with the latest node first. A chain, in which each node makes the next one
// ready, does not use the heap.
class ReadyQueue {
 public:
  void push(Node *n) {
    if (!next_) {
      next_ = n;
      return;
    }
    if (older(next_, n)) std::swap(next_, n);
    heap_.push_back(n);
    std::push_heap(heap_.begin(), heap_.end(), older);
  }

  // The next node; NULL if none is left.
  Node *pop() {
    Node *n = std::exchange(next_, nullptr);
    if (heap_.empty() || (n && !older(n, heap_.front()))) return n;
    std::pop_heap(heap_.begin(), heap_.end(), older);
    if (n) {
      std::swap(n, heap_.back());
      std::push_heap(heap_.begin(), heap_.end(), older);
    } else {
      n = heap_.back();
      heap_.pop_back();
    }
    return n;
  }

  // The other nodes, after a `pop`.
  const std::vector<Node *> &others() const { return heap_; }

 private:
  Node *next_ = nullptr;  // later than all nodes in the heap when it was added
  std::vector<Node *> heap_;
};

}  // namespace plait::autograd
