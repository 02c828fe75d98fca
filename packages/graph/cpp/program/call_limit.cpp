#include "program/call_limit.hpp"

#include <mutex>

namespace plait::graph {
namespace {

constexpr uint32_t position = 21;

// The bit of the layer that counts; it is reserved by the first limit.
uint64_t layer_bit(plait_thread *thread, plait_kernel count) {
  static std::mutex mutex;
  static uint64_t bit;
  const std::lock_guard<std::mutex> lock(mutex);
  if (bit) return bit;
  uint32_t index = 0;
  // a process may have this code twice, in Python's extension and in libplait_run
  const char *name = plugin ? "calls of plait_graph" : "calls of plait_run";
  check(runtime->layer(thread, name, position | PLAIT_LAYER_PASSIVE, &index));
  check(runtime->implement(thread, nullptr, PLAIT_SLOT_LAYER + index, count, nullptr, plugin,
                           nullptr));
  return bit = uint64_t(1) << index;
}

}  // namespace

thread_local CallLimit *CallLimit::current_;

CallLimit::CallLimit(plait_thread *thread, uint64_t most)
    : thread_(thread),
      excluded_(thread->excluded),
      included_(thread->included),
      most_(most),
      outer_(current_) {
  const uint64_t bit = layer_bit(thread, count);
  thread->excluded &= ~bit;
  thread->included |= bit;
  current_ = this;
}

CallLimit::~CallLimit() {
  current_ = outer_;
  thread_->excluded = excluded_;
  thread_->included = included_;
}

plait_status CallLimit::count(plait_call *c) {
  CallLimit *limit = current_;
  if (limit && limit->count_++ >= limit->most_)
    return runtime->raise(c->thread, PLAIT_VALUE_ERROR, "graph",
                          "node %zu (\"%s\"): more than %llu operator calls are needed to find the "
                          "shapes of the values so far",
                          limit->node_, limit->op_, static_cast<unsigned long long>(limit->most_));
  return runtime->call_below(c);
}

}  // namespace plait::graph
