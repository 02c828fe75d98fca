// Arenas: each is a memfd, mapped once in a process.
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
  int64_t pid;  // pid of the maker
};

// The counts of a block in one word: generation (24 bits), messages in transit (20), processes that
// hold it (20).
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
  uint64_t listed;  // used by the maker: whether it is in one of its lists
};
static_assert(sizeof(BlockHeader) <= block_header);
static_assert(std::atomic<uint64_t>::is_always_lock_free);

// What messages carry the descriptor of: an arena, or memory of a device.
struct File {
  int fd;
  uint64_t device, inode;
  uint64_t users;  // number of storages and pins in this process; guarded by the table's mutex
  bool is_arena;
};

struct Arena : File {
  uint64_t id[2];
  char *base;
  uint64_t size;
  int64_t pid;        // of the maker
  bool own;           // made by this process, which takes blocks only from its own arenas
  uint64_t used;      // own arenas: the offset of the next block
  uint64_t committed; // own arenas: the end of the committed memory

  BlockHeader *header(uint64_t offset) const {
    return reinterpret_cast<BlockHeader *>(base + offset - block_header);
  }
};

// The error of a failed function; exceptions are not used, as arenas are made under a lock.
struct Failure {
  plait_status code = PLAIT_OK;
  char text[512] = "";
  void set(plait_status c, const char *format, ...) __attribute__((format(printf, 3, 4)));
};

Arena *make_arena(uint64_t size, Failure &);  // nullptr with a failure
bool is_arena(int fd);                // also one of another version
Arena *map_arena(int fd, Failure &);  // takes the descriptor over
void unmap_arena(Arena *);  // deletes it
bool commit(Arena *, uint64_t from, uint64_t to, Failure &);
// returns the whole pages in the range to the system
void punch(Arena *, uint64_t from, uint64_t to);
uint64_t bytes_taken();  // by this process
void forget_taken();
bool is_alive(int64_t pid);
// Reserves memory for one more entry before a file is opened; false with a failure.
template <class F>
bool room_for_one_more(std::vector<F *> &files, Failure &f) {
  try {
    if (files.size() == files.capacity()) files.reserve(2 * files.size() + 4);
    return true;
  } catch (const std::bad_alloc &) {
    f.set(PLAIT_MEMORY_ERROR, "shared memory: %zu bytes are required to note a file",
          (2 * files.size() + 4) * sizeof(F *));
    return false;
  }
}

}  // namespace plait::multiprocessing
