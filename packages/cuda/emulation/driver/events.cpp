// Events: places in streams, which others wait for.
#include <chrono>
#include <ctime>

#include "emulation/driver/event.h"

namespace plait::cuda::driver {
namespace {

struct Points {
  std::mutex lock;
  std::condition_variable changed;
};
Points &points() {
  static auto *one = new Points();
  return *one;
}
double now() {
  return std::chrono::duration<double, std::milli>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}
Handles<EventHandle> &handles() {
  static auto *all = new Handles<EventHandle>();
  return *all;
}

int fault_of(const EventHandle &event) { return event.home->fault.load(); }

// What an event stands for at the moment of a call.
struct Snapshot {
  PointPtr point;
  CapturedPoint captured;
  SharedEvent *shared;
  uint64_t number;  // of the record of a shared event; 0: never recorded

  bool is_recorded() const { return point || number; }
  bool is_reached() const { return shared ? shared->reached >= number : driver::is_reached(point); }
  void await() const {
    if (!shared) return driver::await(point);
    while (shared->reached < number && !is_ending()) {
      const timespec pause = {0, 50000};
      nanosleep(&pause, nullptr);
    }
  }
};
Snapshot snapshot(EventHandle &event) {
  const std::lock_guard<std::mutex> hold(event.lock);
  const uint64_t number = event.shared ? event.shared->recorded.load() : 0;
  return {event.last, event.captured, event.shared, number};
}

// What a call that asks or waits for an event begins with.
Result look_at(Event handle, EventPtr *event, Snapshot *out) {
  if (const Result r = entered()) return r;
  if (!(*event = find_event(handle))) return kInvalidHandle;
  if (const int fault = fault_of(**event)) return Result(fault);
  if (const Result r = check_capture()) return r;
  *out = snapshot(**event);
  return out->captured.capture ? kCapturedEvent : kSuccess;
}

}  // namespace

void reach(const PointPtr &point) {
  Points &all = points();
  const std::lock_guard<std::mutex> hold(all.lock);
  point->milliseconds = now();
  point->reached = true;
  all.changed.notify_all();
}
bool is_reached(const PointPtr &point) {
  const std::lock_guard<std::mutex> hold(points().lock);
  return !point || point->reached;
}
void await(const PointPtr &point) {
  Points &all = points();
  std::unique_lock<std::mutex> hold(all.lock);
  while (point && !point->reached && !is_ending())
    all.changed.wait_for(hold, std::chrono::milliseconds(100));
}

// What others have open is not given to another event.
EventHandle::~EventHandle() {
  if (shared && !opened && !was_shared) give_shared_event(shared);
}
EventPtr find_event(Event handle) { return handles().find(handle); }
Event add_event(EventPtr event) { return handles().add(std::move(event)); }

Result event_create(Event *out, unsigned flags) {
  ContextHandle *context;
  if (const Result r = entered(&context)) return r;
  if (!out || flags > 7) return kInvalidValue;
  if ((flags & kEventInterprocess) && !(flags & kEventNoTiming)) return kInvalidValue;
  auto event = std::make_shared<EventHandle>();
  event->flags = flags;
  event->home = context;
  if (flags & kEventInterprocess && !(event->shared = take_shared_event())) return kOutOfMemory;
  *out = add_event(std::move(event));
  return kSuccess;
}

Result event_destroy(Event handle) {
  if (const Result r = entered()) return r;
  return handles().remove(handle) ? kSuccess : kInvalidHandle;
}

namespace {
Result put(const StreamPtr &stream, Task finish) {
  if (const Result r = check_default_stream(stream)) return r;
  enqueue(stream, nullptr, std::move(finish));
  return kSuccess;
}
}  // namespace

Result event_record(Event handle, Stream to) {
  StreamPtr stream;
  if (const Result r = entered(to, &stream)) return r;
  const EventPtr event = find_event(handle);
  if (!event || event->home != stream->context) return kInvalidHandle;
  CapturedPoint captured;
  if (captured_point(stream, &captured)) {
    if (captured.capture->broken) return kCaptureInvalidated;
    const std::lock_guard<std::mutex> hold(event->lock);
    event->last = nullptr;
    event->captured = captured;
    return kSuccess;
  }
  if (SharedEvent *shared = event->shared) {
    const uint64_t number = ++shared->recorded;
    return put(stream, [event, shared, number] {
      uint64_t before = shared->reached;
      while (before < number && !shared->reached.compare_exchange_weak(before, number)) continue;
    });
  }
  auto point = std::make_shared<Point>();
  {
    const std::lock_guard<std::mutex> hold(event->lock);
    event->last = point;
    event->captured = {};
  }
  return put(stream, [point] { reach(point); });
}

Result event_query(Event handle) {
  EventPtr event;
  Snapshot last;
  if (const Result r = look_at(handle, &event, &last)) return r;
  return last.is_reached() ? kSuccess : kNotReady;
}

Result event_synchronize(Event handle) {
  EventPtr event;
  Snapshot last;
  if (const Result r = look_at(handle, &event, &last)) return r;
  count(kWaits);
  last.await();
  return Result(fault_of(*event));
}

Result event_elapsed(float *milliseconds, Event from, Event to) {
  if (const Result r = entered()) return r;
  const EventPtr a = find_event(from), b = find_event(to);
  if (!milliseconds) return kInvalidValue;
  if (!a || !b || a->home != b->home || ((a->flags | b->flags) & kEventNoTiming))
    return kInvalidHandle;
  const Snapshot first = snapshot(*a), second = snapshot(*b);
  if (first.captured.capture || second.captured.capture) return kCapturedEvent;
  if (!first.point || !second.point) return kInvalidHandle;
  if (!first.is_reached() || !second.is_reached()) return kNotReady;
  *milliseconds = float(second.point->milliseconds - first.point->milliseconds);
  return kSuccess;
}

Result stream_wait(Stream handle, Event of, unsigned flags) {
  StreamPtr stream;
  if (const Result r = entered(handle, &stream)) return r;
  const EventPtr event = find_event(of);
  if (!event) return kInvalidHandle;
  if (flags) return kInvalidValue;
  const Snapshot last = snapshot(*event);
  bool is_plain;
  const Result r = wait_in_capture(stream, last.captured, last.is_recorded(), &is_plain);
  if (r || !is_plain || last.is_reached()) return r;
  return submit(stream, [event, last] { last.await(); });
}

}  // namespace plait::cuda::driver
