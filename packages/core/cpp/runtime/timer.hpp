// A thread that calls a function when it is due, and ends when the function has nothing to wait
// for.
#pragma once
#include <cstdint>

namespace plait::core {

class Timer {
 public:
  // The function returns the nanoseconds until it wants to be called again, or 0: never.
  explicit constexpr Timer(int64_t (*function)()) : function_(function) {}
  bool running() const { return __atomic_load_n(&running_, __ATOMIC_ACQUIRE); }
  // A call in `wait` nanoseconds, by a new thread, unless it exists. Does nothing while paused.
  void start(int64_t wait);
  void pause();   // ends the thread; it has left when this returns. Pauses add up
  void resume();  // threads may be started again
  void after_fork();  // in the child, which has no thread and inherits no pause

 private:
  static void *main(void *timer);
  void run();

  int64_t (*const function_)();
  int64_t wait_ = 0;
  uint32_t running_ = 0, paused_ = 0;
};

}  // namespace plait::core
