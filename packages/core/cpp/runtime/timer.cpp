#include "timer.hpp"

#include <linux/futex.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <climits>

namespace plait::core {
namespace {

constexpr int64_t kSecond = 1000000000;
constexpr size_t kStack = 256 << 10;

}  // namespace

void Timer::start(int64_t wait) {
  uint32_t none = 0;
  if (!__atomic_compare_exchange_n(&running_, &none, 1, false, __ATOMIC_SEQ_CST, __ATOMIC_RELAXED))
    return;
  if (__atomic_load_n(&paused_, __ATOMIC_SEQ_CST)) {
    __atomic_store_n(&running_, 0, __ATOMIC_RELEASE);
    return;
  }
  wait_ = wait;
  sigset_t all, old;
  sigfillset(&all);  // signals belong to the program's own threads
  pthread_sigmask(SIG_SETMASK, &all, &old);
  pthread_attr_t attributes;
  pthread_t thread;
  const bool fresh = pthread_attr_init(&attributes) == 0;
  if (fresh) {
    pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
    pthread_attr_setstacksize(&attributes, kStack);
  }
  if (!fresh || pthread_create(&thread, &attributes, main, this) != 0)
    __atomic_store_n(&running_, 0, __ATOMIC_RELEASE);
  if (fresh) pthread_attr_destroy(&attributes);
  pthread_sigmask(SIG_SETMASK, &old, nullptr);
}

void *Timer::main(void *timer) {
  static_cast<Timer *>(timer)->run();
  return nullptr;
}

void Timer::run() {
  for (int64_t wait = wait_;;) {
    while (wait && !__atomic_load_n(&paused_, __ATOMIC_SEQ_CST)) {
      const timespec time{time_t(wait / kSecond), long(wait % kSecond)};
      syscall(SYS_futex, &paused_, FUTEX_WAIT_PRIVATE, 0, &time, nullptr, 0);
      if (!__atomic_load_n(&paused_, __ATOMIC_SEQ_CST)) wait = function_();
    }
    __atomic_store_n(&running_, 0, __ATOMIC_SEQ_CST);
    // Who saw `running_` until now started no other thread: is there something after all?
    if (__atomic_load_n(&paused_, __ATOMIC_SEQ_CST)) return;
    wait = function_();
    uint32_t none = 0;
    if (!wait || !__atomic_compare_exchange_n(&running_, &none, 1, false, __ATOMIC_SEQ_CST,
                                              __ATOMIC_RELAXED))
      return;
  }
}

void Timer::pause() {
  __atomic_fetch_add(&paused_, 1, __ATOMIC_SEQ_CST);
  syscall(SYS_futex, &paused_, FUTEX_WAKE_PRIVATE, INT_MAX, nullptr, nullptr, 0);
  while (running()) sched_yield();
}

void Timer::resume() { __atomic_fetch_sub(&paused_, 1, __ATOMIC_SEQ_CST); }

void Timer::after_fork() {
  __atomic_store_n(&paused_, 0, __ATOMIC_SEQ_CST);
  __atomic_store_n(&running_, 0, __ATOMIC_SEQ_CST);
}

}  // namespace plait::core
