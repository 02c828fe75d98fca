// A one-word lock for sections of a few nanoseconds: it spins briefly, then yields.
#pragma once
#include <sched.h>

#include <cstdint>

namespace plait::core {

inline void pause() {
#if defined(__x86_64__) || defined(__i386__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  __asm__ __volatile__("yield");
#endif
}

class SpinLock {
 public:
  void lock() {
    for (int tries = 0; __atomic_exchange_n(&taken_, 1, __ATOMIC_ACQUIRE); tries++) {
      while (__atomic_load_n(&taken_, __ATOMIC_RELAXED)) {
        if (++tries < 100) {
          pause();
        } else {  // the holder has lost its core: let it run
          sched_yield();
        }
      }
    }
  }
  void unlock() { __atomic_store_n(&taken_, 0, __ATOMIC_RELEASE); }

 private:
  uint32_t taken_ = 0;
};

class Guard {
 public:
  explicit Guard(SpinLock &lock) : lock_(lock) { lock_.lock(); }
  ~Guard() { lock_.unlock(); }
  Guard(const Guard &) = delete;
  Guard &operator=(const Guard &) = delete;

 private:
  SpinLock &lock_;
};

}  // namespace plait::core
