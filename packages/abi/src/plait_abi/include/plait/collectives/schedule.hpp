// What is to be done for the bytes of a collective: sends, receives and local work, some of which
// wait for others.
#ifndef PLAIT_COLLECTIVES_SCHEDULE_HPP
#define PLAIT_COLLECTIVES_SCHEDULE_HPP
#include <cstdlib>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <vector>

#include "operation.hpp"
#include "transport.hpp"

namespace plait::collectives {

class Schedule;

struct Action : Transfer {
  enum Kind : uint8_t { is_send, is_receive, is_local };
  Schedule *schedule = nullptr;
  Kind kind = is_local;
  bool running = false, ready = false;
  size_t slot = 0;
  uint32_t rank = 0, peer = 0;  // the same process, in the group and in the transport
  uint32_t channel = 0;
  uint32_t waits = 0;  // number of actions that come before it
  char sign = 0;       // what is sent, or received, where only that matters
  std::function<void()> work;
  std::vector<Action *> next;
  void ended(bool whole) override;
};

// Actions on one part of the tensors.
class Chunk {
 public:
  // memory that lives as long as the chunk, aligned for any element
  char *room(uint64_t bytes) {
    void *p = std::malloc(bytes ? bytes : 1);
    if (!p) throw std::bad_alloc();
    rooms_.emplace_back(static_cast<char *>(p), std::free);
    return static_cast<char *>(p);
  }
  Action &add(Action::Kind kind) {
    actions_.emplace_back();
    actions_.back().kind = kind;
    return actions_.back();
  }
  static void order(Action &first, Action &then) {
    first.next.push_back(&then);
    then.waits++;
  }

 private:
  friend class Schedule;
  std::deque<Action> actions_;
  std::vector<std::unique_ptr<char, void (*)(void *)>> rooms_;
  size_t left_ = 0;
  bool open_ = false;  // something is left
};

// The chunks of one collective, a few of them at once: the next one begins when the one that is as
// many before it is done. It keeps the tensors; whoever has it keeps it until no transfer runs.
class Schedule {
 public:
  static constexpr size_t window = 3;  // chunks at once, as a rule
  // fills in the chunk of this number; false if there is none
  using Fill = std::function<bool(Chunk &, uint64_t number)>;

  Schedule(Transport &transport, std::shared_ptr<Tensors> tensors, Fill fill,
           size_t chunks = window)
      : transport_(transport),
        tensors_(std::move(tensors)),
        fill_(std::move(fill)),
        chunks_(chunks) {}
  Schedule(const Schedule &) = delete;

  bool done() const { return filled_all_ && open_ == 0; }
  bool failed() const { return failed_; }
  uint32_t failed_rank() const { return failed_rank_; }
  size_t running() const { return running_; }
  uint64_t ended() const { return ended_; }  // transfers
  template <class F>
  void each_running(F &&f) const {
    for (const Chunk &c : chunks_)
      for (const Action &a : c.actions_)
        if (a.running) f(a);
  }

  // Begins what need not wait any more.
  void pump() {
    while (!abandoned_ && !failed_) {
      if (!ready_.empty()) {
        Action *a = ready_.front();
        ready_.pop_front();
        start(*a);
      } else if (!filled_all_ && !chunks_[number_ % chunks_.size()].open_) {
        refill(number_ % chunks_.size());
      } else {
        return;
      }
    }
  }

  // Nothing more is begun, and what runs is asked to end.
  void abandon() {
    abandoned_ = true;
    for (Chunk &c : chunks_)
      for (Action &a : c.actions_)
        if (a.running) transport_.cancel(&a);
  }

 private:
  friend struct Action;

  void refill(size_t slot) {
    Chunk &c = chunks_[slot];
    c.actions_.clear();
    c.rooms_.clear();
    if (!fill_(c, number_)) {
      filled_all_ = true;
      return;
    }
    number_++;
    open_++;
    c.open_ = true;
    c.left_ = c.actions_.size();
    for (Action &a : c.actions_) {
      a.schedule = this;
      a.slot = slot;
      if (a.kind != Action::is_local) lane_of(a).push_back(&a);
      if (a.waits == 0) ready_.push_back(&a);
    }
    if (c.left_ == 0) close(slot);
  }

  void start(Action &a) {
    if (a.kind == Action::is_local) {
      if (a.work) a.work();
      finish(a);
      return;
    }
    a.ready = true;
    auto &lane = lane_of(a);
    while (!lane.empty() && lane.front()->ready) {
      Action &next = *lane.front();
      lane.pop_front();
      next.running = true;
      running_++;
      if (next.kind == Action::is_send)
        transport_.send(next.peer, next.channel, &next);
      else
        transport_.receive(next.peer, next.channel, &next);
    }
  }

  // The transfers of one way that are not begun yet. They begin in the order of the chunks, and of
  // the actions in a chunk, whatever becomes ready first, as on the other side.
  std::deque<Action *> &lane_of(const Action &a) {
    return lanes_[{a.peer, 2 * a.channel + (a.kind == Action::is_send)}];
  }

  void finish(Action &a) {
    for (Action *n : a.next)
      if (--n->waits == 0) ready_.push_back(n);
    if (--chunks_[a.slot].left_ == 0) close(a.slot);
  }

  void close(size_t slot) {
    open_--;
    chunks_[slot].open_ = false;
  }

  Transport &transport_;
  std::shared_ptr<Tensors> tensors_;
  Fill fill_;
  std::deque<Chunk> chunks_;
  std::map<std::pair<uint32_t, uint32_t>, std::deque<Action *>> lanes_;
  std::deque<Action *> ready_;
  uint64_t number_ = 0, ended_ = 0;
  size_t open_ = 0, running_ = 0;
  uint32_t failed_rank_ = 0;
  bool filled_all_ = false, failed_ = false, abandoned_ = false;
};

// What waits for it is begun by the next `pump`.
inline void Action::ended(bool whole) {
  Schedule &s = *schedule;
  running = false;
  s.running_--;
  s.ended_++;
  if (whole) {
    s.finish(*this);
  } else if (!s.failed_) {
    s.failed_ = true;
    s.failed_rank_ = rank;
  }
}

}  // namespace plait::collectives
#endif  // PLAIT_COLLECTIVES_SCHEDULE_HPP
