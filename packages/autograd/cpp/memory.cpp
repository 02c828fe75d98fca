#include "memory.hpp"

#include <cstdlib>
#include <new>

namespace plait::autograd {
namespace {

constexpr size_t kStep = 64, kClasses = 16,
                 kRoom = 2048;  // blocks of up to 1 KiB; 2048 of each class and thread

struct Block {
  Block *next;
};
struct Local {
  Block *free[kClasses];
  uint32_t count[kClasses];
  bool watched, gone;
  Releases releases;
};
// Zero-initialised and never constructed, so that it can still be used while other thread-locals
// are torn down.
__thread Local local;

struct End {
  ~End() {
    local.gone = true;
    for (size_t i = 0; i < kClasses; i++) {
      while (Block *b = local.free[i]) {
        local.free[i] = b->next;
        std::free(b);
      }
      local.count[i] = 0;
    }
  }
};

void watch(Local &l) {
  static thread_local End end;
  (void)&end;
  l.watched = true;
}

}  // namespace

void *allocate(size_t bytes) {
  const size_t c = (bytes + kStep - 1) / kStep;
  Local &l = local;
  if (c < kClasses && l.free[c]) {
    Block *b = l.free[c];
    l.free[c] = b->next;
    l.count[c]--;
    return b;
  }
  void *p = std::malloc((c ? c : 1) * kStep);
  if (!p) throw std::bad_alloc();
  return p;
}

void deallocate(void *block, size_t bytes) noexcept {
  const size_t c = (bytes + kStep - 1) / kStep;
  Local &l = local;
  if (c >= kClasses || l.gone || l.count[c] >= kRoom) return std::free(block);
  if (!l.watched) watch(l);
  auto *b = static_cast<Block *>(block);
  b->next = l.free[c];
  l.free[c] = b;
  l.count[c]++;
}

Releases &releases() noexcept { return local.releases; }

}  // namespace plait::autograd
