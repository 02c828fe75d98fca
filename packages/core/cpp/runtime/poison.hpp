// Under AddressSanitizer freed blocks are poisoned, so that recycled memory hides no error.
#pragma once
#include <cstdint>

#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/asan_interface.h>
#define PLAIT_POISON(p, n) __asan_poison_memory_region(p, n)
#define PLAIT_UNPOISON(p, n) __asan_unpoison_memory_region(p, n)
#else
#define PLAIT_POISON(p, n) ((void)(p), (void)(n))
#define PLAIT_UNPOISON(p, n) ((void)(p), (void)(n))
#endif

namespace plait::core {

// The first word of a free block holds the address of the next free one.
inline void set_next_free(void *block, void *next) {
  PLAIT_UNPOISON(block, sizeof(void *));
  *static_cast<void **>(block) = next;
  PLAIT_POISON(block, sizeof(void *));
}
inline void *next_free(void *block) {
  PLAIT_UNPOISON(block, sizeof(void *));
  return *static_cast<void **>(block);
}

}  // namespace plait::core
