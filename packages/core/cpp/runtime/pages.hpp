// Memory from the system, page by page.
#ifndef PLAIT_CORE_PAGES_HPP
#define PLAIT_CORE_PAGES_HPP
#include <cstdint>

namespace plait::core {

// `bytes` fresh zeroed bytes, a multiple of 4096, or NULL. From 2 MB on they start at a huge page's
// border and huge pages are asked for: a fresh small page costs microseconds.
void *map_pages(uint64_t bytes);
void unmap_pages(void *data, uint64_t bytes);
uint64_t physical_bytes();

}  // namespace plait::core
#endif  // PLAIT_CORE_PAGES_HPP
