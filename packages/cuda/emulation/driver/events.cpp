// Events: places in streams, which others wait for.
#include <chrono>

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

PointPtr last_of(EventHandle &event) {
  const std::lock_guard<std::mutex> hold(event.lock);
  return event.last;
}
int fault_of(EventHandle &event) {
  const ContextHandle *context = event.context.load();
  return context ? context->fault.load() : kSuccess;
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

EventPtr find_event(Event handle) { return handles().find(handle); }
Event add_event(EventPtr event) { return handles().add(std::move(event)); }

Result event_create(Event *out, unsigned flags) {
  ContextHandle *context;
  if (const Result r = entered(&context)) return r;
  if (!out || flags > 7) return kInvalidValue;
  if ((flags & kEventInterprocess) && !(flags & kEventNoTiming)) return kInvalidValue;
  auto event = std::make_shared<EventHandle>();
  event->flags = flags;
  *out = add_event(std::move(event));
  return kSuccess;
}

Result event_destroy(Event handle) {
  if (const Result r = entered()) return r;
  return handles().remove(handle) ? kSuccess : kInvalidHandle;
}

Result event_record(Event handle, Stream to) {
  StreamPtr stream;
  if (const Result r = entered(to, &stream)) return r;
  const EventPtr event = find_event(handle);
  if (!event) return kInvalidHandle;
  auto point = std::make_shared<Point>();
  {
    const std::lock_guard<std::mutex> hold(event->lock);
    event->last = point;
  }
  event->context = stream->context;
  enqueue(stream, [point] { reach(point); });
  return kSuccess;
}

Result event_query(Event handle) {
  if (const Result r = entered()) return r;
  const EventPtr event = find_event(handle);
  if (!event) return kInvalidHandle;
  if (const int fault = fault_of(*event)) return Result(fault);
  return is_reached(last_of(*event)) ? kSuccess : kNotReady;
}

Result event_synchronize(Event handle) {
  if (const Result r = entered()) return r;
  const EventPtr event = find_event(handle);
  if (!event) return kInvalidHandle;
  count(kWaits);
  await(last_of(*event));
  return Result(fault_of(*event));
}

Result event_elapsed(float *milliseconds, Event from, Event to) {
  if (const Result r = entered()) return r;
  const EventPtr a = find_event(from), b = find_event(to);
  if (!milliseconds) return kInvalidValue;
  if (!a || !b || ((a->flags | b->flags) & kEventNoTiming)) return kInvalidHandle;
  const PointPtr first = last_of(*a), second = last_of(*b);
  if (!first || !second) return kInvalidHandle;
  if (!is_reached(first) || !is_reached(second)) return kNotReady;
  *milliseconds = float(second->milliseconds - first->milliseconds);
  return kSuccess;
}

Result stream_wait(Stream handle, Event of, unsigned flags) {
  StreamPtr stream;
  if (const Result r = entered(handle, &stream)) return r;
  const EventPtr event = find_event(of);
  if (!event) return kInvalidHandle;
  if (flags) return kInvalidValue;
  const PointPtr point = last_of(*event);
  if (!is_reached(point)) enqueue(stream, [point] { await(point); });
  return kSuccess;
}

}  // namespace plait::cuda::driver
