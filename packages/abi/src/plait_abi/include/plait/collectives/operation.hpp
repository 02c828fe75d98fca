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
  std::string why;

  void finish(Outcome o, std::string text) {
    // before it is done: whoever waited for it is the only one who uses its tensors then
    tensors.reset();
    const std::lock_guard<std::mutex> lock(mutex);
    outcome = o;
    why = std::move(text);
    done = true;
    changed.notify_all();
  }
};

}  // namespace plait::collectives
#endif  // PLAIT_COLLECTIVES_OPERATION_HPP
