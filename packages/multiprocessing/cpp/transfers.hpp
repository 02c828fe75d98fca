// Messages from one member to another: several on their way at once, in order for each tag.
#pragma once
#include <condition_variable>
#include <list>
#include <memory>
#include <mutex>

#include <plait/collectives/stream.hpp>

#include "group.hpp"

namespace plait::multiprocessing {

struct Transfer {  // one send or receive, in the member that starts it
  bool sends;
  uint32_t peer;
  int64_t tag;
  Stream elements;
  DLDataType dtype;
  double timeout, deadline;
  std::function<void(Transfer &)> finished;  // called once, with the mutex of Transfers held
  Message *message = nullptr;                // posted or claimed
  bool done = false;
  Outcome outcome = Outcome::done;
  Explanation explanation;
};

// The transfers of one member. Any number of threads may drive them; each moves all that can move.
class Transfers {
 public:
  explicit Transfers(Group &group) : group_(group) {}
  void add(const std::shared_ptr<Transfer> &);
  // returns when the transfer is done
  void drive(Transfer &, const Patience &);
  // drives all there are, and waits for more, until `stop`
  void drive_all(const Patience &);
  // Ends receives that have not begun, as their results are not needed any more, and drive_all once
  // nothing is left to drive.
  void stop();
  bool idle();

 private:
  using Held = std::unique_lock<std::mutex>;
  void advance_all();  // the mutex is held
  uint32_t own_bell() const;
  bool listen(uint32_t seen, double &looked) const;
  bool send(Transfer &);
  Message *oldest_for(const Transfer &, uint64_t &word) const;
  bool receive(Transfer &);
  bool refuse(Transfer &, Message &, uint64_t word);
  void finish(Transfer &, Outcome, Explanation reason);
  void examine(Transfer &, bool interrupted);
  bool withdraw(Transfer &);
  void free_message(Transfer &);
  std::string call_text(bool sends, uint64_t elements, uint32_t dtype) const;
  Group &group_;
  std::mutex mutex_;
  std::condition_variable more_;
  std::list<std::shared_ptr<Transfer>> open_;
  uint64_t sequence_ = 0;
  bool lane_taken_[lanes] = {};
  bool stopping_ = false;
};

}  // namespace plait::multiprocessing
