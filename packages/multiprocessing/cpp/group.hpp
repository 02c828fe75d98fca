// The shared block of a group, and how its members wait for each other.
#pragma once
#include <atomic>
#include <functional>
#include <mutex>
#include <string>
#include <vector>

#include <plait/collectives/call.hpp>
#include <plait/collectives/failure.hpp>
#include <plait/collectives/signals.hpp>

#include "borrowed.hpp"
#include "shared.h"

namespace plait::multiprocessing {

using namespace collectives;

constexpr uint32_t most_ranks = 1024;
// Staging areas of a rank, and areas of results, used in turns. The fewest that `most_slack`
// allows.
constexpr uint32_t most_slack = 2, areas = 2 * most_slack;

enum SlotState : uint32_t { SLOT_FREE, SLOT_TAKEN, SLOT_JOINED, SLOT_LEFT };

struct alignas(128) Slot {     // the slot of one rank, which only that rank writes to
  std::atomic<uint32_t> step;  // the number of steps, for which the others wait
  std::atomic<uint32_t> state;
  std::atomic<int64_t> pid;
  // start time of the process in clock ticks since boot, which differs if a pid is reused
  uint64_t started;
  double waited;  // seconds, before this rank gave up
  std::atomic<uint32_t> known_loss;  // when it left: a packed Loss of another rank, or 0
  std::atomic<uint32_t> returned;    // whether the hold of its dead process was given back
  Call call[2];   // of even and odd operations, as no member is two operations ahead
};
static_assert(sizeof(Slot) == 128);

// Where a rank's tensor lies, for the others.
struct alignas(128) Offer {
  Place place;
  std::atomic<uint32_t> taken;  // whether this rank has found all others' tensors
};

// A message on its way: its sender posts it, its receiver claims it and takes the elements from the
// sender's lane, part by part, or refuses it, and the sender frees it.
enum MessageState : uint32_t {
  MESSAGE_FREE,
  MESSAGE_POSTED,
  MESSAGE_CLAIMED,
  MESSAGE_EXAMINED,  // it is about to be refused
  MESSAGE_REFUSED
};
struct Message {
  // the message's number among those of its sender, times 8, plus its state: a receiver that read a
  // message that was taken back meanwhile does not claim another one in its place
  std::atomic<uint64_t> word;
  std::atomic<uint32_t> lane;           // its number plus one
  std::atomic<uint32_t> filled, taken;  // numbers of parts
  uint32_t to, dtype, wanted_dtype;     // wanted: by a receiver that refused it
  int64_t tag;
  uint64_t elements, wanted_elements;

  uint64_t read() const { return word.load(std::memory_order_acquire); }
  MessageState state() const { return MessageState(read() & 7); }
  void set(MessageState s) { word.store((read() & ~uint64_t(7)) | s, std::memory_order_release); }
  bool move(uint64_t from, MessageState to_state) {
    return word.compare_exchange_strong(from, (from & ~uint64_t(7)) | to_state);
  }
};
constexpr uint32_t most_messages = 64, lanes = 4;  // of one sender
struct Outbox {  // the messages that a rank sends
  // changes when anything happens to a message from or to this rank
  alignas(128) std::atomic<uint32_t> bell;
  Message message[most_messages];
};

struct Control {
  uint64_t magic, chunk, id;
  double timeout;
  uint32_t size;
  std::atomic<uint32_t> aborting;  // the number plus one of the rank that writes `aborted`
  // the first failure, a Reason: the rank that gave up, why, and because of which rank; or 0
  std::atomic<uint64_t> broken;
  LostRank lost;       // of an abort because a process was lost; its pid is 0 otherwise
  FailureKind kind;    // of an abort
  char aborted[416];   // the text of an abort, or the function that was interrupted
};

enum Cause : uint32_t {
  CAUSE_LEFT = 1,
  CAUSE_DIED,
  CAUSE_TIMED_OUT,
  CAUSE_INTERRUPTED,
  CAUSE_ABORTED,
  CAUSE_STOPPED,
  CAUSE_TOLD  // the text of the abort says all: the members do not meet
};
struct Reason {  // packed into one word, so that it is read at once
  uint32_t by, of;  // ranks; `of` is the missing one
  Cause cause;
  uint64_t packed() const { return uint64_t(cause) << 48 | uint64_t(of) << 24 | by; }
  explicit Reason(uint64_t word)
      : by(word & 0xffffff), of(word >> 24 & 0xffffff), cause(Cause(word >> 48)) {}
  Reason(uint32_t by_, uint32_t of_, Cause cause_) : by(by_), of(of_), cause(cause_) {}
};

struct Loss {  // of a rank
  uint32_t of;
  Cause cause;
  uint32_t packed() const { return uint32_t(cause) << 16 | of; }
  static Loss unpacked(uint32_t word) { return {word & 0xffff, Cause(word >> 16)}; }
};
static_assert(most_ranks <= 1 << 16);

using collectives::Outcome;
using collectives::Patience;

class Group {
 public:
  Group(plait_storage *s, uint32_t rank);
  Group(const Group &) = delete;
  ~Group();
  void abandon() { plait_release(std::exchange(storage_, nullptr)); }  // in a forked child
  uint32_t size() const { return control_->size; }
  uint32_t rank() const { return rank_; }
  uint64_t chunk() const { return control_->chunk; }
  uint64_t id() const { return control_->id; }
  double timeout() const { return control_->timeout; }
  Slot &slot(uint32_t r) const { return slots_[r]; }
  Outbox &outbox(uint32_t r) const { return outboxes_[r]; }
  Offer &offer(uint32_t r) const { return offers_[2 * r + (operations & 1)]; }
  char *staging(uint32_t r, uint64_t turn) const;
  char *result(uint64_t turn) const;
  uint64_t part() const;  // bytes of one part of a message
  char *part_of(uint32_t r, uint32_t lane, uint32_t number) const;  // two parts in turns
  std::string name(uint32_t r) const;

  bool take(Explanation &reason);  // this rank's slot
  void leave();
  void abort(const Explanation &reason, Cause cause = CAUSE_ABORTED);
  // makes one step, and waits until each other rank has made it, or all but its last `slack` steps
  Outcome meet(const Patience &, Explanation &reason, uint32_t slack = 0);
  // Whether a wait for this rank must end though it has not come; looks at the other process. If it
  // must, the group breaks, unless the rank left in order and `ends_alone` says that only this wait
  // ends.
  Outcome check(
      uint32_t r, const std::function<bool()> &came, Explanation &reason,
      const std::function<bool()> &ends_alone = [] { return false; });
  // As `check`, and the group stays as it is: whether the rank is lost, and not whether the group
  // is broken.
  bool find_loss(uint32_t r, Explanation &reason);
  // breaks the group
  Outcome give_up(Outcome, const Reason &, double waited, Explanation &reason,
                  const Explanation &text);
  void ring(uint32_t r) const;  // its bell
  void listen(uint32_t seen) const;  // waits for the own bell, some milliseconds at most
  void announce(const Call &);
  bool agreed(Explanation &reason) const;
  uint64_t operations = 0, chunks = 0;  // so far; they choose slots and areas
  Borrowed borrowed;                    // memory of the other ranks
  bool cannot_borrow = false;           // a rank cannot use the others' memory

 private:
  Outcome wait_for(uint32_t r, uint32_t step, double deadline, const Patience &,
                   Explanation &reason);
  Outcome check_all(uint32_t step, Explanation &reason);
  bool has_died(uint32_t r, char *state = nullptr) const;
  bool is_lost(uint32_t r, Loss &loss);
  void note_known_loss();
  void give_back_holds_of_dead();
  bool is_stopped_too_long(uint32_t r, bool stopped);
  std::string missing(uint32_t step, uint32_t &first) const;
  Explanation broken_text() const;
  Explanation loss_of(uint32_t r, const std::string &text) const;
  Explanation loss_text(const Loss &) const;
  plait_storage *storage_;
  Control *control_;
  Slot *slots_;
  Offer *offers_;
  Outbox *outboxes_;
  char *lanes_, *data_;
  uint32_t rank_;
  bool taken_ = false;  // its slot, by this object
  // how long this process has seen the others stopped; its threads look at them
  struct Stop {
    double seen = 0;  // when it was last looked at and was stopped, or 0
    double length = 0;
  };
  const double stopped_timeout_;
  std::mutex stops_mutex_;
  std::vector<Stop> stops_;
};

// When a process began, in clock ticks since boot, and the letter of its state; false if there is
// none of this number.
bool process_stat(int64_t pid, char &state, uint64_t &started);

uint64_t group_bytes(uint32_t size, uint64_t chunk);
void format_group(void *at, uint32_t size, uint64_t chunk, double timeout);
bool is_group(const plait_storage *);
void leave_groups();  // all of this process, before it ends

}  // namespace plait::multiprocessing
