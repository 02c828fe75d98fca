// A collective or message that a member has begun, seen by the program's threads and by the
// thread that carries it out.
#ifndef PLAIT_COLLECTIVES_OPERATION_HPP
#define PLAIT_COLLECTIVES_OPERATION_HPP
#include <condition_variable>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "call.hpp"
#include "signals.hpp"

namespace plait::collectives {

// Handles of tensors of its own: others may be given other bytes.
struct Tensors {
  std::vector<plait_tensor *> in, out;
  Tensors() = default;
  Tensors(const Tensors &) = delete;
  ~Tensors() {
    for (auto *list : {&in, &out})
      for (plait_tensor *t : *list) plait_release(t);
  }
};

struct Operation {
  Collective call{};
  std::shared_ptr<Tensors> tensors = std::make_shared<Tensors>();
  int64_t tag = 0;  // of a message
  double timeout = 0, deadline = 0;

  bool is_message() const { return call.kind == PLAIT_SEND || call.kind == PLAIT_RECEIVE; }

  std::mutex mutex;
  std::condition_variable changed;
  bool done = false;
  Outcome outcome = Outcome::done;
  Explanation explanation;

  void finish(Outcome o, Explanation text) {
    const std::lock_guard<std::mutex> lock(mutex);
    outcome = o;
    explanation = std::move(text);
    done = true;
    changed.notify_all();
  }
  // By the program's thread, when it is done and before that is told: it is the only one who uses
  // its tensors then. The communication thread does not release them, as that may wait for the
  // interpreter's lock.
  void release(std::unique_lock<std::mutex> &lock) {
    const auto kept = std::move(tensors);
    lock.unlock();
  }
};

}  // namespace plait::collectives
#endif  // PLAIT_COLLECTIVES_OPERATION_HPP
