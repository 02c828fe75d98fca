// Tensors of other processes in shared memory, used in place for the time of a collective.
#pragma once
#include <plait/plait.hpp>

#include <vector>

#include "shared.h"

namespace plait::multiprocessing {

struct File;
struct Arena;

// Where a tensor lies, if it is in shared memory: another process can find it by this.
struct Place {
  uint32_t known;      // whether there is one
  int32_t descriptor;  // of the arena, in the process of the tensor
  plait_block_name block;
  uint64_t at;  // of the tensor's first byte in the block
};

// of a contiguous tensor
Place place_of(const plait_tensor *);

// The places of others that this process uses. Their arenas stay mapped until the end; their blocks
// are held until `give_back`, so that no other process gets them even if their owner ends.
class Borrowed {
 public:
  Borrowed() = default;
  Borrowed(const Borrowed &) = delete;
  ~Borrowed();
  char *take(const Place &, uint64_t nbytes, int64_t pid);  // nullptr if it cannot be had
  void give_back();

 private:
  struct Held {
    Arena *arena;
    uint64_t offset;
  };
  std::vector<File *> pinned_;
  std::vector<Held> held_;
};

}  // namespace plait::multiprocessing
