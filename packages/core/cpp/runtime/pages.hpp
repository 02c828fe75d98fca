// Memory from the system, page by page.
#pragma once
#include <cstdint>

namespace plait::core {

// `bytes` fresh zeroed bytes, a multiple of 4096, or NULL.
void *map_pages(uint64_t bytes);
// The same from the border of a huge page on, with unused addresses below for `map_pages_at` where
// there are some. Huge: in huge pages if the system has them, as small ones take microseconds each.
void *map_range(uint64_t bytes, bool huge);
// The same at an address; NULL if something else is there.
void *map_pages_at(void *where, uint64_t bytes, bool huge);
void unmap_pages(void *data, uint64_t bytes);
uint64_t physical_bytes();

}  // namespace plait::core
