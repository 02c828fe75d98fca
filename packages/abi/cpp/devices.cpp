// Devices: what the runtime knows of each device type, its streams and events.
#include "devices.hpp"

#include <algorithm>
#include <cstdlib>

namespace plait::abi {
namespace {

// A storage of the host that a device copies from or to.
struct InFlight {
  plait_device_event *event;
  plait_storage *storage;
};

constexpr uint32_t kEnded = ~uint32_t(0);  // no process uses it any more

struct State {
  std::atomic<uint32_t> process;  // the `forks.number` of the process that uses it, 0 or kEnded
  std::atomic<uint32_t> starting;  // that of the process whose driver was started or is starting
  ProcessLock start_lock;  // held while the driver starts
  std::atomic<int64_t> live;      // storages, streams and events
  ProcessLock lock;  // of the lists
  std::vector<InFlight> in_flight;
  std::vector<plait_stream *> streams;  // all that live, but the default ones
};
// never destroyed: threads of devices may work while the process ends
State *const states = new State[PLAIT_MAX_DEVICE_TYPES]();

// Objects.

struct StreamBlock : plait_stream {
  const plait_device *table;  // that frees it, or nullptr: it was wrapped
};
struct EventBlock : plait_device_event {
  const plait_device *table;  // nullptr: the device has no events, all are reached
  uint64_t launch;            // the last one before it was recorded
  const plait_stream *stream;  // where it was recorded, to compare with: it may be freed
  bool recorded;
};

plait_status enlist(plait_thread *thread, plait_stream *s) {
  return border(thread, nullptr, [&]() -> plait_status {
    State &state = states[s->device.device_type];
    const std::lock_guard<ProcessLock> lock(state.lock);
    state.streams.push_back(s);
    return PLAIT_OK;
  });
}
void delist(const plait_stream *s) {
  forget_stream(s);
  State &state = states[s->device.device_type];
  const std::lock_guard<ProcessLock> lock(state.lock);
  const auto at = std::find(state.streams.begin(), state.streams.end(), s);
  if (at != state.streams.end()) state.streams.erase(at);
}

void drop_stream(plait_object *o) {
  auto *s = reinterpret_cast<StreamBlock *>(o);
  unlocked([s]() -> plait_status {  // a device may wait for its work
    delist(s);
    if (s->table && !is_gone(s->device)) s->table->stream_free(s->table->ctx, s);
    return PLAIT_OK;
  });
  count_live(s->device, -1);
  std::free(s);
}
void drop_event(plait_object *o) {
  auto *e = reinterpret_cast<EventBlock *>(o);
  if (e->table && !is_gone(e->device)) e->table->event_free(e->table->ctx, e);
  count_live(e->device, -1);
  std::free(e);
}
const plait_type stream_type{PLAIT_HEADER(plait_type), "stream", drop_stream};
const plait_type event_type{PLAIT_HEADER(plait_type), "device event", drop_event};

template <class Block>
Block *new_block(plait_thread *thread, DLDevice device, const plait_type *type,
                 const char *subject) {
  auto *b = static_cast<Block *>(std::calloc(1, sizeof(Block)));
  if (!b)
    return raise(thread, PLAIT_MEMORY_ERROR, nullptr, "out of memory for %s", subject), nullptr;
  b->o = {1, type};
  b->device = device;
  count_live(device, 1);
  return b;
}

// The table of a device, if it may be used; else an error.
plait_status usable(plait_thread *thread, DLDevice d, const plait_device **table) {
  *table = device_table(d);
  return *table ? begin_use(thread, d) : no_device(thread, d);
}

}  // namespace

plait_status complete_error(plait_thread *thread, DLDevice d, const char *subject, plait_status s,
                            const plait_error *before) {
  if (s == PLAIT_OK) return s;
  if (is_code(s) && thread->error != before) return s;
  return raise(thread, is_own_code(s) ? s : PLAIT_ERROR, nullptr,
               "%s: `%s` failed with status %d and gave no text", device_text(d).c_str(), subject,
               s);
}

bool is_gone(DLDevice d) {
  const uint32_t process = states[d.device_type].process.load(std::memory_order_acquire);
  return process && process != forks.number.load(std::memory_order_relaxed);
}

void start_use(int32_t device_type) {
  uint32_t none = 0;
  states[device_type].process.compare_exchange_strong(none, forks.number.load());
}
void end_use(int32_t device_type) { states[device_type].process = kEnded; }

plait_status gone(plait_thread *thread, DLDevice d) {
  if (states[d.device_type].process == kEnded)
    return raise(thread, PLAIT_ERROR, nullptr,
                 "the process ends, and %s was stopped; copy what is required later before the end",
                 device_text(d).c_str());
  return raise(thread, PLAIT_ERROR, nullptr,
               "%s was in use when the process forked, and cannot be used in the child; start the "
               "process with the method \"spawn\" or \"forkserver\"",
               device_text(d).c_str());
}

plait_status no_device(plait_thread *thread, DLDevice d) {
  return raise(thread, PLAIT_NOT_IMPLEMENTED, nullptr,
               "no component for the device %s is installed; "
               "without it, only the device cpu can be used",
               device_text(d).c_str());
}

void count_live(DLDevice d, int64_t change) {
  if (is_accelerator(d)) states[d.device_type].live.fetch_add(change, std::memory_order_relaxed);
}
int64_t live_on(int32_t device_type) { return states[device_type].live; }

// Starts the driver of a device type at its first use; threads that come meanwhile wait. A child
// that was forked meanwhile has half a driver, which counts as one that was in use.
static plait_status start_driver(plait_thread *thread, DLDevice d, const plait_device *table) {
  State &state = states[d.device_type];
  return call_device(thread, d, "start", [&] {
    return unlocked([&]() -> plait_status {
      const std::lock_guard<ProcessLock> lock(state.start_lock);
      const uint32_t own = forks.number, begun = state.starting;
      if (is_gone(d) || (begun && begun != own)) return gone(thread, d);
      if (state.process) return PLAIT_OK;
      state.starting = own;
      const plait_status s = table->start(table->ctx, thread);
      if (s < 0) return state.starting = 0, s;
      start_use(d.device_type);
      return is_gone(d) ? gone(thread, d) : PLAIT_OK;
    });
  });
}

plait_status begin_use(plait_thread *thread, DLDevice d) {
  if (is_gone(d)) return gone(thread, d);
  const plait_device *table = device_table(d);
  const int32_t n = table ? table->count(table->ctx) : d.device_id + 1;
  if (table && !n && PLAIT_HAS(plait_device, table, start)) {  // it knows why there is none
    const auto start = [&] { return table->start(table->ctx, thread); };
    if (const plait_status s = call_device(thread, d, "start", start); s < 0) return s;
  }
  if (d.device_id < 0 || d.device_id >= n)
    return raise(thread, PLAIT_VALUE_ERROR, nullptr, "there is no device %s: %s has %d",
                 device_text(d).c_str(), table ? table->name : "its type", n);
  if (states[d.device_type].process.load(std::memory_order_acquire)) return PLAIT_OK;
  if (table && PLAIT_HAS(plait_device, table, start)) return start_driver(thread, d, table);
  start_use(d.device_type);
  return PLAIT_OK;
}

plait_status use_device(plait_thread *thread, DLDevice d) {
  const plait_device *table = nullptr;
  return is_accelerator(d) ? usable(thread, d, &table) : plait_status(PLAIT_OK);
}

plait_status enter_device(plait_call *c) {
  if (const plait_status s = begin_use(c->thread, c->device); s < 0) return named(c, s);
  c->stream = current_stream(c->thread, c->device);
  return late_error(c->thread, c->device, Waits::no);
}

// The streams of a thread.

plait_stream *current_stream(plait_thread *thread, DLDevice d) {
  for (const CurrentStream &each : static_cast<Thread *>(thread)->streams)
    if (same(each.device, d)) return each.stream;
  return nullptr;
}

plait_status set_stream(plait_thread *thread, DLDevice d, plait_stream *stream,
                        plait_stream **previous) {
  return border(thread, "set_stream", [&]() -> plait_status {
    if (previous) *previous = nullptr;
    if (!is_accelerator(d)) return PLAIT_OK;
    if (stream && !same(stream->device, d))
      return raise(thread, PLAIT_VALUE_ERROR, "set_stream", "a stream of %s cannot serve %s",
                   device_text(stream->device).c_str(), device_text(d).c_str());
    auto &list = static_cast<Thread *>(thread)->streams;
    auto at = std::find_if(list.begin(), list.end(),
                           [d](const CurrentStream &s) { return same(s.device, d); });
    if (at == list.end()) at = list.insert(at, {d, nullptr});
    if (stream) plait_retain(stream);
    plait_stream *before = at->stream;
    at->stream = stream;
    if (previous)
      *previous = before;
    else
      plait_release(before);
    return PLAIT_OK;
  });
}

void release_streams(Thread *t) {
  for (const CurrentStream &each : t->streams) plait_release(each.stream);
  t->streams.clear();
}

plait_status device_count(plait_thread *thread, DLDeviceType type, int32_t *n) {
  *n = type == kDLCPU ? 1 : 0;
  if (uint32_t(type) >= PLAIT_MAX_DEVICE_TYPES)
    return raise(thread, PLAIT_VALUE_ERROR, "device_count", "there is no device type %d",
                 int(type));
  if (const plait_device *table = device_table({type, 0})) *n = table->count(table->ctx);
  return PLAIT_OK;
}

static plait_status check_priority(plait_thread *thread, const plait_device *table, DLDevice d,
                                   int32_t priority) {
  if (!priority || !PLAIT_HAS(plait_device, table, priorities)) return PLAIT_OK;
  int32_t lowest = 0, highest = 0;
  const plait_status s = call_device(thread, d, "priorities", [&] {
    return table->priorities(table->ctx, thread, d, &lowest, &highest);
  });
  if (s < 0 || (highest <= priority && priority <= lowest)) return s;
  return raise(thread, PLAIT_VALUE_ERROR, "Stream",
               "`priority` must be from %d (served first) to %d on %s, got %d", highest, lowest,
               device_text(d).c_str(), priority);
}

plait_status stream_new(plait_thread *thread, DLDevice d, int32_t priority, plait_stream **out) {
  *out = nullptr;
  const plait_device *table = nullptr;
  if (!is_accelerator(d)) return PLAIT_OK;
  if (const plait_status s = usable(thread, d, &table); s < 0) return s;
  if (!table->stream_new) return PLAIT_OK;
  if (const plait_status s = check_priority(thread, table, d, priority); s < 0) return s;
  auto *b = new_block<StreamBlock>(thread, d, &stream_type, "a stream");
  if (!b) return PLAIT_MEMORY_ERROR;
  b->priority = priority;
  const plait_status s = call_device(thread, d, "stream_new",
                                     [&] { return table->stream_new(table->ctx, thread, b); });
  if (s < 0) return plait_release(b), s;
  b->table = table;
  if (const plait_status listed = enlist(thread, b); listed < 0) return plait_release(b), listed;
  *out = b;
  return PLAIT_OK;
}

plait_status stream_wrap(plait_thread *thread, DLDevice d, void *native, plait_stream **out) {
  *out = nullptr;
  const plait_device *table = nullptr;
  if (!is_accelerator(d)) return PLAIT_OK;
  if (const plait_status s = usable(thread, d, &table); s < 0) return s;
  auto *b = new_block<StreamBlock>(thread, d, &stream_type, "a stream");
  if (!b) return PLAIT_MEMORY_ERROR;
  b->native = native;
  if (const plait_status s = enlist(thread, b); s < 0) return plait_release(b), s;
  *out = b;
  return PLAIT_OK;
}

plait_status stream_query(plait_thread *thread, DLDevice d, plait_stream *stream, int32_t *done) {
  *done = 1;
  const plait_device *table = nullptr;
  if (!is_accelerator(d)) return PLAIT_OK;
  if (const plait_status s = usable(thread, d, &table); s < 0) return s;
  if (!table->stream_new) return late_error(thread, d, Waits::stream, stream);
  const plait_status s = call_device(thread, d, "stream_query", [&] {
    return table->stream_query(table->ctx, thread, d, stream, done);
  });
  return s < 0 ? s : late_error(thread, d, *done ? Waits::stream : Waits::no, stream);
}

plait_status stream_synchronize(plait_thread *thread, DLDevice d, plait_stream *stream) {
  const plait_device *table = nullptr;
  if (!is_accelerator(d)) return PLAIT_OK;
  if (const plait_status s = usable(thread, d, &table); s < 0) return s;
  const plait_status s = call_device(thread, d, "stream_synchronize", [&] {
    return unlocked([&] {
      const plait_status done = until_done(thread, table, d, stream);
      return done < 0 ? done : table->stream_synchronize(table->ctx, thread, d, stream);
    });
  });
  let_go(thread, d);
  return s < 0 ? s : late_error(thread, d, Waits::stream, stream);
}

// Waits for the work that is in all known streams of a device now.
static plait_status until_all_done(plait_thread *thread, const plait_device *table, DLDevice d) {
  State &state = states[d.device_type];
  std::vector<plait_device_event *> events;
  plait_status s = border(thread, nullptr, [&]() -> plait_status {
    const std::lock_guard<ProcessLock> lock(state.lock);  // none of them goes meanwhile
    events.assign(state.streams.size() + 1, nullptr);
    plait_status result = event_behind(thread, table, d, nullptr, &events.back());
    for (size_t i = 0; result >= 0 && i < state.streams.size(); i++)
      if (same(state.streams[i]->device, d))
        result = event_behind(thread, table, d, state.streams[i], &events[i]);
    return result;
  });
  if (s < 0) s = (clear(thread), PLAIT_OK);  // the device's own wait reports the error
  for (plait_device_event *each : events) {
    if (s >= 0 && each) s = until_reached(thread, table, each);
    plait_release(each);
  }
  return s;
}

plait_status synchronize(plait_thread *thread, DLDevice d) {
  const plait_device *table = nullptr;
  if (!is_accelerator(d)) return PLAIT_OK;
  if (const plait_status s = usable(thread, d, &table); s < 0) return s;
  const uint64_t last = last_launch(d);
  const plait_status s = call_device(thread, d, "synchronize", [&] {
    return unlocked([&] {
      const plait_status done = until_all_done(thread, table, d);
      return done < 0 ? done : table->synchronize(table->ctx, thread, d);
    });
  });
  let_go(thread, d);
  if (s < 0) return s;
  const plait_status late = late_error(thread, d, Waits::device);
  if (late >= 0 && table->count(table->ctx) == 1) reach(d, last);
  return late;
}

// Events.

static plait_status check_shared(plait_thread *thread, const plait_device *table, DLDevice d,
                                 uint64_t flags) {
  if (!(flags & PLAIT_EVENT_SHARED)) return PLAIT_OK;
  if (flags & PLAIT_EVENT_TIMED)
    return raise(thread, PLAIT_VALUE_ERROR, "Event",
                 "an event for other processes cannot be timed; give one of the two");
  if (table->event_new && PLAIT_HAS(plait_device, table, event_share)) return PLAIT_OK;
  return raise(thread, PLAIT_NOT_IMPLEMENTED, "Event", "%s has no events for other processes",
               device_text(d).c_str());
}

plait_status event_new(plait_thread *thread, DLDevice d, uint64_t flags, plait_device_event **out) {
  *out = nullptr;
  const plait_device *table = nullptr;
  if (!is_accelerator(d)) return PLAIT_OK;
  if (const plait_status s = usable(thread, d, &table); s < 0) return s;
  if (const plait_status s = check_shared(thread, table, d, flags); s < 0) return s;
  auto *b = new_block<EventBlock>(thread, d, &event_type, "an event");
  if (!b) return PLAIT_MEMORY_ERROR;
  b->flags = flags;
  const plait_status s = table->event_new
                             ? call_device(thread, d, "event_new",
                                           [&] { return table->event_new(table->ctx, thread, b); })
                             : PLAIT_OK;
  if (s < 0) return plait_release(b), s;
  if (table->event_new) b->table = table;
  *out = b;
  return PLAIT_OK;
}

plait_status event_share(plait_thread *thread, plait_device_event *event,
                         plait_shared_memory *description) {
  auto *b = static_cast<EventBlock *>(event);
  if (!b || !b->table || !(b->flags & PLAIT_EVENT_SHARED))
    return raise(thread, PLAIT_VALUE_ERROR, "event_share",
                 "an event that was made for other processes is required");
  if (is_gone(b->device)) return gone(thread, b->device);
  return call_device(thread, b->device, "event_share",
                     [&] { return b->table->event_share(b->table->ctx, thread, b, description); });
}

plait_status event_open(plait_thread *thread, DLDevice d, const plait_shared_memory *description,
                        plait_device_event **out) {
  *out = nullptr;
  const plait_device *table = nullptr;
  if (const plait_status s = usable(thread, d, &table); s < 0) return s;
  if (const plait_status s = check_shared(thread, table, d, PLAIT_EVENT_SHARED); s < 0) return s;
  auto *b = new_block<EventBlock>(thread, d, &event_type, "an event");
  if (!b) return PLAIT_MEMORY_ERROR;
  b->flags = PLAIT_EVENT_SHARED;
  const plait_status s = call_device(thread, d, "event_open", [&] {
    return table->event_open(table->ctx, thread, description, b);
  });
  if (s < 0) return plait_release(b), s;
  b->table = table;
  b->recorded = true;  // by the other process
  *out = b;
  return PLAIT_OK;
}

plait_status event_record(plait_thread *thread, plait_device_event *event, plait_stream *stream) {
  if (!event) return PLAIT_OK;
  auto *b = static_cast<EventBlock *>(event);
  if (is_gone(b->device)) return gone(thread, b->device);
  b->launch = last_launch(b->device);
  b->stream = stream;
  b->recorded = true;
  if (!b->table) return PLAIT_OK;
  return call_device(thread, b->device, "event_record",
                     [&] { return b->table->event_record(b->table->ctx, thread, b, stream); });
}

// Behind an event: the error that is known by now, or all calls before it are done.
static plait_status passed(plait_thread *thread, const plait_device_event *event) {
  const auto *b = static_cast<const EventBlock *>(event);
  const plait_status late = late_error(thread, b->device, Waits::stream, b->stream);
  if (late >= 0) reach(b->device, b->launch);
  return late;
}

plait_status event_query(plait_thread *thread, plait_device_event *event, int32_t *done) {
  *done = 1;
  auto *b = static_cast<EventBlock *>(event);
  if (!b || !b->recorded) return PLAIT_OK;
  if (is_gone(b->device)) return gone(thread, b->device);
  const plait_status s =
      b->table ? call_device(thread, b->device, "event_query",
                             [&] { return b->table->event_query(b->table->ctx, thread, b, done); })
               : PLAIT_OK;
  if (s < 0 || !*done) return s;
  return passed(thread, b);
}

plait_status event_wait(plait_thread *thread, plait_device_event *event) {
  auto *b = static_cast<EventBlock *>(event);
  if (!b || !b->recorded) return PLAIT_OK;
  if (is_gone(b->device)) return gone(thread, b->device);
  const plait_status s =
      b->table
          ? call_device(thread, b->device, "event_wait",
                        [&] {
                          return unlocked([&] {
                            const plait_status done = until_reached(thread, b->table, b);
                            return done < 0 ? done : b->table->event_wait(b->table->ctx, thread, b);
                          });
                        })
          : PLAIT_OK;
  if (s < 0) return s;
  return passed(thread, b);
}

plait_status stream_wait(plait_thread *thread, DLDevice d, plait_stream *stream,
                         plait_device_event *event) {
  auto *b = static_cast<EventBlock *>(event);
  if (!b || !b->table || !b->recorded) return PLAIT_OK;
  if (!is_accelerator(d)) return event_wait(thread, event);  // the host is its own stream
  if (is_gone(d)) return gone(thread, d);
  if (d.device_type != b->device.device_type) return event_wait(thread, event);
  const plait_status s = call_device(thread, d, "stream_wait", [&] {
    return b->table->stream_wait(b->table->ctx, thread, d, stream, b);
  });
  return s < 0 || !same(d, b->device) ? s : note_wait(thread, d, stream, b->stream, b->launch);
}

plait_status event_elapsed(plait_thread *thread, plait_device_event *from, plait_device_event *to,
                           double *milliseconds) {
  *milliseconds = 0;
  if (!from || !to) return PLAIT_OK;
  const auto *a = static_cast<EventBlock *>(from), *b = static_cast<EventBlock *>(to);
  const plait_device *table = a->table;
  if (!same(a->device, b->device) || !(a->flags & b->flags & PLAIT_EVENT_TIMED) || !a->recorded ||
      !b->recorded)
    return raise(thread, PLAIT_VALUE_ERROR, "event_elapsed",
                 "two recorded events of one device, made to be timed, are required");
  if (!table || !PLAIT_HAS(plait_device, table, event_elapsed))
    return raise(thread, PLAIT_NOT_IMPLEMENTED, "event_elapsed", "%s has no clock",
                 device_text(a->device).c_str());
  for (plait_device_event *each : {from, to})
    if (const plait_status s = event_wait(thread, each); s < 0) return s;
  return call_device(thread, a->device, "event_elapsed", [&] {
    return table->event_elapsed(table->ctx, thread, from, to, milliseconds);
  });
}

// Memory.

void record_use(plait_storage *storage, plait_stream *stream) {
  if (!is_accelerator(storage->device) || !storage->allocator || is_gone(storage->device)) return;
  if (stream_of(storage) == stream) return;
  const plait_allocator *a = storage->allocator;
  if (PLAIT_HAS(plait_allocator, a, record_use))
    a->record_use(a->ctx, storage->data, storage->block, stream);
}

plait_status keep_until_done(plait_thread *thread, DLDevice d, plait_stream *stream,
                             plait_storage *storage) {
  const plait_device *table = device_table(d);
  if (table && PLAIT_HAS(plait_device, table, capture_query) &&
      table->capture_query(table->ctx, d, stream))
    return PLAIT_OK;  // the graph keeps the memory, and its events cannot be asked
  plait_device_event *event = nullptr;
  plait_status s = event_new(thread, d, 0, &event);
  if (s >= 0) s = event_record(thread, event, stream);
  if (s < 0) return plait_release(event), s;
  return border(thread, nullptr, [&]() -> plait_status {
    State &state = states[d.device_type];
    const std::lock_guard<ProcessLock> lock(state.lock);
    state.in_flight.push_back({event, storage});
    plait_retain(storage);
    return PLAIT_OK;
  });
}

void let_go(plait_thread *thread, DLDevice d) {
  State &state = states[d.device_type];
  std::vector<InFlight> done;
  {
    const std::lock_guard<ProcessLock> lock(state.lock);
    auto &list = state.in_flight;
    for (size_t i = 0; i < list.size();) {
      const auto *b = static_cast<EventBlock *>(list[i].event);
      int32_t reached = 1;
      if (b->table && b->table->event_query(b->table->ctx, thread, list[i].event, &reached) < 0)
        reached = 1, clear(thread);
      if (reached) {
        done.push_back(list[i]);
        list[i] = list.back();
        list.pop_back();
      } else {
        i++;
      }
    }
  }
  for (const InFlight &each : done) {
    plait_release(each.event);
    plait_release(each.storage);
  }
}

namespace {
struct Pinned {
  DLDevice device;
  const plait_device *table;
  void *data;
  uint64_t nbytes;
};
void free_pinned(void *p) {
  auto *pinned = static_cast<Pinned *>(p);
  if (!is_gone(pinned->device))
    pinned->table->pinned_free(pinned->table->ctx, pinned->data, pinned->nbytes);
  delete pinned;
}
}  // namespace

plait_status pinned_new(plait_thread *thread, DLDevice d, uint64_t nbytes, plait_storage **out) {
  return border(thread, "pinned_new", [&]() -> plait_status {
    *out = nullptr;
    const plait_device *table = nullptr;
    if (!is_accelerator(d)) return storage_new(thread, {kDLCPU, 0}, nbytes, out);
    if (const plait_status s = usable(thread, d, &table); s < 0) return s;
    if (!PLAIT_HAS(plait_device, table, pinned_alloc) || !nbytes) {
      const plait_status s = storage_new(thread, {kDLCPU, 0}, nbytes, out);
      if (s >= 0) (*out)->flags |= PLAIT_STORAGE_PINNED;
      return s;
    }
    auto pinned = std::make_unique<Pinned>(Pinned{d, table, nullptr, nbytes});
    plait_status s = call_device(thread, d, "pinned_alloc", [&] {
      return table->pinned_alloc(table->ctx, thread, nbytes, &pinned->data);
    });
    if (s >= 0 && !pinned->data)
      s = raise(thread, PLAIT_MEMORY_ERROR, nullptr, "`pinned_alloc` of %s gave no memory",
                table->name);
    if (s < 0) return s;
    s = storage_wrap(thread, pinned->data, nbytes, {kDLCPU, 0}, PLAIT_STORAGE_PINNED, free_pinned,
                     pinned.get(), out);
    if (s < 0)
      free_pinned(pinned.release());
    else
      pinned.release();
    return s;
  });
}

}  // namespace plait::abi
