// What a device does, measured for the profiler: a pair of events around each piece of work.
#pragma once
#include <atomic>

#include "host/launch.h"

namespace plait::cuda {

// Whether a profiler listens.
extern std::atomic<bool> is_measured;

struct ActivityRecord;

// Measures the work that is put into a stream while the object lives.
class Activity {
 public:
  Activity(DLDevice device, driver::Stream stream, plait_activity_kind kind, const char *name,
           uint64_t launch, uint64_t nbytes = 0) {
    if (PLAIT_UNLIKELY(is_measured.load(std::memory_order_relaxed)))
      begin(device, stream, kind, name, launch, nbytes);
  }
  ~Activity() {
    if (PLAIT_UNLIKELY(record_ != nullptr)) end();
  }
  Activity(const Activity &) = delete;
  Activity &operator=(const Activity &) = delete;

 private:
  void begin(DLDevice, driver::Stream, plait_activity_kind, const char *name, uint64_t launch,
             uint64_t nbytes);
  void end();
  ActivityRecord *record_ = nullptr;
};

}  // namespace plait::cuda
