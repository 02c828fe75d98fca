// Arenas: one memfd each, mapped once in a process.
#pragma once
#include <plait/plait.hpp>

#include <atomic>
#include <cstdint>
#include <vector>

#include "shared.h"

namespace plait::multiprocessing {

constexpr uint64_t arena_magic = 0x31306d6873746c70;  // "plthsm01"
constexpr uint64_t header_bytes = 4096;               // of an arena
constexpr uint64_t block_header = 64;                 // before the bytes of a block

struct ArenaHeader {
  uint64_t magic, size;
  uint64_t id[2];
  int64_t pid;  // of the maker
};

// One word of a block: generation (24 bits), messages on their way (20), processes that hold it
// (20).
struct Counts {
  static constexpr uint64_t one_holder = 1, one_message = uint64_t(1) << 20;
  static constexpr uint64_t most = (uint64_t(1) << 20) - 1;
  static uint64_t holders(uint64_t w) { return w & most; }
  static uint64_t messages(uint64_t w) { return (w >> 20) & most; }
  static uint64_t generation(uint64_t w) { return w >> 40; }
  static bool is_free(uint64_t w) { return (w & ((uint64_t(1) << 40) - 1)) == 0; }
};

struct BlockHeader {  // in the arena, before the block's bytes
  std::atomic<uint64_t> counts;
  uint64_t room;    // bytes after this header
  uint64_t listed;  // the maker's own: it stands in one of its lists
};
static_assert(sizeof(BlockHeader) <= block_header);
static_assert(std::atomic<uint64_t>::is_always_lock_free);

struct Arena {
  uint64_t id[2];
  uint64_t device, inode;
  int fd;
  char *base;
  uint64_t size;
  int64_t pid;        // of the maker
  bool own;           // made by this very process: only then are blocks taken from it
  uint64_t used;      // own: where the next block begins
  uint64_t committed; // own: up to here there is memory
  uint64_t users;     // storages and pins here; guarded by the table's mutex

  BlockHeader *header(uint64_t offset) const {
    return reinterpret_cast<BlockHeader *>(base + offset - block_header);
  }
};

// A text for what failed, in place of an exception: arenas are made under a lock.
struct Failure {
  plait_status code = PLAIT_OK;
  char text[512] = "";
  void set(plait_status c, const char *format, ...) __attribute__((format(printf, 3, 4)));
};

Arena *make_arena(uint64_t size, Failure &);      // nullptr with a failure
Arena *map_arena(int fd, Failure &);              // takes fd over
void unmap_arena(Arena *);                        // deletes it
bool commit(Arena *, uint64_t from, uint64_t to, Failure &);
void punch(Arena *, uint64_t from, uint64_t to);  // gives whole pages in between back
uint64_t bytes_taken();                           // by this process
void forget_taken();
bool is_alive(int64_t pid);
// Before an arena is made that there must be room to note; false with a failure.
bool room_for_one_more(std::vector<Arena *> &, Failure &);

}  // namespace plait::multiprocessing
