#include "host/activity.h"

#include <time.h>

#include "host/device.h"

namespace plait::cuda {

std::atomic<ActivityClock *> activity_clock;

uint64_t monotonic_time() {
  timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return uint64_t(t.tv_sec) * 1'000'000'000 + uint64_t(t.tv_nsec);
}

void Activity::begin(ActivityClock *clock, QueuedWork work) {
  work.queued = monotonic_time();
  clock_ = clock;
  token_ = clock->begin(work);
}

namespace {

ForkMutex &lock() {
  static auto *mutex = new ForkMutex();  // used until the process ends
  return *mutex;
}
uint32_t measured;  // under the lock: a bit for each device

// All devices are measured by the clock of the first one.
plait_status start(void *, plait_thread *thread, DLDevice device) {
  PLAIT_TRY(use(thread, device));
  const std::lock_guard<ForkMutex> hold(lock());
  ActivityClock *clock = activity_clock;
  plait_status status = PLAIT_DECLINE;
  if (clock != &event_clock()) status = cupti_clock().start(thread, device);
  if (status == PLAIT_OK) {
    clock = &cupti_clock();
  } else if (status == PLAIT_DECLINE && clock != &cupti_clock()) {
    clock = &event_clock();
    status = clock->start(thread, device);
  }
  if (status != PLAIT_OK) return status;
  measured |= 1u << device.device_id;
  activity_clock = clock;
  return PLAIT_OK;
}

plait_status stop(void *, plait_thread *thread, DLDevice device,
                  void (*each)(void *arg, const plait_activity *), void *arg) try {
  PLAIT_TRY(use(thread, device));
  const std::lock_guard<ForkMutex> hold(lock());
  ActivityClock *clock = activity_clock;
  if (!(measured >> device.device_id & 1)) return PLAIT_OK;
  measured &= ~(1u << device.device_id);
  if (!measured) activity_clock = nullptr;
  return clock->stop(thread, device, each, arg);
} catch (const std::bad_alloc &) {
  return runtime->raise(thread, PLAIT_MEMORY_ERROR, "cuda", "out of memory for records");
}

}  // namespace

void add_activity(plait_device &t) {
  t.activity_start = start;
  t.activity_stop = stop;
}

}  // namespace plait::cuda
