// A limit for the operator calls of a thread.
#pragma once
#include "graph.hpp"

namespace plait::graph {

// While it lives, the operator calls of the thread are counted, also those that others make, such
// as the decomposition of a composite; a call beyond the limit is an error. A short text can ask
// for endless work otherwise: a tensor of 2^40 rows in 2^40 parts needs no memory of its own.
class CallLimit {
 public:
  CallLimit(plait_thread *, uint64_t most);
  CallLimit(const CallLimit &) = delete;
  CallLimit &operator=(const CallLimit &) = delete;
  ~CallLimit();
  // Names the node of the graph for which calls are made from now on.
  void begin_node(size_t index, const char *op) { node_ = index, op_ = op; }

 private:
  static plait_status count(plait_call *);
  static thread_local CallLimit *current_;

  plait_thread *thread_;
  uint64_t excluded_, included_;
  uint64_t most_, count_ = 0;
  size_t node_ = 0;
  const char *op_ = "";
  CallLimit *outer_;
};

}  // namespace plait::graph
