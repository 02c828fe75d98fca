// Locks that are free in the child of a fork. A child has only the thread that forked, so a lock
// that another thread held would stay locked for ever.
#ifndef PLAIT_FORK_HPP
#define PLAIT_FORK_HPP
#include <pthread.h>
#include <time.h>

#include <atomic>
#include <cstdint>
#include <mutex>
#include <new>

// one for each library: a library's files share it, other libraries have their own
#define PLAIT_OF_LIBRARY __attribute__((visibility("hidden")))

namespace plait {

// A mutex of static storage. A fork locks it first, so that the data it guards is consistent in the
// child. The fork waits a limited time only, as the mutex's owner may wait for something that the
// forking thread holds, such as the GIL. In the child the mutex is free in either case.
class PLAIT_OF_LIBRARY ForkMutex {
 public:
  ForkMutex() : next_(first()) {
    if (!first()) pthread_atfork(take_all, give_back_all, renew_all);
    first() = this;
  }
  ForkMutex(const ForkMutex &) = delete;
  void lock() { mutex_.lock(); }
  void unlock() { mutex_.unlock(); }

 private:
  static constexpr int most_tries = 1000;  // waits of 0.1 ms, for all mutexes of a library together

  static ForkMutex *&first() {
    static ForkMutex *head = nullptr;
    return head;
  }
  static void take_all() {
    int tries = 0;
    for (ForkMutex *m = first(); m; m = m->next_)
      if (m->try_lock(tries)) m->forking_ = pthread_self();
  }
  bool try_lock(int &tries) {
    while (!mutex_.try_lock()) {
      if (tries++ >= most_tries) return false;
      const timespec pause{0, 100000};
      nanosleep(&pause, nullptr);
    }
    return true;
  }
  static void give_back_all() {
    for (ForkMutex *m = first(); m; m = m->next_) {
      if (m->forking_ != pthread_self()) continue;
      m->forking_ = pthread_t{};
      m->mutex_.unlock();
    }
  }
  static void renew_all() {
    for (ForkMutex *m = first(); m; m = m->next_) {
      m->forking_ = pthread_t{};
      new (&m->mutex_) std::mutex;
    }
  }

  std::mutex mutex_;
  std::atomic<pthread_t> forking_{};  // the thread whose fork took the mutex: two may fork at once
  ForkMutex *next_;
};

// The number of forks between this process and the one that first loaded the library, plus one.
struct PLAIT_OF_LIBRARY Forks {
  std::atomic<uint32_t> number{1};
  Forks();
};
inline PLAIT_OF_LIBRARY Forks forks;
inline Forks::Forks() {
  pthread_atfork(nullptr, nullptr, [] { forks.number++; });
}

// A lock of one word, 0 while it is free, for short waits and for objects that are made and freed
// often. It belongs to the process that locked it: a child treats a lock of its parent as free.
inline void take_word(uint32_t &word) noexcept {
  const uint32_t own = forks.number.load(std::memory_order_relaxed);
  for (int i = 0;; i++) {
    uint32_t seen = __atomic_load_n(&word, __ATOMIC_RELAXED);
    if (seen != own &&
        __atomic_compare_exchange_n(&word, &seen, own, false, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED))
      return;
    if (i < 1000) continue;
    const timespec pause{0, i < 2000 ? 0 : 50000};
    nanosleep(&pause, nullptr);
  }
}
inline void give_word(uint32_t &word) noexcept { __atomic_store_n(&word, 0, __ATOMIC_RELEASE); }

class ProcessLock {
 public:
  void lock() noexcept { take_word(word_); }
  void unlock() noexcept { give_word(word_); }

 private:
  uint32_t word_ = 0;
};

}  // namespace plait
#undef PLAIT_OF_LIBRARY
#endif  // PLAIT_FORK_HPP
