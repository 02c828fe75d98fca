#include "count_allocations.hpp"

#include <cstddef>

std::atomic<long> allocations{0};

extern "C" {
void *__libc_malloc(size_t);
void *__libc_calloc(size_t, size_t);
void *__libc_realloc(void *, size_t);
void *__libc_memalign(size_t, size_t);
void *malloc(size_t n) {
  allocations++;
  return __libc_malloc(n);
}
void *calloc(size_t n, size_t size) {
  allocations++;
  return __libc_calloc(n, size);
}
void *realloc(void *p, size_t n) {
  allocations++;
  return __libc_realloc(p, n);
}
void *aligned_alloc(size_t alignment, size_t n) {
  allocations++;
  return __libc_memalign(alignment, n);
}
int posix_memalign(void **p, size_t alignment, size_t n) {
  allocations++;
  *p = __libc_memalign(alignment, n);
  return *p ? 0 : 12;
}
}
