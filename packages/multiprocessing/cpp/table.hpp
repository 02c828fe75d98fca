// The shared memory of this process: its arenas, the storages on their blocks, the free blocks of
// the arenas that it made, and the memory of devices that it lends and borrows.
#pragma once
#include <condition_variable>
#include <deque>
#include <map>
#include <mutex>
#include <unordered_map>
#include <vector>

#include "arena.hpp"

namespace plait::multiprocessing {

struct BlockAddress {
  Arena *arena;
  uint64_t offset;
  bool punched;  // its pages were returned to the system
};

class Blocks {  // of the arenas that this process made; guarded by the table's mutex
 public:
  // a free block, counted with one holder; arena nullptr with a failure
  BlockAddress take(uint64_t nbytes, std::vector<Arena *> &arenas, Failure &);
  void give(Arena *, uint64_t offset);  // releases this process's count
  void trim();
  void forget();  // drops all blocks after a fork, as they are the parent's
  uint64_t free_bytes() const { return free_bytes_; }

 private:
  struct Sizes {
    std::vector<BlockAddress> free;
    std::deque<BlockAddress> held;  // held by other processes at the last check
  };
  BlockAddress cut(uint64_t total, std::vector<Arena *> &arenas, Failure &);
  Arena *arena_for(uint64_t total, std::vector<Arena *> &arenas, Failure &);
  bool extend(Arena *, uint64_t to, Failure &);
  void sweep(Sizes &, size_t at_most);
  void put(Sizes &, const BlockAddress &);
  std::map<uint64_t, Sizes> sizes_;  // by the bytes of a block with its header
  Arena *newest_ = nullptr;
  uint64_t free_bytes_ = 0;
};

struct Lent;  // device_memory.hpp

struct BlockStorage {  // plait_storage::block of ours
  Arena *arena;
  uint64_t offset;
  bool given_back;  // releases the counts before the process ends
  Lent *lent;       // of a ticket block: the memory of a device that it stands for, or nullptr
};
inline BlockStorage *block_of(const plait_storage *s) {
  return static_cast<BlockStorage *>(s->block);
}

struct Table {
  std::mutex mutex;
  const plait_runtime *runtime = nullptr;
  const plait_type *plain_storage = nullptr;  // the type that the runtime gave the storage
  std::vector<Arena *> arenas;
  std::unordered_map<const void *, plait_storage *> storages;  // by the block's first byte
  Blocks blocks;
  std::vector<File *> files;  // regular ones that are no arenas: there is one of each
  std::map<const plait_storage *, Lent *> loans;  // what this process lends, by the storage
  const plait_storage *swept = nullptr;  // of the loans: the last one that was looked at
  std::condition_variable opened;  // memory of a device was opened or closed
  bool left = false;  // the process ends: the counts were given back, devices are not called
};
Table &table();

void start(const plait_runtime *);
// the living storage of a block, counted once more, or nullptr; no message is taken over
plait_storage *held_block(const plait_block_name &);
bool step_back(Arena *, uint64_t offset);  // removes a holder; true: the block is free now
// takes one more reference of a storage that the table names; false if it is being dropped. Under
// the lock, as is the `drop` of its type
bool take_up(plait_storage *);
void leave_file(File *);  // removes a user; under the lock
void drop_idle();  // unmaps unused arenas; under the lock

}  // namespace plait::multiprocessing
