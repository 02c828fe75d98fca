// What a device does, measured for the profiler.
#pragma once
#include <atomic>

#include "host/launch.h"

namespace plait::cuda {

// Work that the host puts into a stream.
struct QueuedWork {
  DLDevice device;
  driver::Stream stream;
  plait_activity_kind kind;
  const char *name;
  uint64_t launch, nbytes;  // as in plait_activity
  uint64_t queued;          // when it was put there: nanoseconds of CLOCK_MONOTONIC
};

// How the times of a device's work are found. There are two: CUPTI, and pairs of events.
class ActivityClock {
 public:
  virtual ~ActivityClock() = default;
  // Measures a device from now on. PLAIT_DECLINE: this clock is not there.
  virtual plait_status start(plait_thread *thread, DLDevice device) = 0;
  // Waits for the device, ends that, and reports what it did.
  virtual plait_status stop(plait_thread *thread, DLDevice device,
                            void (*each)(void *arg, const plait_activity *), void *arg) = 0;
  // Before and behind the call of the driver that puts work into a stream, on one thread. `end`
  // gets what `begin` returned, unless that was NULL: the work is not measured.
  virtual void *begin(const QueuedWork &work) = 0;
  virtual void end(void *token) = 0;
};
ActivityClock &event_clock();
ActivityClock &cupti_clock();

// The clock that measures, or NULL: no profiler listens.
extern std::atomic<ActivityClock *> activity_clock;

// Nanoseconds of CLOCK_MONOTONIC.
uint64_t monotonic_time();

// Measures the work that is put into a stream while the object lives.
class Activity {
 public:
  Activity(DLDevice device, driver::Stream stream, plait_activity_kind kind, const char *name,
           uint64_t launch, uint64_t nbytes = 0) {
    ActivityClock *clock = activity_clock.load(std::memory_order_acquire);
    if (PLAIT_UNLIKELY(clock != nullptr))
      begin(clock, {device, stream, kind, name, launch, nbytes, 0});
  }
  ~Activity() {
    if (PLAIT_UNLIKELY(token_ != nullptr)) clock_->end(token_);
  }
  Activity(const Activity &) = delete;
  Activity &operator=(const Activity &) = delete;

 private:
  void begin(ActivityClock *clock, QueuedWork work);
  ActivityClock *clock_ = nullptr;
  void *token_ = nullptr;
};

}  // namespace plait::cuda
