// Times of a device's work from a pair of events around each piece of it.
#include <vector>

#include "host/activity.h"
#include "host/device.h"

namespace plait::cuda {
namespace {

using driver::api;

struct EventPair {
  QueuedWork work;
  driver::Event begin, end;
};

// An event of a device that is measured, and when the host saw it.
struct Reference {
  std::atomic<driver::Event> event{nullptr};
  uint64_t time = 0;
};

bool is_captured(driver::Stream stream) {
  int status = driver::kNotCapturing;
  return api.capture_status(stream, &status) != driver::kSuccess || status != driver::kNotCapturing;
}

class EventClock final : public ActivityClock {
 public:
  plait_status start(plait_thread *thread, DLDevice device) override;
  plait_status stop(plait_thread *thread, DLDevice device,
                    void (*each)(void *arg, const plait_activity *), void *arg) override;
  void *begin(const QueuedWork &work) override;
  void end(void *token) override;

 private:
  driver::Event event_behind(DLDevice device, driver::Stream stream);
  std::vector<EventPair> take_pairs(DLDevice device);

  ForkMutex mutex_;
  std::vector<EventPair> pairs_;
  std::vector<driver::Event> spare_[kMaxDevices];
  Reference references_[kMaxDevices];
};

// An event with a time, behind the work of the stream; NULL if there is none.
driver::Event EventClock::event_behind(DLDevice device, driver::Stream stream) {
  driver::Event event = nullptr;
  {
    const std::lock_guard<ForkMutex> hold(mutex_);
    if (auto &spare = spare_[device.device_id]; !spare.empty()) {
      event = spare.back();
      spare.pop_back();
    }
  }
  if (!event && api.event_create(&event, 0) != driver::kSuccess) return nullptr;
  if (api.event_record(event, stream) == driver::kSuccess) return event;
  api.event_destroy(event);
  return nullptr;
}

void *EventClock::begin(const QueuedWork &work) {
  if (!references_[work.device.device_id].event || is_captured(work.stream)) return nullptr;
  const driver::Event event = event_behind(work.device, work.stream);
  if (!event) return nullptr;
  auto *pair = new (std::nothrow) EventPair{work, event, nullptr};
  if (!pair) api.event_destroy(event);
  return pair;
}

void EventClock::end(void *token) {
  auto *pair = static_cast<EventPair *>(token);
  pair->end = event_behind(pair->work.device, pair->work.stream);
  bool is_noted = false;
  if (pair->end) try {
      const std::lock_guard<ForkMutex> hold(mutex_);
      pairs_.push_back(*pair);
      is_noted = true;
    } catch (const std::bad_alloc &) {  // the profiler does not see this one
    }
  if (!is_noted) {
    api.event_destroy(pair->begin);
    if (pair->end) api.event_destroy(pair->end);
  }
  delete pair;
}

plait_status EventClock::start(plait_thread *thread, DLDevice device) {
  driver::Event event;
  PLAIT_CUDA(thread, device, "creating an event", event_create(&event, 0));
  PLAIT_CUDA(thread, device, "waiting for the device", context_synchronize());
  PLAIT_CUDA(thread, device, "recording an event", event_record(event, nullptr));
  PLAIT_CUDA(thread, device, "waiting for an event", event_synchronize(event));
  Reference &reference = references_[device.device_id];
  reference.time = monotonic_time();
  if (const driver::Event before = reference.event.exchange(event)) api.event_destroy(before);
  return PLAIT_OK;
}

// The pairs of a device, which leave the list.
std::vector<EventPair> EventClock::take_pairs(DLDevice device) {
  std::vector<EventPair> result, others;
  const std::lock_guard<ForkMutex> hold(mutex_);
  for (const EventPair &pair : pairs_)
    (pair.work.device.device_id == device.device_id ? result : others).push_back(pair);
  pairs_.swap(others);
  return result;
}

// Work as the profiler gets it. The driver tells times as float32 milliseconds since the
// reference, so they are exact to a microsecond for some ten seconds.
plait_activity describe(const EventPair &pair, driver::Event reference, uint64_t reference_time) {
  float begin = 0, end = 0;
  api.event_elapsed(&begin, reference, pair.begin);
  api.event_elapsed(&end, reference, pair.end);
  plait_activity a{};
  a.size = sizeof a;
  a.kind = pair.work.kind;
  a.launch = pair.work.launch;
  a.begin = reference_time + uint64_t(int64_t(double(begin) * 1e6));
  a.end = reference_time + uint64_t(int64_t(double(end) * 1e6));
  a.queued = pair.work.queued;
  a.stream = uint64_t(reinterpret_cast<uintptr_t>(pair.work.stream));
  a.nbytes = pair.work.nbytes;
  a.name = pair.work.name;
  a.device = pair.work.device;
  return a;
}

plait_status EventClock::stop(plait_thread *thread, DLDevice device,
                              void (*each)(void *arg, const plait_activity *), void *arg) {
  Reference &at = references_[device.device_id];
  const driver::Event reference = at.event.exchange(nullptr);
  if (!reference) return PLAIT_OK;
  const driver::Result result = api.context_synchronize();
  for (const EventPair &pair : take_pairs(device)) {
    if (result == driver::kSuccess) {
      const plait_activity a = describe(pair, reference, at.time);
      each(arg, &a);
    }
    const std::lock_guard<ForkMutex> hold(mutex_);
    spare_[device.device_id].push_back(pair.begin);
    spare_[device.device_id].push_back(pair.end);
  }
  api.event_destroy(reference);
  return settle(thread, device, result, "waiting for the device");
}

}  // namespace

ActivityClock &event_clock() {
  static auto *clock = new EventClock();  // used until the process ends
  return *clock;
}

}  // namespace plait::cuda
