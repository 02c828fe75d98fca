#include "pages.hpp"

#include <sys/mman.h>
#include <unistd.h>

#include "sizes.hpp"

namespace plait::core {
namespace {

constexpr uint64_t kRoom = uint64_t(64) << 30, kLeastRoom = uint64_t(1) << 30;

void *map(void *where, uint64_t bytes) {
  void *p = mmap(where, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  return p == MAP_FAILED ? nullptr : p;
}

}  // namespace

void *map_pages(uint64_t bytes) { return map(nullptr, bytes); }

void *map_pages_at(void *where, uint64_t bytes, bool huge) {
  void *p = map(where, bytes);
  if (p && p != where) {
    munmap(p, bytes);
    return nullptr;
  }
  if (p && huge) madvise(p, bytes, MADV_HUGEPAGE);
  return p;
}

void *map_range(uint64_t bytes, bool huge) {
  // Other mappings fill an unused part of the address space from its top. In its middle there is
  // room to grow.
  for (uint64_t room = kRoom; room > 4 * bytes && room >= kLeastRoom; room /= 4) {
    void *hole = mmap(nullptr, room, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (hole == MAP_FAILED) continue;
    munmap(hole, room);
    const uint64_t middle = (reinterpret_cast<uintptr_t>(hole) + room / 2) & ~(kHugePage - 1);
    if (void *p = map_pages_at(reinterpret_cast<void *>(middle), bytes, huge)) return p;
  }
  char *p = static_cast<char *>(map(nullptr, bytes + kHugePage));
  if (!p) return nullptr;
  const uint64_t head = -reinterpret_cast<uintptr_t>(p) & (kHugePage - 1);
  if (head) munmap(p, head);
  if (head < kHugePage) munmap(p + head + bytes, kHugePage - head);
  if (huge) madvise(p + head, bytes, MADV_HUGEPAGE);
  return p + head;
}

void unmap_pages(void *data, uint64_t bytes) {
  // It fails where the system has no room for one more range: the addresses are lost, the memory
  // is not.
  if (munmap(data, bytes) != 0) madvise(data, bytes, MADV_DONTNEED);
}

uint64_t physical_bytes() {
  const long pages = sysconf(_SC_PHYS_PAGES), size = sysconf(_SC_PAGESIZE);
  return pages > 0 && size > 0 ? uint64_t(pages) * uint64_t(size) : uint64_t(4) << 30;
}

}  // namespace plait::core
