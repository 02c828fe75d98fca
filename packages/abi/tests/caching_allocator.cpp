// The caching allocator over a device that exists only here: its clock moves when the test says so,
// and its memory has addresses only. Random programs check that no two blocks overlap, that memory
// is given out again only when the work on it is done or in order before, that private pools keep
// theirs, and that the counters add up. Arguments: libplait_abi, a mode, a number for the random
// choices. Prints "done".
#include <dlfcn.h>

#include <plait/caching_allocator.hpp>

#include <chrono>
#include <deque>
#include <map>
#include <random>
#include <thread>

namespace {

const plait_runtime *runtime;
constexpr uint64_t kMiB = 1 << 20;
constexpr DLDevice kDevice{kDLExtDev, 0};

#define REQUIRE(condition)                                            \
  do {                                                                \
    if (condition) break;                                             \
    std::printf("line %d: %s does not hold\n", __LINE__, #condition); \
    std::fflush(stdout);                                              \
    std::_Exit(1);                                                    \
  } while (0)

// ---- the device -----------------------------------------------------------------------------

struct Queue {
  plait_stream handle{};
  uint64_t put = 0, done = 0;  // pieces of work
  bool is_recorded = false;
};
void keep(plait_object *) {}
const plait_type stream_type{PLAIT_HEADER(plait_type), "stream", keep};

struct Mark {
  Queue *queue;
  uint64_t at;
};
struct Fake {
  std::deque<Queue> queues;  // 0 is the default stream
  std::map<uint64_t, uint64_t> segments;
  uint64_t next = uint64_t(1) << 40, capacity = ~uint64_t(0);
  std::atomic<uint64_t> given{0};
  uint64_t calls = 0, fails_each = 0;  // each n-th request for memory fails
  std::atomic<uint64_t> events{0}, waits{0};
} fake;

Queue *queue_of(const plait_stream *s) {
  return s ? static_cast<Queue *>(s->native) : &fake.queues[0];
}
plait_stream *stream(size_t i) { return i ? &fake.queues[i].handle : nullptr; }
bool is_any_recorded() {
  for (const Queue &q : fake.queues)
    if (q.is_recorded) return true;
  return false;
}

plait_status memory_alloc(void *, plait_thread *, DLDevice, uint64_t nbytes, void **data) {
  const bool fails = fake.fails_each && ++fake.calls % fake.fails_each == 0;
  if (fails || fake.given + nbytes > fake.capacity) return PLAIT_MEMORY_ERROR;
  *data = reinterpret_cast<void *>(fake.next);
  fake.segments[fake.next] = nbytes;
  fake.next += (nbytes + 511) / 512 * 512 + 512;  // segments never touch
  fake.given += nbytes;
  return PLAIT_OK;
}
void memory_free(void *, DLDevice, void *data, uint64_t nbytes) {
  const auto at = fake.segments.find(reinterpret_cast<uint64_t>(data));
  REQUIRE(at != fake.segments.end() && at->second == nbytes);
  REQUIRE(!is_any_recorded());
  fake.segments.erase(at);
  fake.given -= nbytes;
  for (Queue &q : fake.queues) q.done = q.put;  // it waits for work
}
plait_status memory_info(void *, plait_thread *, DLDevice, uint64_t *free_bytes, uint64_t *total) {
  *free_bytes = fake.capacity - fake.given;
  *total = fake.capacity;
  return PLAIT_OK;
}
plait_status event_new(void *, plait_thread *, plait_device_event *e) {
  e->native = new Mark{};
  fake.events++;
  return PLAIT_OK;
}
plait_status event_record(void *, plait_thread *, plait_device_event *e, plait_stream *s) {
  Queue *q = queue_of(s);
  REQUIRE(!q->is_recorded);
  *static_cast<Mark *>(e->native) = {q, q->put};
  return PLAIT_OK;
}
plait_status event_query(void *, plait_thread *, plait_device_event *e, int32_t *done) {
  const Mark &m = *static_cast<Mark *>(e->native);
  *done = m.queue->done >= m.at;
  return PLAIT_OK;
}
plait_status event_wait(void *, plait_thread *, plait_device_event *e) {
  const Mark &m = *static_cast<Mark *>(e->native);
  REQUIRE(!m.queue->is_recorded);
  m.queue->done = std::max(m.queue->done, m.at);
  fake.waits++;
  return PLAIT_OK;
}
int32_t capture_query(void *, DLDevice, plait_stream *s) { return queue_of(s)->is_recorded; }

plait_device device_table() {
  plait_device t{};
  t.h = PLAIT_HEADER(plait_device);
  t.name = "fake";
  t.event_new = event_new;
  t.event_record = event_record;
  t.event_query = event_query;
  t.event_wait = event_wait;
  t.memory_alloc = memory_alloc;
  t.memory_free = memory_free;
  t.memory_info = memory_info;
  t.capture_query = capture_query;
  return t;
}
const plait_device device = device_table();

// ---- what must hold -------------------------------------------------------------------------

struct Live {
  void *block;
  uint64_t nbytes;
  size_t home;
  std::map<Queue *, uint64_t> uses;
};
// Work on bytes that were freed.
struct Past {
  uint64_t begin, end;
  Queue *queue;
  uint64_t at;
};

class Model {
 public:
  Model(const plait_allocator *table, uint64_t seed) : table_(table), random_(seed) {}

  uint64_t below(uint64_t n) { return random_() % n; }
  uint64_t size() {
    const uint64_t kind = below(10);
    if (kind < 6) return 1 + below(4096);
    if (kind < 8) return 1 + below(kMiB);
    return kind < 9 ? 1 + below(12 * kMiB) : 1 + below(64 * kMiB);
  }

  bool allocate(size_t home, uint64_t nbytes) {
    void *data = nullptr, *block = nullptr;
    const plait_status s = table_->alloc(table_->ctx, kDevice, nbytes, stream(home), &data, &block);
    if (s != PLAIT_OK) return check_refusal(s, nbytes, home), false;
    const uint64_t begin = reinterpret_cast<uint64_t>(data), end = begin + nbytes;
    REQUIRE(begin % 512 == 0);
    const auto after = live_.lower_bound(begin);
    REQUIRE(after == live_.end() || after->first >= end);
    REQUIRE(after == live_.begin() ||
            std::prev(after)->first + std::prev(after)->second.nbytes <= begin);
    const auto segment = std::prev(fake.segments.upper_bound(begin));
    REQUIRE(segment->first <= begin && end <= segment->first + segment->second);
    check_owner(segment->first, home);
    Queue *own = &fake.queues[home];
    for (const Past &p : past_)
      REQUIRE(p.end <= begin || end <= p.begin || p.queue == own || p.queue->done >= p.at);
    live_[begin] = {block, nbytes, home, {}};
    use(live_.find(begin), home);
    return true;
  }
  void use_some() {
    if (!live_.empty()) use(any(), below(fake.queues.size()));
  }
  void free_some() {
    if (!live_.empty()) free(any());
  }
  void free_all() {
    while (!live_.empty()) free(live_.begin());
  }
  void advance() {
    Queue &q = fake.queues[below(fake.queues.size())];
    if (q.done < q.put && !q.is_recorded) q.done += 1 + below(q.put - q.done);
    const auto is_done = [](const Past &p) { return p.queue->done >= p.at; };
    past_.erase(std::remove_if(past_.begin(), past_.end(), is_done), past_.end());
  }

  // From now on requests of the stream are those of a pool; NULL: of the common memory.
  void redirect(size_t home, void *pool) {
    table_->pool_use(table_->ctx, kDevice, stream(home), pool);
    pools_[home] = pool;
  }
  void end_pool(void *pool) {
    table_->pool_free(table_->ctx, pool);
    for (auto at = owner_.begin(); at != owner_.end();)
      at = at->second == pool ? owner_.erase(at) : std::next(at);
  }

  // The counters of all segments are the sums of those of small and of large ones; peaks are above
  // what there is.
  static void check_sums(const plait_alloc_stats &s) {
    using Counter = plait_counter plait_memory_counters::*;
    using M = plait_memory_counters;
    for (const Counter c :
         {&M::blocks, &M::block_bytes, &M::request_bytes, &M::active, &M::active_bytes, &M::split,
          &M::split_bytes, &M::segments, &M::segment_bytes}) {
      REQUIRE((s.all.*c).current == (s.small.*c).current + (s.large.*c).current);
      REQUIRE((s.all.*c).added == (s.small.*c).added + (s.large.*c).added);
      for (const plait_memory_counters *m : {&s.all, &s.small, &s.large})
        REQUIRE((m->*c).current <= (m->*c).peak && (m->*c).peak <= (m->*c).added);
    }
  }

  void check_counters() {
    plait_alloc_stats s{};
    s.size = sizeof s;
    table_->stats(table_->ctx, kDevice, &s);
    std::vector<plait_memory_block> list(
        table_->snapshot(table_->ctx, kDevice, nullptr, 0, sizeof(plait_memory_block)));
    REQUIRE(table_->snapshot(table_->ctx, kDevice, list.data(), list.size(), sizeof list[0]) ==
            list.size());
    uint64_t live = 0, blocks = 0, all = 0, largest = 0, requested = 0;
    std::map<void *, uint64_t> parts;  // blocks of each segment
    for (const plait_memory_block &b : list) parts[b.segment]++;
    uint64_t active = 0, active_bytes = 0, split = 0, split_bytes = 0;
    for (const plait_memory_block &b : list) {
      all += b.nbytes;
      if (b.flags & (PLAIT_BLOCK_LIVE | PLAIT_BLOCK_WAITING)) {
        active++;
        active_bytes += b.nbytes;
      } else if (parts[b.segment] > 1) {
        split++;
        split_bytes += b.nbytes;
      }
      if (b.flags & PLAIT_BLOCK_LIVE) requested += b.requested;
      REQUIRE((b.flags & PLAIT_BLOCK_LIVE) || !b.requested || (b.flags & PLAIT_BLOCK_WAITING));
      if (b.flags & PLAIT_BLOCK_LIVE) {
        live += b.nbytes;
        blocks++;
        const auto at = live_.find(reinterpret_cast<uint64_t>(b.data));
        REQUIRE(at != live_.end() && at->second.nbytes == b.requested);
      } else if (!(b.flags & PLAIT_BLOCK_WAITING)) {
        largest = std::max(largest, b.nbytes);
      }
    }
    REQUIRE(s.live_bytes == live && s.live_blocks == blocks && blocks == live_.size());
    REQUIRE(s.cached_bytes == all - live && all == fake.given);
    REQUIRE(s.largest_cached == largest && s.peak_bytes >= live);
    const plait_memory_counters &m = s.all;
    REQUIRE(m.blocks.current == blocks && m.block_bytes.current == live);
    REQUIRE(m.request_bytes.current == requested);
    REQUIRE(m.active.current == active && m.active_bytes.current == active_bytes);
    REQUIRE(m.split.current == split && m.split_bytes.current == split_bytes);
    REQUIRE(m.segments.current == parts.size() && m.segment_bytes.current == all);
    check_sums(s);
  }

 private:
  using At = std::map<uint64_t, Live>::iterator;
  At any() { return std::next(live_.begin(), int64_t(below(live_.size()))); }
  void use(At at, size_t i) {
    Queue &q = fake.queues[i];
    at->second.uses[&q] = q.is_recorded ? q.put : ++q.put;
    table_->record_use(table_->ctx, reinterpret_cast<void *>(at->first), at->second.block,
                       stream(i));
  }
  void free(At at) {
    const Live one = at->second;
    for (const auto &use : one.uses)
      past_.push_back({at->first, at->first + one.nbytes, use.first, use.second});
    void *data = reinterpret_cast<void *>(at->first);
    live_.erase(at);
    table_->free(table_->ctx, data, one.nbytes, one.block);
  }
  // A segment belongs to the pool that got it for as long as the pool lives.
  void check_owner(uint64_t segment, size_t home) {
    void *pool = pools_.count(home) ? pools_[home] : nullptr;
    const auto known = owner_.find(segment);
    REQUIRE(known == owner_.end() || known->second == pool);
    if (pool) owner_[segment] = pool;
  }
  // An error must be that of memory, and no free block of the stream would have done.
  void check_refusal(plait_status s, uint64_t nbytes, size_t home) {
    plait_thread *thread = runtime->thread();
    REQUIRE(s == PLAIT_MEMORY_ERROR && thread->error);
    const std::string text = thread->error->message;
    REQUIRE(text.find("FAKE out of memory. Tried to allocate ") == 0 &&
            text.find("fake:0") != std::string::npos);
    runtime->clear(thread);
    const bool has_pool = pools_.count(home) && pools_[home];
    std::vector<plait_memory_block> list(4096);
    const uint64_t n =
        table_->snapshot(table_->ctx, kDevice, list.data(), list.size(), sizeof list[0]);
    for (uint64_t i = 0; i < n && i < list.size(); i++) {
      const plait_memory_block &b = list[i];
      if (has_pool || b.flags || b.stream != (home ? uint64_t(&fake.queues[home]) : 0)) continue;
      REQUIRE(b.nbytes < nbytes);
    }
  }

  const plait_allocator *table_;
  std::mt19937_64 random_;
  std::map<uint64_t, Live> live_;
  std::vector<Past> past_;
  std::map<size_t, void *> pools_;
  std::map<uint64_t, void *> owner_;
};

void make_queues(size_t n) {
  fake.queues.resize(n);
  for (Queue &q : fake.queues) {
    q.handle.o = {1, &stream_type};
    q.handle.device = kDevice;
    q.handle.native = &q;
  }
}

// ---- programs -------------------------------------------------------------------------------

// Random requests, uses and frees on four streams.
void run_steps(Model &m, int steps, size_t streams) {
  for (int i = 0; i < steps; i++) {
    const uint64_t choice = m.below(16);
    if (choice < 6)
      m.allocate(m.below(streams), m.size());
    else if (choice < 8)
      m.use_some();
    else if (choice < 13)
      m.free_some();
    else
      m.advance();
    if (i % 64 == 0) m.check_counters();
  }
}
void finish(Model &m, const plait_allocator *table) {
  m.free_all();
  m.check_counters();
  table->trim(table->ctx);
  m.check_counters();
  REQUIRE(fake.given == 0 && fake.segments.empty());  // all blocks were joined again
  for (const Queue &q : fake.queues) REQUIRE(q.handle.o.refs == 1);
}

void run_streams(const plait_allocator *table, uint64_t seed) {
  Model m(table, seed);
  for (int i = 0; i < 4; i++) {
    run_steps(m, 3000, 4);
    if (i == 1) table->trim(table->ctx);
  }
  REQUIRE(fake.events > 0);
  finish(m, table);
}

void run_scarce(const plait_allocator *table, uint64_t seed) {
  Model m(table, seed);
  fake.capacity = 256 * kMiB;
  for (fake.fails_each = 0; fake.fails_each < 5; fake.fails_each++) {
    run_steps(m, 2000, 3);
    if (fake.fails_each == 1) fake.fails_each = 2;  // no driver refuses every request
  }
  REQUIRE(fake.waits > 0);
  finish(m, table);
}

// Streams 0 and 1 have pools in turn; stream 3 is recorded and so takes from the latest pool.
void run_pools(const plait_allocator *table, uint64_t seed) {
  Model m(table, seed);
  std::vector<void *> pools;
  for (int i = 0; i < 30; i++) {
    const size_t home = 1 + m.below(2);
    void *pool = table->pool_new(table->ctx, kDevice);
    REQUIRE(pool);
    pools.push_back(pool);
    m.redirect(home, pool);
    fake.queues[home].is_recorded = true;
    run_steps(m, 200, 3);
    fake.queues[home].is_recorded = false;
    m.redirect(home, nullptr);
    run_steps(m, 200, 3);
    if (m.below(2)) {
      const size_t which = m.below(pools.size());
      m.end_pool(pools[which]);
      pools.erase(pools.begin() + int64_t(which));
    }
    if (m.below(4) == 0) table->trim(table->ctx);
  }
  for (void *each : pools) m.end_pool(each);
  finish(m, table);
}

// A stream that joins a recording draws from its pool; a live pool keeps its memory.
void run_joined(const plait_allocator *table) {
  void *pool = table->pool_new(table->ctx, kDevice);
  void *data = nullptr, *first = nullptr, *second = nullptr;
  table->pool_use(table->ctx, kDevice, stream(1), pool);
  fake.queues[1].is_recorded = fake.queues[2].is_recorded = true;
  REQUIRE(table->alloc(table->ctx, kDevice, 1000, stream(1), &data, &first) == PLAIT_OK);
  REQUIRE(table->alloc(table->ctx, kDevice, 1000, stream(2), &data, &second) == PLAIT_OK);
  table->record_use(table->ctx, data, second, stream(1));
  table->free(table->ctx, data, 1000, second);
  table->free(table->ctx, data, 1000, first);
  plait_memory_block list[8];
  uint64_t n = table->snapshot(table->ctx, kDevice, list, 8, sizeof list[0]), waiting = 0;
  for (uint64_t i = 0; i < n; i++) {
    REQUIRE(list[i].flags & PLAIT_BLOCK_PRIVATE);
    waiting += list[i].flags & PLAIT_BLOCK_WAITING ? 1 : 0;
  }
  REQUIRE(n == 3 && waiting == 1);
  table->trim(table->ctx);  // does nothing while work is recorded
  REQUIRE(fake.given == 4 * kMiB);
  fake.queues[1].is_recorded = fake.queues[2].is_recorded = false;
  table->pool_use(table->ctx, kDevice, stream(1), nullptr);
  table->trim(table->ctx);
  REQUIRE(fake.given == 4 * kMiB);
  table->pool_free(table->ctx, pool);
  table->trim(table->ctx);
  REQUIRE(fake.given == 0);
}

// Without the cache each request is a segment of exactly its size.
void run_exact(const plait_allocator *table, uint64_t seed) {
  Model m(table, seed);
  void *data = nullptr, *block = nullptr;
  REQUIRE(table->alloc(table->ctx, kDevice, 1000, stream(1), &data, &block) == PLAIT_OK);
  REQUIRE(fake.given == 1000);
  table->free(table->ctx, data, 1000, block);
  REQUIRE(fake.given == 0);
  run_steps(m, 3000, 4);
  finish(m, table);
}

// ---- threads --------------------------------------------------------------------------------

std::mutex fake_lock;
plait_status real_alloc(void *, plait_thread *, DLDevice, uint64_t nbytes, void **data) {
  const std::lock_guard<std::mutex> lock(fake_lock);
  if (fake.given + nbytes > fake.capacity) return PLAIT_MEMORY_ERROR;
  fake.given += nbytes;
  *data = std::aligned_alloc(512, nbytes);
  return PLAIT_OK;
}
void real_free(void *, DLDevice, void *data, uint64_t nbytes) {
  const std::lock_guard<std::mutex> lock(fake_lock);
  fake.given -= nbytes;
  std::free(data);
}

// Threads write to memory of their stream and to memory that others hand them, which they free.
struct Parcel {
  void *data, *block;
  uint64_t nbytes;
  unsigned char mark;
};
std::mutex parcels_lock;
std::vector<Parcel> parcels;

void check_and_free(const plait_allocator *table, const Parcel &p) {
  const auto *bytes = static_cast<unsigned char *>(p.data);
  for (uint64_t i = 0; i < p.nbytes; i += 509) REQUIRE(bytes[i] == p.mark);
  REQUIRE(bytes[p.nbytes - 1] == p.mark);
  table->free(table->ctx, p.data, p.nbytes, p.block);
}
void work(const plait_allocator *table, size_t number) {
  std::mt19937_64 random(number);
  for (int i = 0; i < 4000; i++) {
    Parcel p{nullptr, nullptr, 1 + random() % (random() % 8 ? 5000 : 3 * kMiB),
             static_cast<unsigned char>(random())};
    const plait_status s =
        table->alloc(table->ctx, kDevice, p.nbytes, stream(number % 3), &p.data, &p.block);
    if (s == PLAIT_OK) {
      std::memset(p.data, p.mark, p.nbytes);
      if (random() % 4 == 0)
        table->record_use(table->ctx, p.data, p.block, stream((number + 1) % 3));
      const std::lock_guard<std::mutex> lock(parcels_lock);
      parcels.push_back(p);
    } else {
      REQUIRE(s == PLAIT_MEMORY_ERROR);
      runtime->clear(runtime->thread());
    }
    for (;;) {
      Parcel other{};
      {
        const std::lock_guard<std::mutex> lock(parcels_lock);
        if (parcels.size() < 40) break;
        std::swap(parcels[random() % parcels.size()], parcels.back());
        other = parcels.back();
        parcels.pop_back();
      }
      check_and_free(table, other);
    }
    if (random() % 500 == 0) table->trim(table->ctx);
  }
}
void run_threads() {
  plait_device table = device;
  table.memory_alloc = real_alloc;
  table.memory_free = real_free;
  fake.capacity = 64 * kMiB;
  const plait_allocator *memory = (new plait::CachingAllocator(runtime, &table))->table();
  std::vector<std::thread> threads;
  for (size_t i = 0; i < 6; i++) threads.emplace_back(work, memory, i);
  for (std::thread &each : threads) each.join();
  for (const Parcel &p : parcels) check_and_free(memory, p);
  memory->trim(memory->ctx);
  REQUIRE(fake.given == 0);
}

// Pinned memory is kept by size, and given back where the driver has no more.
std::map<void *, uint64_t> pinned;
uint64_t pinned_bytes = 0;
plait_status take_pinned(plait_thread *thread, uint64_t nbytes, void **data) {
  if (pinned_bytes + nbytes > kMiB)
    return runtime->raise(thread, PLAIT_MEMORY_ERROR, "fake", "nothing to pin");
  *data = std::aligned_alloc(64, nbytes);
  pinned[*data] = nbytes;
  pinned_bytes += nbytes;
  return PLAIT_OK;
}
void give_pinned(void *data, uint64_t nbytes) {
  REQUIRE(pinned.count(data) && pinned[data] == nbytes);
  pinned_bytes -= nbytes;
  pinned.erase(data);
  std::free(data);
}
void run_pinned() {
  auto &cache = *new plait::PinnedCache(take_pinned, give_pinned);
  plait_thread *thread = runtime->thread();
  void *a = nullptr, *b = nullptr, *c = nullptr;
  REQUIRE(cache.alloc(thread, 1000, &a) == PLAIT_OK && cache.alloc(thread, 1024, &b) == PLAIT_OK);
  REQUIRE(a != b && pinned_bytes == 2048);
  std::memset(a, 1, 1000);
  cache.free(a, 1000);
  REQUIRE(cache.alloc(thread, 600, &c) == PLAIT_OK && c == a);
  cache.free(c, 600);
  cache.free(b, 1024);
  REQUIRE(cache.alloc(thread, kMiB, &a) == PLAIT_OK && pinned_bytes == kMiB && !thread->error);
  REQUIRE(cache.alloc(thread, 1, &b) == PLAIT_MEMORY_ERROR);
  runtime->clear(thread);
  REQUIRE(cache.alloc(thread, ~uint64_t(0), &b) == PLAIT_MEMORY_ERROR);
  cache.free(a, kMiB);
  REQUIRE(cache.trim() && !cache.trim() && pinned.empty());
}

// Prints the time of a request that the cache serves; no test reads it.
void run_speed(const plait_allocator *table) {
  constexpr int n = 2000000;
  std::vector<std::pair<void *, void *>> kept(64);
  for (auto &each : kept)
    table->alloc(table->ctx, kDevice, 4096, stream(1), &each.first, &each.second);
  const auto begin = std::chrono::steady_clock::now();
  for (int i = 0; i < n; i++) {
    auto &each = kept[size_t(i) % kept.size()];
    table->free(table->ctx, each.first, 4096, each.second);
    table->alloc(table->ctx, kDevice, 4096 + uint64_t(i % 7) * 512, stream(1), &each.first,
                 &each.second);
  }
  const std::chrono::duration<double, std::nano> time = std::chrono::steady_clock::now() - begin;
  std::printf("%.0f ns for a request and its end\n", time.count() / n);
}

}  // namespace

int main(int, char **arguments) {
  void *library = dlopen(arguments[1], RTLD_NOW | RTLD_GLOBAL);
  REQUIRE(library);
  runtime = reinterpret_cast<const plait_runtime *(*)()>(dlsym(library, "plait_runtime_v0"))();
  REQUIRE(runtime);
  make_queues(4);
  const plait_allocator *table = (new plait::CachingAllocator(runtime, &device))->table();
  const std::string mode = arguments[2];
  const uint64_t seed = std::strtoull(arguments[3], nullptr, 10);
  if (mode == "streams") run_streams(table, seed);
  if (mode == "scarce") run_scarce(table, seed);
  if (mode == "pools") run_pools(table, seed), run_joined(table);
  if (mode == "exact") run_exact(table, seed);
  if (mode == "threads") run_threads();
  if (mode == "pinned") run_pinned();
  if (mode == "speed") run_speed(table);
  std::puts("done");
  return 0;
}
