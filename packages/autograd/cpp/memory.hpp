// Memory for nodes and their data. Blocks are recycled by the thread that frees them, because
// training steps make and drop the same sizes again and again.
#pragma once
#include <cstddef>
#include <cstdint>

namespace plait::autograd {

struct Node;

void *allocate(size_t bytes);  // throws std::bad_alloc; 16-byte aligned
void deallocate(void *block, size_t bytes) noexcept;

// The releases that a thread has begun: dropping a node must not recurse into its parents.
struct Releases {
  Node *pending;
  bool draining;
};
Releases &releases() noexcept;

}  // namespace plait::autograd
