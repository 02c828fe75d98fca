// Blocks for nodes and what belongs to them: recycled by the thread that frees them, because a
// training step makes and drops the same sizes over and over.
#pragma once
#include <cstddef>
#include <cstdint>

namespace plait::autograd {

struct Node;

void *allocate(size_t bytes);  // throws std::bad_alloc; 16-byte aligned
void deallocate(void *block, size_t bytes) noexcept;

// What a thread knows of the releases it is in the middle of: dropping a node must not recurse into
// its parents.
struct Releases {
  Node *pending;
  bool draining;
};
Releases &releases() noexcept;

}  // namespace plait::autograd
