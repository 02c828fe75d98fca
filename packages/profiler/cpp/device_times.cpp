#include "device_times.hpp"

#include <plait/fork.hpp>
#include <plait/plait.hpp>

#include <deque>
#include <map>
#include <mutex>

#include "clock.hpp"

namespace plait::profiler {
namespace {

struct Launched {
  Row row;
  plait_device_event *before, *after;
};

// Of one device. Rows whose events were reached have times in milliseconds after `first`.
struct Device {
  DLDevice device;
  plait_device_event *first = nullptr;
  std::deque<Launched> waiting;
  struct Timed {
    Row row;
    double begin, length;
  };
  std::vector<Timed> timed;
};

ForkMutex mutex;
auto &devices = *new std::map<uint16_t, Device>;
auto &streams = *new std::map<const plait_stream *, uint64_t>;
constexpr size_t most_waiting = 1024;

// Saves the thread's error while a device is called. What goes wrong with a
// profile's own events is nothing to the program.
class KeptError {
 public:
  explicit KeptError(plait_thread *thread) : thread_(thread), error_(thread->error) {
    if (error_) plait_retain(error_);
  }
  ~KeptError() {
    if (thread_->error) plait_release(thread_->error);
    thread_->error = error_;
  }

 private:
  plait_thread *thread_;
  plait_error *error_;
};

const plait_device *table_of(const plait_runtime *runtime, DLDevice d) {
  return role<plait_device>(runtime, d.device_type);
}

// Sets the times of the events at the front of the queue that were reached, or of all events. The
// device itself is called: the runtime would report errors of the program's own work here.
void settle(const plait_runtime *runtime, Device &d, bool all) {
  const plait_device *table = table_of(runtime, d.device);
  plait_thread *thread = runtime->thread();
  while (!d.waiting.empty()) {
    Launched &l = d.waiting.front();
    int32_t done = 0;
    if (table && !all && (table->event_query(table->ctx, thread, l.after, &done) < 0 || !done))
      return;
    double begin = 0, length = 0;
    if (table && table->event_elapsed(table->ctx, thread, d.first, l.before, &begin) == PLAIT_OK &&
        table->event_elapsed(table->ctx, thread, l.before, l.after, &length) == PLAIT_OK)
      d.timed.push_back({l.row, begin, length});
    plait_release(l.before);
    plait_release(l.after);
    d.waiting.pop_front();
  }
}

// The host's time, in nanoseconds, at which the first event was reached; 0 if it is unknown.
double time_of_first(const plait_runtime *runtime, const Device &d) {
  const plait_device *table = table_of(runtime, d.device);
  plait_thread *thread = runtime->thread();
  plait_device_event *last = nullptr;
  double length = 0;
  if (!table || runtime->event_new(thread, d.device, PLAIT_EVENT_TIMED, &last) < 0 || !last)
    return 0;
  const bool matched = runtime->event_record(thread, last, nullptr) == PLAIT_OK &&
                       table->event_wait(table->ctx, thread, last) == PLAIT_OK;
  const auto end = double(now());
  const bool timed =
      matched && table->event_elapsed(table->ctx, thread, d.first, last, &length) == PLAIT_OK;
  plait_release(last);
  return timed ? end - length * 1e6 : 0;
}

}  // namespace

plait_device_event *mark_stream(const plait_runtime *runtime, const plait_call *c) {
  const plait_device *table = table_of(runtime, c->device);
  if (!table || !table->event_new || !table->event_elapsed) return nullptr;
  const KeptError error(c->thread);
  plait_device_event *event = nullptr;
  if (runtime->event_new(c->thread, c->device, PLAIT_EVENT_TIMED, &event) < 0 || !event)
    return nullptr;
  if (runtime->event_record(c->thread, event, c->stream) == PLAIT_OK) return event;
  plait_release(event);
  return nullptr;
}

uint64_t stream_number(const plait_stream *stream) {
  if (!stream) return 0;
  const std::lock_guard<ForkMutex> lock(mutex);
  return streams.try_emplace(stream, streams.size() + 1).first->second;
}

void add_launch(const plait_runtime *runtime, const Row &row, plait_device_event *before,
                plait_device_event *after) {
  const std::lock_guard<ForkMutex> lock(mutex);
  Device &d = devices[row.device];
  d.device = before->device;
  if (!d.first) {
    d.first = before;
    plait_retain(before);
  }
  d.waiting.push_back({row, before, after});
  if (d.waiting.size() <= most_waiting) return;
  const KeptError error(runtime->thread());
  settle(runtime, d, false);
}

plait_status collect_launches(const plait_runtime *runtime, std::vector<Work> &works) {
  std::map<uint16_t, Device> all;
  {
    const std::lock_guard<ForkMutex> lock(mutex);
    all.swap(devices);
  }
  plait_thread *thread = runtime->thread();
  plait_status status = PLAIT_OK;
  for (auto &[number, d] : all) {
    if (status == PLAIT_OK) status = runtime->synchronize(thread, d.device);
    const KeptError error(thread);
    settle(runtime, d, true);
    const double first = time_of_first(runtime, d);
    for (Device::Timed &t : d.timed) {
      const uint64_t launched = t.row.start;
      t.row.start = uint64_t(first + t.begin * 1e6);
      t.row.duration = uint64_t(t.length * 1e6);
      if (first > 0) works.push_back({launched, t.row});
    }
    plait_release(d.first);
  }
  return status;
}

void forget_launches() {
  const std::lock_guard<ForkMutex> lock(mutex);
  devices.clear();
}

}  // namespace plait::profiler
