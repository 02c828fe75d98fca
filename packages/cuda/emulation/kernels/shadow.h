// Races in global memory: who touched which element in this launch (PLAIT_CUDA_CHECK=1).
#pragma once
#include <cstdint>
#include <unordered_map>

#include "block/emulated.h"

namespace plait::cuda::emulation {

struct GlobalTouch {
  Site site = {nullptr, 0};  // NULL: nobody
  uint64_t block = 0, time = 0;
  uint32_t epoch = 0;  // barriers of the block
  uint16_t thread = 0, phase = 0;
  bool atomic = false;
  bool may_repeat = false;  // a write that others may repeat with an equal value
};
struct GlobalCell {
  GlobalTouch write, read[2];  // two readers that differ
};

// Blocks run one after the other here. Two threads of different blocks are ordered if the first
// one's block updated something atomically after the access, and the second one's block before its
// own: that is how blocks tell each other that they have finished. Which element they update is not
// looked at.
struct Shadow {
  std::unordered_map<uintptr_t, GlobalCell> cells;  // by address, in steps of up to 4 bytes
  std::unordered_map<uint64_t, uint64_t> updated;   // when a block updated something last
  uint64_t time = 0;
};

// A write of `store_same`, and whether the memory holds its value already.
struct Repetition {
  bool is_allowed, is_equal;
};
void record_global(const GlobalView &view, int64_t i, int count, Access access, Site site,
                   Repetition);

}  // namespace plait::cuda::emulation
