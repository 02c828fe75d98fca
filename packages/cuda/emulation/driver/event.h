// Events of the emulated driver.
#pragma once
#include "emulation/driver/capture.h"

namespace plait::cuda::driver {

// What several processes see of an event, in memory that they share: how often it was recorded, and
// the number of the last record that was reached.
struct SharedEvent {
  std::atomic<uint64_t> recorded, reached;
};

struct EventHandle {
  unsigned flags = 0;
  ContextHandle *home = nullptr;  // whose streams record it, and whose fault is the event's
  SharedEvent *shared = nullptr;  // an event of several processes
  bool opened = false;            // it is another process's
  bool was_shared = false;        // others may have it open
  std::shared_ptr<void> mapping;  // of another process's events
  std::mutex lock;
  PointPtr last;  // NULL: never recorded, or in a capture
  CapturedPoint captured;

  ~EventHandle();
};
EventPtr find_event(Event handle);
Event add_event(EventPtr event);
SharedEvent *take_shared_event();  // NULL: there is no memory
void give_shared_event(SharedEvent *event);

}  // namespace plait::cuda::driver
