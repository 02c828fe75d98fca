// A library for LD_PRELOAD: the n-th `operator new` after fail_new(n) throws std::bad_alloc.
#include <atomic>
#include <cstdlib>
#include <new>

static std::atomic<long> left{0};

extern "C" __attribute__((visibility("default"))) void fail_new(long n) { left = n; }

__attribute__((visibility("default"))) void *operator new(std::size_t n) {
  if (left.load() > 0 && left.fetch_sub(1) == 1) throw std::bad_alloc();
  if (void *p = std::malloc(n ? n : 1)) return p;
  throw std::bad_alloc();
}
__attribute__((visibility("default"))) void operator delete(void *p) noexcept { std::free(p); }
__attribute__((visibility("default"))) void operator delete(void *p, std::size_t) noexcept {
  std::free(p);
}
