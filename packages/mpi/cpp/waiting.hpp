// How the communication thread waits. MPI has no call that sleeps until something comes and that
// another thread can end, so it is called again and again: without pauses at first, then less
// often.
#pragma once
#include <sched.h>
#include <sys/prctl.h>

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <mutex>

#include <plait/collectives/call.hpp>

namespace plait::mpi {

class Waiting {
 public:
  void something_came() {
    last_ = collectives::now();
    sleep_ = shortest;
  }
  // once in the thread: sleeps of microseconds are as short as requested
  static void prepare_thread() { prctl(PR_SET_TIMERSLACK, 1000UL, 0, 0, 0); }

  void wait(double seconds, bool busy) {
    if (busy && collectives::now() - last_ < yielding) {
      sched_yield();  // other threads may run, such as those of a peer on this processor
      return;
    }
    const double longest = std::min(seconds, busy ? longest_busy : longest_idle);
    sleep_ = std::min(sleep_ * 1.5, longest);
    std::unique_lock<std::mutex> lock(mutex_);
    changed_.wait_for(lock, std::chrono::duration<double>(sleep_), [&] { return woken_; });
    if (woken_) something_came();
    woken_ = false;
  }
  void wake() {
    const std::lock_guard<std::mutex> lock(mutex_);
    woken_ = true;
    changed_.notify_one();
  }

 private:
  static constexpr double yielding = 100e-6;  // seconds since anything came
  static constexpr double shortest = 20e-6, longest_busy = 400e-6, longest_idle = 10e-3;
  std::mutex mutex_;
  std::condition_variable changed_;
  bool woken_ = false;
  double last_ = 0, sleep_ = shortest;
};

}  // namespace plait::mpi
