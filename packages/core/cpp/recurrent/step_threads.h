// Threads that take steps together: a step's items run on all of them, and no step begins before
// the step before has ended.
#pragma once
#include "kernel/kernel.h"
#include "runtime/lock.hpp"

namespace plait::core {

// One parallel region for all steps, as opening one for each costs more than a short step. Each
// thread has items of its own, so that what it reads in every step stays in its caches. A thread
// that waits takes items of threads that have not come or are late, so any one thread can end all
// steps alone: an executor may call the threads' parts one after the other.
class StepThreads {
 public:
  // A region of `items` items a step whose steps take `work` units of parallel work.
  plait_status take(const plait_call *c, int64_t items, int64_t work) {
    const plait_executor *e = PLAIT_ROLE(plait_executor, roles.executor);
    items_ = items;
    threads_ = int64_t(e->width(e->ctx));
    if (threads_ > items) threads_ = items;
    if (threads_ > work) threads_ = work;
    if (threads_ <= 1) return PLAIT_OK;
    PLAIT_TRY(space_.take(c, uint64_t(items_ + 2) * kLine));
    memset(space_.as<char>(), 0, size_t(items_ + 2) * kLine);
    return PLAIT_OK;
  }

  // Calls f(step, item) for all items of all steps.
  template <class F>
  void run(const plait_call *c, int64_t steps, F &&f) {
    if (threads_ <= 1) {
      for (int64_t k = 0; k < steps; k++)
        for (int64_t i = 0; i < items_; i++) f(k, i);
      return;
    }
    parallel(c, threads_, [&](int64_t self) {
      const int64_t begin = self * items_ / threads_, end = (self + 1) * items_ / threads_;
      __atomic_fetch_add(present(), 1, __ATOMIC_RELAXED);
      for (int64_t k = 0; k < steps; k++) {
        take_items(k, begin, end, f);
        for (int64_t round = 0; !has_ended(k); round++) {
          const bool all = __atomic_load_n(present(), __ATOMIC_RELAXED) == threads_;
          if (all && round % kPatience != kPatience - 1) {
            pause();
            continue;
          }
          if (round > kPatience) sched_yield();
          take_items(k, 0, items_, f);
        }
      }
    });
  }

 private:
  static constexpr int64_t kLine = 64;
  static constexpr int64_t kPatience = 64;  // rounds of waiting before others' items are taken

  // The words stand on cache lines of their own: how many threads have come, how many items have
  // ended, and for each item the next step that nobody has taken it for.
  int64_t *word(int64_t i) const { return space_.as<int64_t>() + i * (kLine / 8); }
  int64_t *present() const { return word(0); }
  int64_t *ended() const { return word(1); }
  int64_t *next(int64_t item) const { return word(2 + item); }

  bool has_ended(int64_t k) const {
    return __atomic_load_n(ended(), __ATOMIC_ACQUIRE) >= (k + 1) * items_;
  }
  template <class F>
  void take_items(int64_t k, int64_t begin, int64_t end, F &&f) {
    int64_t count = 0;
    for (int64_t i = begin; i < end; i++) {
      int64_t expected = k;
      if (__atomic_load_n(next(i), __ATOMIC_RELAXED) != k) continue;
      if (!__atomic_compare_exchange_n(next(i), &expected, k + 1, false, __ATOMIC_RELAXED,
                                       __ATOMIC_RELAXED))
        continue;
      f(k, i);
      count++;
    }
    if (count) __atomic_fetch_add(ended(), count, __ATOMIC_ACQ_REL);
  }

  int64_t items_ = 0, threads_ = 1;
  Workspace space_;
};

}  // namespace plait::core
