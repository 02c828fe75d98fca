// The threads of a block, each on a stack of its own, which one thread of the host runs in turns.
#pragma once
#include <cstdint>
#include <vector>

#include "block/emulated.h"

namespace plait::cuda::emulation {

constexpr int kMaxThreads = 1024, kMaxWarps = kMaxThreads / kWarp;
constexpr size_t kStack = 64 << 10, kGuard = 4 << 10;

// Ends the kernel: the text gets the kernel's name, the block and the place in front.
[[noreturn]] void trap(const BlockState &state, int thread, Site site, driver::Result code,
                       const char *format, ...) __attribute__((format(printf, 5, 6)));
struct Trapped {
  Trap trap;
};
inline const char *stem(const char *file) {  // the name of a file without its folders
  const char *slash = strrchr(file, '/');
  return slash ? slash + 1 : file;
}

// Who touched a byte of shared memory last, between which barriers.
struct Touch {
  uint32_t epoch = 0;  // 0: nobody. It counts the barriers of all blocks that this host thread runs
  uint32_t place = 0;  // line, and the number of the file
  uint16_t thread = 0;
  uint16_t phase = 0;  // of the warp: how many warp barriers
  bool atomic = false;
};
struct Cell {
  Touch write, read[2];  // two readers that differ
};

struct Fibre {
  void *stack_pointer;
};

// The lanes of a warp. Bits are lanes.
struct Warp {
  uint32_t all, ready, done;
  uint32_t at_barrier;  // they wait for the block
  uint32_t arrived;  // they wait for the warp
  uint32_t turn;  // of the slots, for each lane
  uint16_t phase;
  Meeting kind;
  Site site;
  char slots[2][kWarp][kSlot];  // they take turns
};

struct Team {
  Team() = default;
  Team(const Team &) = delete;
  ~Team();

  int threads, warps, live, at_barrier;
  uint32_t epoch = 0, first_epoch = 0;
  Site barrier_site;
  int current;
  bool stopped;  // a thread was trapped: the others are left where they are
  Trap *trap;
  BlockState *state;
  void *host_stack_pointer, *host_stack = nullptr;
  size_t host_stack_size = 0;
  char *stacks = nullptr;
  int stacks_count = 0;
  Warp warp[kMaxWarps];
  Fibre fibre[kMaxThreads];
  std::vector<uint64_t> shared;  // aligned to 16 bytes from `shared_data` on
  char *shared_data;
  std::vector<Cell> words;  // who touched 4 bytes of shared memory
  std::vector<Cell> bytes;  // the same for each byte of words that are split
  std::vector<uint32_t> split;  // the first epoch of the block that has touched parts of the word
  const char *files[256];
  unsigned files_count = 0;
};

// Runs all threads of the block. False: one was trapped, and *trap says why.
bool run_team(Team &team, BlockState &state, Trap *trap);

}  // namespace plait::cuda::emulation
