// The rows of one thread: a list of blocks, of which the oldest is used again when there are too
// many.
#ifndef PLAIT_PROFILER_RING_HPP
#define PLAIT_PROFILER_RING_HPP
#include <plait/fork.hpp>

#include <deque>
#include <map>
#include <vector>

#include "interning.hpp"
#include "row.hpp"

struct plait_device_event;

namespace plait::profiler {

// Work on a device that has begun: the event before it, or nullptr, and the depth of its call.
struct Launch {
  plait_device_event *before;
  uint16_t depth;
};

class Ring {
 public:
  explicit Ring(uint32_t thread) : thread(thread) {}
  ~Ring();
  void push(const Row &, uint64_t capacity) noexcept;
  void clear();
  uint64_t size() const;
  // Copies the rows from the time `begin` to `end` into the room [to, limit); returns its rest.
  Row *copy(Row *to, const Row *limit, uint64_t begin, uint64_t end) const;
  void add_dropped(std::map<uint16_t, uint64_t> &) const;

  const uint32_t thread;
  // of the owning thread alone
  std::vector<uint64_t> open;  // the begins of events that have not ended
  uint32_t module = 0;
  uint64_t node = 0;  // the newest node when a call began or ended
  Recent recent_signatures, recent_contexts;
  std::deque<Launch> launches;

 private:
  static constexpr size_t block_size = 4096;
  struct Block {
    Row *rows;
    size_t used;
    bool in_journal;
  };
  bool add_block(uint64_t capacity);
  static void free_block(const Block &);

  mutable ProcessLock mutex_;  // of the members below
  std::deque<Block> blocks_;
  std::map<uint16_t, uint64_t> dropped_;  // by kind
};

}  // namespace plait::profiler
#endif  // PLAIT_PROFILER_RING_HPP
