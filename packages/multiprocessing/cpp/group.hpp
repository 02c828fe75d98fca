// The shared block of a group, and how its members wait for each other.
#pragma once
#include <atomic>
#include <string>

#include "reduce.hpp"
#include "shared.h"

namespace plait::multiprocessing {

struct Call {  // the collective that a member calls; all members compare it
  uint32_t kind, reduction, root, dtype;
  uint64_t elements;
  bool operator==(const Call &c) const {
    return kind == c.kind && reduction == c.reduction && root == c.root && dtype == c.dtype &&
           elements == c.elements;
  }
};

enum SlotState : uint32_t { SLOT_FREE, SLOT_TAKEN, SLOT_JOINED, SLOT_LEFT };

struct alignas(128) Slot {     // the slot of one rank, which only that rank writes to
  std::atomic<uint32_t> step;  // the number of steps, for which the others wait
  std::atomic<uint32_t> state;
  std::atomic<int64_t> pid;
  // start time of the process in clock ticks since boot, which differs if a pid is reused
  uint64_t started;
  Call call[2];      // of even and odd operations, as no member is two operations ahead
};
static_assert(sizeof(Slot) == 128);

struct Control {
  uint64_t magic, chunk;
  double timeout;
  uint32_t size;
  uint32_t reserved;
  // the first failure, a Reason: the rank that gave up, why, and because of which rank; or 0
  std::atomic<uint64_t> broken;
};

enum Cause : uint32_t { CAUSE_LEFT = 1, CAUSE_DIED, CAUSE_TIMED_OUT, CAUSE_INTERRUPTED };
struct Reason {  // packed into one word, so that it is read at once
  uint32_t by, of;  // ranks; `of` is the missing one
  Cause cause;
  uint64_t packed() const { return uint64_t(cause) << 48 | uint64_t(of) << 24 | by; }
  explicit Reason(uint64_t word)
      : by(word & 0xffffff), of(word >> 24 & 0xffffff), cause(Cause(word >> 48)) {}
  Reason(uint32_t by_, uint32_t of_, Cause cause_) : by(by_), of(of_), cause(cause_) {}
};

class Group {
 public:
  Group(plait_storage *s, uint32_t rank);
  Group(const Group &) = delete;
  ~Group() { plait_release(storage_); }
  uint32_t size() const { return control_->size; }
  uint32_t rank() const { return rank_; }
  uint64_t chunk() const { return control_->chunk; }
  Slot &slot(uint32_t r) const { return slots_[r]; }
  char *staging(uint32_t r, uint64_t parity) const;
  char *result(uint64_t parity) const;

  bool take(std::string &why);  // this rank's slot
  void leave();
  // makes one step, and waits until all other ranks have made it
  plait_outcome meet(int (*interrupted)(void), std::string &why);
  void announce(const Call &);
  bool agreed(std::string &why) const;
  uint64_t operations = 0;
  const char *doing = "";

 private:
  plait_outcome wait_for(uint32_t r, uint32_t step, double deadline, int (*interrupted)(void),
                         std::string &why);
  bool is_lost(uint32_t r, Cause &cause) const;
  plait_outcome give_up(plait_outcome, const Reason &, std::string &why, const std::string &text);
  std::string missing(uint32_t step, uint32_t &first) const;
  std::string broken_text() const;
  std::string name(uint32_t r) const;
  plait_storage *storage_;
  Control *control_;
  Slot *slots_;
  char *data_;
  uint32_t rank_;
};

uint64_t group_bytes(uint32_t size, uint64_t chunk);
void format_group(void *at, uint32_t size, uint64_t chunk, double timeout);
bool is_group(const plait_storage *);

}  // namespace plait::multiprocessing
