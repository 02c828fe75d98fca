// What is to be done for the bytes of a collective: sends, receives and local work, some of which
// wait for others.
#ifndef PLAIT_COLLECTIVES_SCHEDULE_HPP
#define PLAIT_COLLECTIVES_SCHEDULE_HPP
#include <cstdlib>
#include <deque>
#include <functional>
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
  bool running = false;
  size_t slot = 0;
  uint32_t rank = 0, peer = 0;  // the same process, in the group and in the transport
  uint32_t channel = 0;
  uint32_t waits = 0;  // number of actions that come before it
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
};

// The chunks of one collective, a few of them at once. It keeps the tensors; whoever has it keeps
// it until no transfer runs.
class Schedule {
 public:
  static constexpr size_t window = 3;  // chunks at once
  // fills in the chunk of this number; false if there is none
  using Fill = std::function<bool(Chunk &, uint64_t number)>;

  Schedule(Transport &transport, std::shared_ptr<Tensors> tensors, Fill fill)
      : transport_(transport), tensors_(std::move(tensors)), fill_(std::move(fill)) {}
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
    if (!begun_) {
      begun_ = true;
      for (size_t i = 0; i < window; i++) emptied_.push_back(i);
    }
    while (!abandoned_ && !failed_) {
      if (!ready_.empty()) {
        Action *a = ready_.front();
        ready_.pop_front();
        start(*a);
      } else if (!emptied_.empty()) {
        const size_t slot = emptied_.front();
        emptied_.pop_front();
        refill(slot);
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
    if (filled_all_) return;
    Chunk &c = chunks_[slot];
    c.actions_.clear();
    c.rooms_.clear();
    if (!fill_(c, number_)) {
      filled_all_ = true;
      return;
    }
    number_++;
    open_++;
    c.left_ = c.actions_.size();
    for (Action &a : c.actions_) {
      a.schedule = this;
      a.slot = slot;
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
    a.running = true;
    running_++;
    if (a.kind == Action::is_send)
      transport_.send(a.peer, a.channel, &a);
    else
      transport_.receive(a.peer, a.channel, &a);
  }

  void finish(Action &a) {
    for (Action *n : a.next)
      if (--n->waits == 0) ready_.push_back(n);
    if (--chunks_[a.slot].left_ == 0) close(a.slot);
  }

  void close(size_t slot) {
    open_--;
    emptied_.push_back(slot);
  }

  Transport &transport_;
  std::shared_ptr<Tensors> tensors_;
  Fill fill_;
  Chunk chunks_[window];
  std::deque<Action *> ready_;
  std::deque<size_t> emptied_;
  uint64_t number_ = 0, ended_ = 0;
  size_t open_ = 0, running_ = 0;
  uint32_t failed_rank_ = 0;
  bool begun_ = false, filled_all_ = false, failed_ = false, abandoned_ = false;
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
