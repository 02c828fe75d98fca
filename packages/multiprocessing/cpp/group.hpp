// The block of a group, and how its members wait for one another.
#pragma once
#include <atomic>
#include <string>

#include "reduce.hpp"
#include "shared.h"

namespace plait::multiprocessing {

struct Call {  // what a member asks of the others; compared by all of them
  uint32_t kind, reduction, root, dtype;
  uint64_t elements;
  bool operator==(const Call &c) const {
    return kind == c.kind && reduction == c.reduction && root == c.root && dtype == c.dtype &&
           elements == c.elements;
  }
};

enum SlotState : uint32_t { SLOT_FREE, SLOT_TAKEN, SLOT_JOINED, SLOT_LEFT };

struct alignas(128) Slot {     // of one rank; only that rank writes it
  std::atomic<uint32_t> step;  // counts up; the others wait for it
  std::atomic<uint32_t> state;
  std::atomic<int64_t> pid;
  uint64_t started;  // of the process, in clock ticks since boot: a reused pid is another
  Call call[2];      // of even and odd operations: nobody is two ahead
};
static_assert(sizeof(Slot) == 128);

struct Control {
  uint64_t magic, chunk;
  double timeout;
  uint32_t size;
  uint32_t reserved;
  std::atomic<uint64_t> broken;  // who gave up first, why and because of whom: a Reason, or 0
};

enum Cause : uint32_t { CAUSE_LEFT = 1, CAUSE_DIED, CAUSE_TIMED_OUT, CAUSE_INTERRUPTED };
struct Reason {  // packed into one word, so that nobody reads a half of it
  uint32_t by, of;  // ranks; `of` did not come
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

  bool take(std::string &why);  // the own slot
  void leave();
  // tells the others that this rank is one step further, and waits until they are
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
