// Events of the emulated driver.
#pragma once
#include "emulation/driver/state.h"

namespace plait::cuda::driver {

struct EventHandle {
  unsigned flags = 0;
  std::atomic<ContextHandle *> context{nullptr};  // where it was recorded last
  std::mutex lock;
  PointPtr last;  // NULL: never recorded
};
EventPtr find_event(Event handle);
Event add_event(EventPtr event);

}  // namespace plait::cuda::driver
