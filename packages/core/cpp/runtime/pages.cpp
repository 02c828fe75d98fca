#include "pages.hpp"

#include <sys/mman.h>
#include <unistd.h>

#include "sizes.hpp"

namespace plait::core {
namespace {

void *map(uint64_t bytes) {
  void *p = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  return p == MAP_FAILED ? nullptr : p;
}

}  // namespace

void *map_pages(uint64_t bytes) {
  if (bytes < kHugePage) return map(bytes);
  char *p = static_cast<char *>(map(bytes + kHugePage));
  if (!p) return nullptr;
  const uint64_t head = -reinterpret_cast<uintptr_t>(p) & (kHugePage - 1);
  if (head) munmap(p, head);
  if (head < kHugePage) munmap(p + head + bytes, kHugePage - head);
  madvise(p + head, bytes, MADV_HUGEPAGE);
  return p + head;
}

void unmap_pages(void *data, uint64_t bytes) { munmap(data, bytes); }

uint64_t physical_bytes() {
  const long pages = sysconf(_SC_PHYS_PAGES), size = sysconf(_SC_PAGESIZE);
  return pages > 0 && size > 0 ? uint64_t(pages) * uint64_t(size) : uint64_t(4) << 30;
}

}  // namespace plait::core
