// One member of a group of processes whose tensors NCCL exchanges.
//
// A group has another one of the CPU beside it, the control group: it carries the identities with
// which NCCL's communicators are made, it ends the group in all members, and it notices lost ranks.
// A thread watches the collectives that are in flight, as NCCL waits without end.
#pragma once
#include <plait/collectives/call.hpp>
#include <plait/collectives/signals.hpp>

#include <atomic>
#include <condition_variable>
#include <map>
#include <memory>
#include <mutex>
#include <vector>

#include "host/device.h"
#include "host/nccl_library.h"

namespace plait::cuda::nccl {

// A collective or message in flight.
struct Operation {
  Operation(const char *kind_, DLDevice device_, double timeout_)
      : kind(kind_), device(device_), timeout(timeout_), began(collectives::now()) {}
  Operation(const Operation &) = delete;
  ~Operation();
  const char *const kind;
  const DLDevice device;
  const double timeout, began;
  driver::Event done = nullptr;  // NULL: it was done when the function returned
  std::atomic<bool> failed{false};  // its result is not that of the collective
  std::atomic<bool> awaited{false};  // by a stream: the program does not ask again
};
using OperationPtr = std::shared_ptr<Operation>;

// A communicator of NCCL and the stream in which its work runs.
struct Channel {
  DLDevice device{};
  Comm comm = nullptr;
  driver::Stream stream = nullptr;
};

class Group : public std::enable_shared_from_this<Group> {
 public:
  // Takes over the control group.
  Group(plait_communicator *control, double timeout);
  Group(const Group &) = delete;
  ~Group();

  uint32_t rank() const { return rank_; }
  uint32_t size() const { return size_; }
  double timeout() const { return timeout_; }
  int64_t pid() const { return pid_; }

  // Puts a collective behind the work in the stream. If `waits`, later work in the stream comes
  // behind the collective.
  plait_status start(plait_thread *, const collectives::Collective &, double timeout,
                     plait_stream *, bool waits, OperationPtr *out);
  plait_status query(plait_thread *, const Operation &, int32_t *done);
  // Lets the thread's current stream wait.
  plait_status wait(plait_thread *, Operation &);
  plait_status split(plait_thread *, int64_t color, int64_t key, std::shared_ptr<Group> *out);
  void abort(const char *reason, bool by_user);
  // Waits for what this member began, tells the others that it leaves, and frees all.
  void close();

 private:
  struct Route {  // a channel is for all members, or for messages from one to another
    int64_t from = -1, to = -1;
    bool operator<(const Route &r) const { return from < r.from || (from == r.from && to < r.to); }
  };
  struct Failure {
    collectives::Outcome outcome = collectives::Outcome::done;
    collectives::Explanation text;
    double since = 0;
  };

  plait_status barrier(plait_thread *, double timeout);
  plait_status launch(plait_thread *, const collectives::Collective &, const Channel &,
                      plait_stream *, bool waits, Operation &);
  plait_status channel_of(plait_thread *, const collectives::Collective &, DLDevice, Channel *);
  plait_status make_channel(plait_thread *, Route, uint32_t rank, uint32_t size, DLDevice,
                            const UniqueId &);
  plait_status make_common(plait_thread *, DLDevice);
  plait_status make_pair(plait_thread *, uint32_t peer, DLDevice);
  plait_status new_id(plait_thread *, UniqueId *);
  // Gives bytes to another member, or all, and takes them where another one gives them.
  plait_status exchange(plait_thread *, uint32_t kind, uint32_t peer, void *data, size_t bytes);
  plait_status raise_failure(plait_thread *, const char *caller);

  void start_watching();
  void watch();
  void look(plait_thread *);
  void listen_to_others(plait_thread *);
  void hear_others(plait_thread *);
  void say_goodbye(plait_thread *);
  void remove_finished();
  void fail(collectives::Outcome, collectives::Explanation, bool tell);
  void give_up();
  void free_channels();

  plait_communicator *control_;  // NULL behind `close`
  const uint32_t rank_, size_;
  const double timeout_;
  const int64_t pid_;
  std::mutex launching_;  // held while work is given to NCCL, before `mutex_`
  std::map<Route, Channel> channels_;

  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<OperationPtr> running_;
  std::vector<plait_work *> others_;  // by rank: a message with which that member leaves
  std::vector<double> left_;  // by rank: when it came; 0: not yet
  Failure failure_;
  std::atomic<bool> failed_{false}, told_{false};  // `told_`: a call has raised the failure
  bool watching_ = false, listening_ = false, closed_ = false;
};

}  // namespace plait::cuda::nccl
