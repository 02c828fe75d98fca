#include "recorder.hpp"

#include <sys/syscall.h>
#include <unistd.h>
#include <plait/fork.hpp>

#include <algorithm>
#include <limits>
#include <mutex>

#include "clock.hpp"
#include "device_times.hpp"
#include "journal.hpp"
#include "ring.hpp"
#include "signature.hpp"

namespace plait::profiler {
namespace {

const plait_runtime *runtime = nullptr;

std::atomic<bool> on{false}, with_stacks{false};
std::atomic<uint64_t> begun{0};        // when the first of the sessions that run began
std::atomic<uint64_t> generation{0};   // grows at that time, and in the child of a fork
std::atomic<uint64_t> capacity{0};
std::atomic<uint32_t> process{0};
std::atomic<uint32_t (*)()> stack_function{nullptr};
std::atomic<uint64_t> allocations{0}, launches{0};

ForkMutex borders;  // held while the first session begins and while the last one ends
ForkMutex
    mutex;  // of the variables below, which are never destroyed: other threads may outlive main
auto &sessions = *new std::vector<Session *>;
auto &rings = *new std::vector<std::shared_ptr<Ring>>;
auto &works = *new std::vector<Work>;  // of devices, while a session runs
uint32_t collecting = 0;  // sessions that have ended, but have not taken what was recorded

struct Current {  // the ring of this thread
  uint64_t generation = 0;
  std::shared_ptr<Ring> ring;
};
thread_local Current current;

// May fail with std::bad_alloc.
Ring &ring() {
  const uint64_t now_at = generation.load(std::memory_order_relaxed);
  if (__builtin_expect(current.generation != now_at, 0)) {
    const std::lock_guard<ForkMutex> lock(mutex);
    const auto old = std::find(rings.begin(), rings.end(), current.ring);
    if (current.ring && old != rings.end()) {
      current.ring->open.clear();
      current.ring->module = 0;
      current.ring->launches.clear();
    } else {
      current.ring = std::make_shared<Ring>(uint32_t(syscall(SYS_gettid)));
      rings.push_back(current.ring);
    }
    current.generation = now_at;
  }
  return *current.ring;
}

bool is_accelerator(DLDevice d) { return d.device_type != kDLCPU && d.device_type != PLAIT_META; }

uint16_t depth_of(const Ring &r) {
  return uint16_t(std::min<size_t>(r.open.size(), std::numeric_limits<uint16_t>::max()));
}

// Ends the event that began at this time, and those within it that have not ended; none if it began
// on another thread.
void close(Ring &r, uint64_t begin) {
  const auto at = std::find(r.open.rbegin(), r.open.rend(), begin);
  if (at != r.open.rend()) r.open.resize(size_t(r.open.rend() - at) - 1);
}

uint32_t context_of(Ring &r) {
  uint32_t stack = 0;
  if (with_stacks.load(std::memory_order_relaxed))
    if (const auto f = stack_function.load()) stack = f();
  if (!stack && !r.module) return 0;
  return r.recent_contexts.number(contexts, mix(mix(7, r.module), stack), [&] {
    return "[" + std::to_string(r.module) + "," + std::to_string(stack) + "]";
  });
}

Row row_of(Ring &r, const plait_event *e, uint64_t start, uint64_t end) {
  Row row{};
  row.start = start;
  row.duration = end - start;
  row.a = e->kind == PLAIT_EVENT_NODE ? 0 : e->a;  // the number of a node is its link
  row.b = e->b;
  row.thread = r.thread;
  row.process = process.load(std::memory_order_relaxed);
  row.kind = uint16_t(e->kind);
  row.depth = depth_of(r);
  const bool here = e->kind == PLAIT_EVENT_NODE || e->kind == PLAIT_EVENT_BACKWARD;
  row.device = here ? uint16_t(kDLCPU << 8)
                    : uint16_t(e->device.device_type << 8 | (e->device.device_id & 255));
  row.context = context_of(r);
  return row;
}

void push(Ring &r, const Row &row) noexcept {
  r.push(row, capacity.load(std::memory_order_relaxed));
}

uint64_t node_of(const plait_call *c) {
  return PLAIT_KNOWS(plait_thread, c->thread->h.size, node) ? c->thread->node : 0;
}

// Events of no length.
void point(const plait_event *e) {
  Ring &r = ring();
  const uint64_t t = now();
  push(r, row_of(r, e, t, t));
  if (e->kind != PLAIT_EVENT_ALLOC) return;
  const uint64_t number = allocations.fetch_add(1, std::memory_order_relaxed);
  if (number % 64 == 0 || e->a >= 1u << 20) sample_reserved();
}

// Prepares for the work that a call launches: the device records it, or an event is put before it.
void expect_launch(Ring &r, const plait_event *e) {
  if (watches(runtime, e->device))
    r.launches.push_back({nullptr, depth_of(r)});
  else if (!(e->call->op->flags & PLAIT_OP_COMPOSITE))
    if (plait_device_event *before = mark_stream(runtime, e->call))
      r.launches.push_back({before, depth_of(r)});
}

void begin(void *, const plait_event *e, uint64_t *token) noexcept {
  if (!on.load(std::memory_order_acquire)) return;
  try {
    if (!token) return point(e);
    Ring &r = ring();
    if (e->kind == PLAIT_EVENT_OP) {
      r.node = node_of(e->call);
      if (is_accelerator(e->device) && !(e->call->op->flags & PLAIT_OP_VIEW)) expect_launch(r, e);
    }
    r.open.push_back(0);
    *token = r.open.back() = now();
  } catch (const std::bad_alloc &) {  // the event is not recorded; its token stays 0
  }
}

void end(void *, const plait_event *e, uint64_t token, plait_status status) noexcept {
  const uint64_t t = now();
  if (token < begun.load(std::memory_order_relaxed)) return;  // of an earlier session, or 0
  try {
    Ring &r = ring();
    close(r, token);
    plait_device_event *before = nullptr;
    bool is_watched = false;
    if (!r.launches.empty() && r.launches.back().depth == depth_of(r)) {
      before = r.launches.back().before;
      is_watched = !before && e->kind == PLAIT_EVENT_OP && e->call->launch;
      r.launches.pop_back();
    }
    if (!on.load(std::memory_order_acquire)) {
      if (before) plait_release(before);
      return;
    }
    Row row = row_of(r, e, token, t);
    row.status = int16_t(std::max<plait_status>(status, -32768));
    if (e->kind == PLAIT_EVENT_OP) {
      const plait_call *c = e->call;
      row.a = before || is_watched ? ++launches : 0;
      row.signature = status < 0 ? signature_of(r.recent_signatures, PLAIT_EVENT_OP, c->op->name)
                                 : signature_of(r.recent_signatures, runtime, c);
      const uint64_t node = node_of(c);
      if (node != r.node) row.link = r.node = node;
    } else {
      row.signature = signature_of(r.recent_signatures, e->kind, e->name);
      // a gradient that is added up in a leaf has no number
      if (e->kind == PLAIT_EVENT_NODE && e->a != ~uint64_t(0)) row.link = e->a;
    }
    push(r, row);
    if (is_watched) add_watched(row, e->device, e->call->launch);
    if (!before) return;
    plait_device_event *after = status < 0 ? nullptr : mark_stream(runtime, e->call);
    if (after) {
      row.kind = DEVICE;
      row.depth = 0;
      row.b = stream_and_queue(stream_number(e->call->stream), 0);
      add_launch(runtime, row, before, after);
    } else {
      plait_release(before);
    }
  } catch (const std::bad_alloc &) {
  }
}

plait_observer observer{PLAIT_HEADER(plait_observer), nullptr, 0, begin, end};

void after_fork() {
  collecting = 0;  // in threads that the child does not have
  if (!on) return;
  process = uint32_t(getpid());
  generation++;
  // another thread may have been changing its ring, so they are not even freed
  static auto *lost = new std::vector<std::vector<std::shared_ptr<Ring>>>;
  lost->push_back(std::move(rings));
  rings.clear();
  works.clear();
  forget_launches();
  begin_journal();
  on = in_journal();
}

}  // namespace

void set_runtime(const plait_runtime *r) {
  runtime = r;
  static const int once = pthread_atfork(nullptr, nullptr, after_fork);
  (void)once;
}

bool is_recording() { return on; }

namespace {

// Whether it was the last one; `mutex` is held.
bool leave(Session *s) {
  sessions.erase(std::remove(sessions.begin(), sessions.end(), s), sessions.end());
  with_stacks = std::any_of(sessions.begin(), sessions.end(),
                            [](const Session *other) { return other->stacks; });
  return sessions.empty();
}

}  // namespace

plait_status start(uint64_t kinds, uint64_t rows_of_thread, bool stacks, Session **out) {
  plait_thread *thread = runtime->thread();
  std::unique_ptr<Session> s;
  const std::lock_guard<ForkMutex> border_lock(borders);
  if (kinds & DEVICE) watch_used(runtime);
  const plait_status listed = border(thread, "profile", [&] {
    s = std::make_unique<Session>();
    s->kinds = kinds;
    s->capacity = rows_of_thread;
    s->stacks = stacks;
    const std::lock_guard<ForkMutex> lock(mutex);
    sessions.push_back(s.get());
    if (sessions.size() == 1) {
      generation++;
      begun = now();
      process = uint32_t(getpid());
      observer.kinds = 0;
      if (!collecting)
        rings.erase(std::remove_if(rings.begin(), rings.end(),
                                   [](const auto &r) { return r.use_count() == 1; }),
                    rings.end());
    }
    // that of sessions that have ended counts until they have taken their rows
    const bool is_alone = sessions.size() == 1 && !collecting;
    capacity = is_alone ? s->capacity : std::max(capacity.load(), s->capacity);
    if (stacks) with_stacks = true;
    kinds |= observer.kinds;
    s->begin = now();
    return PLAIT_OK;
  });
  if (listed < 0) return listed;
  // kinds only grow while a session runs: the end of each event that has begun is seen
  __atomic_store_n(&observer.kinds, kinds, __ATOMIC_RELAXED);
  sample_reserved();
  on = true;
  const plait_status status = runtime->observe(thread, &observer, 1);
  if (status < 0) {
    const std::lock_guard<ForkMutex> lock(mutex);
    if (leave(s.get())) on = false;
    return status;
  }
  *out = s.release();
  return PLAIT_OK;
}

namespace {

// Gives the session the rows that were recorded during it. May fail with std::bad_alloc.
plait_status collect(Session *s) {
  std::vector<std::shared_ptr<Ring>> all;
  {
    const std::lock_guard<ForkMutex> lock(mutex);
    all = rings;
  }
  uint64_t n = 0;
  for (const auto &r : all) n += r->size();
  s->rows.resize(n);
  Row *to = s->rows.data();
  for (const auto &r : all) {
    to = r->copy(to, s->rows.data() + n, s->begin, s->end);
    r->add_dropped(s->dropped);
  }
  s->rows.resize(size_t(to - s->rows.data()));
  std::vector<Work> done;
  const plait_status status = collect_launches(runtime, done);
  const std::lock_guard<ForkMutex> lock(mutex);
  works.insert(works.end(), done.begin(), done.end());  // for the sessions that go on, too
  for (const Work &work : works)
    if (work.launched >= s->begin && work.launched <= s->end) s->rows.push_back(work.row);
  return status;
}

}  // namespace

plait_status stop(Session *s) {
  s->end = now();
  sample_reserved();
  plait_thread *thread = runtime->thread();
  {
    const std::lock_guard<ForkMutex> border_lock(borders);
    bool last = false;
    {
      const std::lock_guard<ForkMutex> lock(mutex);
      last = leave(s);
      collecting++;
    }
    if (last) {
      on = false;
      // without memory for its list the runtime keeps the observer, which does nothing then
      if (runtime->observe(thread, &observer, 0) < 0) runtime->clear(thread);
    }
  }
  bool whole = false;  // late errors of devices leave the rows as they are
  const plait_status status = border(thread, "profile", [&] {
    const plait_status collected = collect(s);
    whole = true;
    return collected;
  });
  if (!whole) s->rows = {};
  const std::lock_guard<ForkMutex> lock(mutex);
  if (--collecting == 0 && sessions.empty()) {
    for (const auto &r : rings) r->clear();
    works.clear();
  }
  return status;
}

uint32_t set_module(uint32_t number) {
  if (!on) return 0;
  try {
    Ring &r = ring();
    std::swap(r.module, number);
    return number;
  } catch (const std::bad_alloc &) {
    return 0;
  }
}

void mark(const plait_storage *storage, uint32_t category) {
  if (!on) return;
  plait_event e{};
  e.size = sizeof e;
  e.kind = MARK;
  e.a = category;
  e.b = reinterpret_cast<uintptr_t>(storage->data);
  e.device = storage->device;
  try {
    Ring &r = ring();
    Row row = row_of(r, &e, now(), 0);
    row.duration = storage->nbytes;
    push(r, row);
  } catch (const std::bad_alloc &) {
  }
}

void set_stack_function(uint32_t (*f)()) { stack_function = f; }

void sample_reserved() {
  const plait_allocator *a = role<plait_allocator>(runtime, kDLCPU);
  if (!a || !a->stats) return;
  plait_alloc_stats stats{};
  stats.size = sizeof stats;
  a->stats(a->ctx, {kDLCPU, 0}, &stats);
  const std::pair<uint64_t, uint64_t> sample{now(), stats.live_bytes + stats.cached_bytes};
  const std::lock_guard<ForkMutex> lock(mutex);
  try {
    for (Session *s : sessions) s->reserved.push_back(sample);
  } catch (const std::bad_alloc &) {
  }
}

}  // namespace plait::profiler
