// When calls ran on accelerators, by the devices' own clocks: records of the device where it keeps
// them (plait_device::activity_start), else a timed event before and behind each call.
#ifndef PLAIT_PROFILER_DEVICE_TIMES_HPP
#define PLAIT_PROFILER_DEVICE_TIMES_HPP
#include <plait/abi.h>

#include <vector>

#include "row.hpp"

namespace plait::profiler {

// Whether the device keeps records of its work, which this call begins, if none of them has yet.
bool watches(const plait_runtime *, DLDevice);
// Begins the records of all devices that were used before: a graph may run there without a call.
void watch_used(const plait_runtime *);
// Keeps the row of a call, by plait_call::launch, for the records that belong to it.
void add_watched(const Row &, DLDevice, uint64_t launch);
// A new event behind the work that is in the call's stream; nullptr if the device has no clock.
plait_device_event *mark_stream(const plait_runtime *, const plait_call *);
// A number for a stream: 0 for the default one, 1 for the first other one that is seen.
uint64_t stream_number(const plait_stream *);
// Keeps both events (it takes them over) and the row that is filled in later.
void add_launch(const plait_runtime *, const Row &, plait_device_event *before,
                plait_device_event *after);
// Work on a device, and when the host began the call that launched it.
struct Work {
  uint64_t launched;
  Row row;
};
// Of a DEVICE row: the number of the stream, and how long the work was in the queue.
inline uint64_t stream_and_queue(uint64_t stream, uint64_t nanoseconds) {
  return (stream & 0xffff) | nanoseconds << 16;
}
// Waits for the devices and appends the rows of all launches. The times of events are matched with
// the host's by one event behind a synchronisation. An error that the wait finds is the program's.
plait_status collect_launches(const plait_runtime *, std::vector<Work> &);
void forget_launches();  // in the child of a fork, where devices must not be called

}  // namespace plait::profiler
#endif  // PLAIT_PROFILER_DEVICE_TIMES_HPP
