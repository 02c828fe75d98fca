// One member of a group with its threads, and the collectives that run in it.
#pragma once
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <deque>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "collectives.hpp"
#include "transfers.hpp"

namespace plait::multiprocessing {

using Held = std::unique_lock<std::mutex>;

using collectives::pause;
using collectives::Signals;

extern std::atomic<int64_t> unfinished;  // asynchronous collectives

struct Operation {  // an asynchronous collective
  Collective call{};
  std::vector<plait_tensor *> in,
      out;  // own handles, as the program may assign other bytes to its tensors
  double timeout = 0;
  bool done = false;
  Outcome outcome = Outcome::done;
  Explanation explanation;
  Operation() { unfinished++; }
  Operation(const Operation &) = delete;
  ~Operation() { release(); }
  // before it is done: after that only the thread that waited for it uses its tensors
  void release() {
    for (auto *list : {&in, &out}) {
      for (plait_tensor *t : *list) plait_release(t);
      list->clear();
    }
  }
};

// One member of a group, with its threads. The communicator and its running operations own it.
struct Member : std::enable_shared_from_this<Member> {
  std::unique_ptr<Group> group;
  Transfers transfers;
  const int64_t pid;
  const plait_runtime *runtime;
  std::mutex mutex;
  std::condition_variable changed;
  std::deque<std::shared_ptr<Operation>> queue;
  bool busy = false;     // a collective runs
  bool closing = false;  // the communicator was freed
  bool has_worker = false, has_mover = false;
  int threads = 0;
  std::atomic<int64_t> splits{0};

  Member(std::unique_ptr<Group> g, const plait_runtime *r)
      : group(std::move(g)), transfers(*group), pid(getpid()), runtime(r) {}

  Outcome run_now(const Collective &c, double timeout, Signals &signals, Explanation &reason);
  void enqueue(const std::shared_ptr<Operation> &);
  void close();

 private:
  template <class F>
  void start_thread(F &&body);
  void work();
  void move_messages();
  Outcome run_observed(const Collective &, const Patience &, Explanation &reason);
  Outcome run_safely(const Collective &, const Patience &, Explanation &reason);
};

void stop_collectives();    // before the process ends
void forget_collectives();  // in the child of a fork, which does not have their threads

}  // namespace plait::multiprocessing
