// The role "allocator" of a device whose driver is slow to give memory: it takes large segments by
// plait_device::memory_alloc and serves requests from them (docs/design/0020).
//
//   auto *memory = new plait::CachingAllocator(runtime, &device_table);
//   runtime->provide(thread, "allocator", device_type, &memory->table()->h, plugin, nullptr);
//
// Each stream has its own free blocks, as a block may be given out again for its stream while work
// on it is still in the queue. Where another stream has used it (record_use), events tell when that
// is done. The environment variable PLAIT_DEVICE_CACHE=0 asks the driver for each request by
// itself, so that tools find accesses out of bounds.
//
// Device functions are called without a lock of the allocator, but for those of its slow path
// (waits, and memory that is given back), which threads take in turn and without the lock of the
// host language. The object is never destroyed: storages may end after everything else.
#ifndef PLAIT_CACHING_ALLOCATOR_HPP
#define PLAIT_CACHING_ALLOCATOR_HPP
#include "abi.h"
#include "fork.hpp"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <memory>
#include <mutex>
#include <new>
#include <set>
#include <string>
#include <unordered_map>
#include <vector>

#if PLAIT_TARGET < PLAIT_VERSION(0, 5)
#error "the caching allocator requires the functions of devices of version 0.5"
#endif

namespace plait {

class __attribute__((visibility("hidden"))) CachingAllocator {
 public:
  // The table is that of the device type, with `memory_alloc`; it must stay valid.
  CachingAllocator(const plait_runtime *runtime, const plait_device *device)
      : runtime_(runtime), device_(device) {
    const char *cache = std::getenv("PLAIT_DEVICE_CACHE");
    has_cache_ = !cache || std::strcmp(cache, "0") != 0;
    is_misspelt_ = cache && has_cache_ && std::strcmp(cache, "1") != 0;
    fill_table();
  }
  CachingAllocator(const CachingAllocator &) = delete;
  CachingAllocator &operator=(const CachingAllocator &) = delete;

  const plait_allocator *table() const { return &table_; }

 private:
  struct Block;
  struct Device;

  static constexpr uint64_t kMiB = uint64_t(1) << 20;
  static constexpr uint64_t kUnit = 512;  // sizes of blocks are multiples of it
  // requests up to kSmall share segments of kSmallSegment, those up to kMedium ones of
  // kMediumSegment; larger ones get multiples of kSmallSegment of their own
  static constexpr uint64_t kSmall = kMiB, kSmallSegment = 2 * kMiB;
  static constexpr uint64_t kMedium = 10 * kMiB, kMediumSegment = 20 * kMiB;
  static constexpr int32_t kMostDevices = 256;
  static constexpr int kListed = 5;  // live blocks that the error names

  // ---- what there is of a device -------------------------------------------------------------

  struct BySize {
    using is_transparent = void;
    bool operator()(const Block *a, const Block *b) const {
      return a->nbytes != b->nbytes ? a->nbytes < b->nbytes : a->data < b->data;
    }
    bool operator()(const Block *a, uint64_t nbytes) const { return a->nbytes < nbytes; }
  };
  using FreeBlocks = std::set<Block *, BySize>;

  // The free blocks for the work of one stream.
  struct Cache {
    FreeBlocks small, large;  // of segments for small requests, and of others
  };
  using Caches = std::unordered_map<uint64_t, Cache>;  // by the number of the stream

  // Memory that is given to others only when the pool is dead. Such objects serve again and are
  // never freed.
  struct Pool {
    Device *device;
    bool is_alive;
    uint64_t segments;
    Caches caches;
    Pool *next;  // in the list of the device
  };

  struct Segment {
    Device *device;
    Pool *pool;  // or NULL
    Cache *cache;
    uint64_t stream;
    char *data;
    uint64_t nbytes;
    bool is_small;
    Block *first;
    Segment *previous, *next;  // in the list of the device
  };

  struct Block {
    enum State { available, live, waiting };
    char *data;
    uint64_t nbytes, requested;
    State state;
    Segment *segment;
    Block *before, *after;  // neighbours in the segment
    Block *next;  // in the list of spare blocks, or of deferred ones
    FreeBlocks::node_type node;  // its place among free blocks, while it is not there
    std::vector<plait_stream *> uses;  // other streams with work on it, retained; NULL: default
    bool has_lost_use;  // there was no memory to note a use
    uint32_t pending;  // events that it waits for
  };

  // An event behind the work of a stream on a block that was freed.
  struct Event {
    plait_device_event handle;
    uint64_t stream;
    Block *block;
    Event *next;  // in the queue, or in the list of events that may serve again
  };

  // A stream whose requests a pool serves.
  struct Redirection {
    plait_stream *stream;  // retained; NULL: the default stream
    Pool *pool;
  };

  struct Device {
    DLDevice id;
    uint32_t process;  // `forks.number` of the process that it belongs to
    ProcessLock lock;  // of all below but `slow`
    Caches common;
    Pool *pools = nullptr;
    std::vector<Redirection> redirections;
    std::atomic<size_t> n_redirections{0};
    Segment *segments = nullptr;
    Event *first = nullptr, **last = &first;  // the queue of events, oldest first
    Event *spare_events = nullptr;
    Block *deferred = nullptr;  // freed while work of their streams was recorded
    Block *spare_blocks = nullptr;
    plait_memory_counters all{}, small{}, large{};
    uint64_t retries = 0, failures = 0, waits = 0;
    std::string refusal;  // what the device said when it gave no memory
    std::mutex slow;  // taken in turn by those who poll events, wait or give memory back
  };
  using Lock = std::lock_guard<ProcessLock>;

  struct Request {
    plait_stream *stream;
    Pool *pool;
    uint64_t nbytes, size;  // as asked for, and rounded
  };

  static uint64_t number_of(const plait_stream *s) {
    return s ? uint64_t(reinterpret_cast<uintptr_t>(s->native)) : 0;
  }
  static uint64_t rounded(uint64_t nbytes, uint64_t unit) {
    return (nbytes + unit - 1) / unit * unit;
  }
  static uint32_t this_process() { return forks.number.load(std::memory_order_relaxed); }

  // What the process has of a device; nullptr for a number that is too large. A child begins
  // anew: the driver's memory stayed with its parent.
  Device *at(DLDevice d) {
    if (d.device_id < 0 || d.device_id >= kMostDevices) return nullptr;
    std::atomic<Device *> &slot = devices_[d.device_id];
    Device *now = slot.load(std::memory_order_acquire);
    if (now && now->process == this_process()) return now;
    auto fresh = std::make_unique<Device>();
    fresh->id = d;
    fresh->process = this_process();
    return slot.compare_exchange_strong(now, fresh.get()) ? fresh.release() : now;
  }
  bool is_of_parent(const Device &on) const { return on.process != this_process(); }

  // ---- counters; the lock of the device is held ----------------------------------------------

  static void raise(plait_counter &c, uint64_t n) {
    c.added += n;
    c.current += n;
    c.peak = std::max(c.peak, c.current);
  }
  static void lower(plait_counter &c, uint64_t n) { c.current -= n; }
  // Changes the counters of all segments, and those of the kind of this one.
  template <class F>
  static void count(const Segment *s, F change) {
    change(s->device->all);
    change(s->is_small ? s->device->small : s->device->large);
  }
  static void reset_peaks(plait_memory_counters &m) {
    for (plait_counter *c :
         {&m.blocks, &m.block_bytes, &m.request_bytes, &m.active, &m.active_bytes, &m.split,
          &m.split_bytes, &m.segments, &m.segment_bytes})
      c->peak = c->current;
  }

  // ---- blocks within a segment; the lock of the device is held -------------------------------

  static Cache &cache_of(Device &on, const Request &r) {
    return (r.pool ? r.pool->caches : on.common)[number_of(r.stream)];
  }
  static FreeBlocks &free_blocks(const Segment *s) {
    return s->is_small ? s->cache->small : s->cache->large;
  }
  // Puts a block among the free ones of its segment's kind, and takes it from there.
  static void put(Block *b) {
    if (b->before || b->after)
      count(b->segment,
            [b](plait_memory_counters &m) { raise(m.split, 1), raise(m.split_bytes, b->nbytes); });
    free_blocks(b->segment).insert(std::move(b->node));
  }
  static void take_out(Block *b) {
    b->node = free_blocks(b->segment).extract(b);
    if (b->before || b->after)
      count(b->segment,
            [b](plait_memory_counters &m) { lower(m.split, 1), lower(m.split_bytes, b->nbytes); });
  }

  // A new block object, with a node of its own, so that freeing a block requires no memory; or
  // nullptr.
  static Block *block_object(Device &on) noexcept try {
    if (Block *b = on.spare_blocks) {
      on.spare_blocks = b->next;
      return b;
    }
    auto fresh = std::make_unique<Block>();
    FreeBlocks single;
    single.insert(fresh.get());
    fresh->node = single.extract(single.begin());
    return fresh.release();
  } catch (const std::bad_alloc &) {
    return nullptr;
  }
  // Sets a block object up for the bytes of a segment.
  static void place(Block *b, Segment *s, char *data, uint64_t nbytes) {
    b->segment = s;
    b->data = data;
    b->nbytes = nbytes;
    b->requested = 0;
    b->state = Block::available;
    b->before = b->after = nullptr;
    b->has_lost_use = false;
    b->pending = 0;
  }
  static void set_aside(Device &on, Block *b) {
    b->next = on.spare_blocks;
    on.spare_blocks = b;
  }

  // Cuts what the request does not need off a block.
  void split(Device &on, Block *b, uint64_t size) {
    const uint64_t rest = b->nbytes - size;
    if (!has_cache_ || (b->segment->is_small ? rest < kUnit : rest <= kSmall)) return;
    Block *r = block_object(on);
    if (!r) return;  // the block stays whole
    place(r, b->segment, b->data + size, rest);
    r->before = b;
    r->after = b->after;
    if (r->after) r->after->before = r;
    b->after = r;
    b->nbytes = size;
    put(r);
  }

  // Marks a block, which is not among the free ones, as live.
  static Block *begin(Block *b, uint64_t requested) {
    b->state = Block::live;
    b->requested = requested;
    count(b->segment, [b](plait_memory_counters &m) {
      raise(m.blocks, 1), raise(m.block_bytes, b->nbytes), raise(m.request_bytes, b->requested);
      raise(m.active, 1), raise(m.active_bytes, b->nbytes);
    });
    return b;
  }

  // The smallest free block that fits, or nullptr; of segments for small requests, or of others.
  Block *take(Device &on, const Request &r, bool is_small) {
    Cache &cache = cache_of(on, r);
    FreeBlocks &list = is_small ? cache.small : cache.large;
    const auto best = list.lower_bound(r.size);
    if (best == list.end()) return nullptr;
    Block *b = *best;
    take_out(b);
    split(on, b, r.size);
    return begin(b, r.nbytes);
  }

  Block *take(Device &on, const Request &r) {
    const Lock lock(on.lock);
    return take(on, r, r.size <= kSmall);
  }

  // Joins a block with the free one behind it; both are outside of the free blocks.
  static void join(Device &on, Block *b, Block *behind) {
    b->nbytes += behind->nbytes;
    b->after = behind->after;
    if (b->after) b->after->before = b;
    set_aside(on, behind);
  }

  // Puts a block among the free ones, together with its free neighbours.
  static void give_back(Device &on, Block *b) {
    count(b->segment,
          [b](plait_memory_counters &m) { lower(m.active, 1), lower(m.active_bytes, b->nbytes); });
    b->state = Block::available;
    b->requested = 0;
    if (Block *behind = b->after; behind && behind->state == Block::available) {
      take_out(behind);
      join(on, b, behind);
    }
    if (Block *front = b->before; front && front->state == Block::available) {
      take_out(front);
      join(on, front, b);
      b = front;
    }
    put(b);
  }

  // ---- calls of the device -------------------------------------------------------------------

  // Calls a function of the device whose error has no reader; the thread's own error stays.
  template <class F>
  bool quietly(F call) const {
    plait_thread *thread = runtime_->thread();
    plait_error *before = thread->error;
    thread->error = nullptr;
    const plait_status s = call(thread);
    runtime_->clear(thread);
    thread->error = before;
    return s >= 0;
  }

  // Calls a function, without exceptions, while the host language has its lock.
  template <class F>
  void unlocked(F call) const {
    const auto run = [](void *arg) { (*static_cast<F *>(arg))(); };
    const auto *host = PLAIT_ROLE(plait_host, runtime_->role("host", 0));
    if (host)
      host->unlocked(host->ctx, run, &call);
    else
      run(&call);
  }

  bool is_recorded(const Device &on, plait_stream *s) const {
    return PLAIT_HAS(plait_device, device_, capture_query) &&
           device_->capture_query(device_->ctx, on.id, s);
  }
  // Whether work of a stream with a pool is recorded, so that the driver frees nothing and no event
  // is waited for.
  bool records(Device &on) const {
    if (!on.n_redirections.load(std::memory_order_acquire)) return false;
    for (size_t i = 0;; i++) {
      plait_stream *s = nullptr;
      {
        const Lock lock(on.lock);
        if (i >= on.redirections.size()) return false;
        s = on.redirections[i].stream;
        if (s) plait_retain(s);
      }
      const bool is = is_recorded(on, s);
      plait_release(s);
      if (is) return true;
    }
  }

  // The pool that serves a stream, or nullptr. A stream that joined a recording has the pool of the
  // stream that began it.
  Pool *pool_of(Device &on, plait_stream *s) const {
    if (!on.n_redirections.load(std::memory_order_acquire)) return nullptr;
    Pool *latest = nullptr;
    {
      const Lock lock(on.lock);
      for (const Redirection &r : on.redirections) {
        if (number_of(r.stream) == number_of(s)) return r.pool;
        latest = r.pool;
      }
    }
    return latest && is_recorded(on, s) ? latest : nullptr;
  }

  // ---- segments ------------------------------------------------------------------------------

  uint64_t segment_size(uint64_t size) const {
    if (!has_cache_) return size;
    if (size <= kSmall) return kSmallSegment;
    return size <= kMedium ? kMediumSegment : rounded(size, kSmallSegment);
  }

  // Takes memory of the driver; PLAIT_MEMORY_ERROR if there is none.
  plait_status ask(Device &on, uint64_t nbytes, char **data) const {
    plait_thread *thread = runtime_->thread();
    const plait_error *before = thread->error;
    void *memory = nullptr;
    plait_status s = device_->memory_alloc(device_->ctx, thread, on.id, nbytes, &memory);
    if (s == PLAIT_OK && !memory) s = PLAIT_MEMORY_ERROR;
    if (s == PLAIT_MEMORY_ERROR) {
      const bool is_told = thread->error && thread->error != before;
      std::string text = is_told ? thread->error->message : "";
      if (thread->error != before) runtime_->clear(thread);
      const Lock lock(on.lock);
      on.refusal.swap(text);
    }
    *data = static_cast<char *>(memory);
    return s;
  }

  // Takes a segment for a request; `out` stays NULL if there is no memory.
  plait_status grow(Device &on, const Request &r, Block **out) {
    auto s = std::make_unique<Segment>();
    Block *b = nullptr;
    {
      const Lock lock(on.lock);
      s->cache = &cache_of(on, r);  // references into the map stay valid
      b = block_object(on);
    }
    if (!b) return PLAIT_MEMORY_ERROR;
    s->device = &on;
    s->pool = r.pool;
    s->stream = number_of(r.stream);
    s->is_small = r.size <= kSmall;
    s->nbytes = segment_size(r.size);
    plait_status status = ask(on, s->nbytes, &s->data);
    const uint64_t least = rounded(r.size, kSmallSegment);
    if (status == PLAIT_MEMORY_ERROR && least < s->nbytes)
      status = ask(on, s->nbytes = least, &s->data);
    const Lock lock(on.lock);
    if (status != PLAIT_OK) return set_aside(on, b), status;
    place(b, s.get(), s->data, s->nbytes);
    s->first = b;
    s->next = on.segments;
    if (s->next) s->next->previous = s.get();
    on.segments = s.release();
    count(b->segment, [b](plait_memory_counters &m) {
      raise(m.segments, 1), raise(m.segment_bytes, b->nbytes);
    });
    if (r.pool) r.pool->segments++;
    split(on, b, r.size);
    *out = begin(b, r.nbytes);
    return PLAIT_OK;
  }

  // Whether a segment is one free block that the driver may have back.
  static bool is_unused(const Segment *s) {
    return s->first->state == Block::available && !s->first->after &&
           (!s->pool || !s->pool->is_alive);
  }
  // Takes an unused segment out of the lists; the lock is held.
  static void unlink(Device &on, Segment *s) {
    take_out(s->first);
    set_aside(on, s->first);
    (s->previous ? s->previous->next : on.segments) = s->next;
    if (s->next) s->next->previous = s->previous;
    count(s, [s](plait_memory_counters &m) {
      lower(m.segments, 1), lower(m.segment_bytes, s->nbytes);
    });
    if (s->pool) s->pool->segments--;
  }
  void end(Device &on, Segment *s) const {
    device_->memory_free(device_->ctx, on.id, s->data, s->nbytes);
    delete s;
  }
  // Gives unused segments back to the driver.
  void give_up_unused(Device &on) const {
    Segment *unused = nullptr;
    {
      const Lock lock(on.lock);
      for (Segment *s = on.segments, *next; s; s = next) {
        next = s->next;
        if (!is_unused(s)) continue;
        unlink(on, s);
        s->next = unused;
        unused = s;
      }
    }
    for (Segment *s = unused, *next; s; s = next) {
      next = s->next;
      end(on, s);
    }
  }

  // ---- blocks that other streams have used ---------------------------------------------------

  // An event behind the work in a stream, or nullptr.
  Event *event_behind(Device &on, plait_stream *s) const {
    Event *e = nullptr;
    {
      const Lock lock(on.lock);
      if ((e = on.spare_events)) on.spare_events = e->next;
    }
    if (!e) {
      e = static_cast<Event *>(std::calloc(1, sizeof(Event)));
      if (!e) return nullptr;
      e->handle.o.refs = 1;
      e->handle.device = on.id;
      if (!quietly(
              [&](plait_thread *t) { return device_->event_new(device_->ctx, t, &e->handle); }))
        return std::free(e), nullptr;
    }
    if (quietly(
            [&](plait_thread *t) { return device_->event_record(device_->ctx, t, &e->handle, s); }))
      return e;
    const Lock lock(on.lock);
    e->next = on.spare_events;
    on.spare_events = e;
    return nullptr;
  }

  // Lets a freed block wait for the streams that have used it. Where no event can be had, the host
  // waits here.
  void let_wait(Device &on, Block *b, std::vector<plait_stream *> &uses) const {
    if (b->has_lost_use)
      unlocked([&] {
        quietly([&](plait_thread *t) { return device_->synchronize(device_->ctx, t, on.id); });
      });
    for (plait_stream *s : uses) {
      Event *e = event_behind(on, s);
      if (e) {
        e->stream = number_of(s);
        e->block = b;
        e->next = nullptr;
        const Lock lock(on.lock);
        b->pending++;
        *on.last = e;
        on.last = &e->next;
      } else {
        unlocked([&] {
          quietly([&](plait_thread *t) {
            return device_->stream_synchronize(device_->ctx, t, on.id, s);
          });
        });
      }
      plait_release(s);
    }
    uses.clear();
    const Lock lock(on.lock);
    b->has_lost_use = false;
    if (--b->pending == 0) give_back(on, b);  // one is held while the events are recorded
  }

  bool is_any_recorded(const Device &on, const std::vector<plait_stream *> &streams) const {
    return std::any_of(streams.begin(), streams.end(),
                       [&](plait_stream *s) { return is_recorded(on, s); });
  }

  // Frees blocks whose streams were recorded when they were freed.
  void settle_deferred(Device &on) const {
    Block *b = nullptr;
    {
      const Lock lock(on.lock);
      std::swap(b, on.deferred);
    }
    while (b) {
      Block *next = b->next;
      settle(on, b);
      b = next;
    }
  }
  // A freed block waits for its streams, or until they can record events.
  void settle(Device &on, Block *b) const {
    if (is_any_recorded(on, b->uses)) {
      const Lock lock(on.lock);
      b->next = on.deferred;
      on.deferred = b;
      return;
    }
    std::vector<plait_stream *> uses;
    uses.swap(b->uses);
    b->pending = 1;
    let_wait(on, b, uses);
  }

  bool is_reached(const Event *e, bool waits) const {
    int32_t done = 1;
    auto *handle = const_cast<plait_device_event *>(&e->handle);
    // an event whose query fails holds nothing up: the device reports the error elsewhere
    quietly([&](plait_thread *t) {
      return waits ? device_->event_wait(device_->ctx, t, handle)
                   : device_->event_query(device_->ctx, t, handle, &done);
    });
    return done;
  }

  // Takes back the blocks whose events are reached; `slow` is held.
  void collect(Device &on, bool waits) const {
    settle_deferred(on);
    Event *e = nullptr, *rest = nullptr, **end = &rest;
    {
      const Lock lock(on.lock);
      std::swap(e, on.first);
      on.last = &on.first;
      on.waits += waits;
    }
    const Event *unreached = nullptr;  // later events of its stream are not reached either
    while (e) {
      Event *next = e->next;
      e->next = nullptr;
      if ((unreached && unreached->stream == e->stream) || !is_reached(e, waits)) {
        unreached = e;
        *end = e;
        end = &e->next;
      } else {
        const Lock lock(on.lock);
        if (--e->block->pending == 0) give_back(on, e->block);
        e->next = on.spare_events;
        on.spare_events = e;
      }
      e = next;
    }
    const Lock lock(on.lock);
    if (!rest) return;
    *end = on.first;  // those that came meanwhile
    if (!on.first) on.last = end;
    on.first = rest;
  }

  bool poll(Device &on) const {
    {
      const Lock lock(on.lock);
      if (!on.first && !on.deferred) return false;
    }
    const std::unique_lock<std::mutex> turn(on.slow, std::try_to_lock);
    if (!turn) return false;
    collect(on, false);
    if (!has_cache_) give_up_unused(on);
    return true;
  }

  // ---- the functions of the table ------------------------------------------------------------

  // What is done when the driver has no more memory: wait for what waits, give back what is unused.
  plait_status recover(Device &on, const Request &r, Block **out) noexcept try {
    const std::lock_guard<std::mutex> turn(on.slow);
    if (records(on)) return PLAIT_MEMORY_ERROR;
    {
      const Lock lock(on.lock);
      on.retries++;
    }
    collect(on, true);
    if ((*out = take(on, r))) return PLAIT_OK;
    give_up_unused(on);
    const plait_status s = grow(on, r, out);
    if (s != PLAIT_MEMORY_ERROR) return s;
    const Lock lock(on.lock);
    *out = take(on, r, r.size > kSmall);  // what is left in segments of the other kind
    return *out ? PLAIT_OK : s;
  } catch (const std::bad_alloc &) {
    return PLAIT_MEMORY_ERROR;
  }

  plait_status alloc(DLDevice d, uint64_t nbytes, plait_stream *stream, void **data, void **out) {
    Device *on = at(d);
    if (!on)
      return runtime_->raise(runtime_->thread(), PLAIT_VALUE_ERROR, device_->name,
                             "memory of more than %d devices is not supported", kMostDevices);
    if (is_misspelt_)
      return runtime_->raise(runtime_->thread(), PLAIT_VALUE_ERROR, nullptr,
                             "PLAIT_DEVICE_CACHE must be 0 or 1, got `%s`",
                             std::getenv("PLAIT_DEVICE_CACHE"));
    if (nbytes > uint64_t(INT64_MAX) / 2) return exhausted(*on, {stream, nullptr, nbytes, 0});
    const Request r{stream, pool_of(*on, stream), nbytes,
                    has_cache_ ? rounded(nbytes, kUnit) : nbytes};
    Block *b = take(*on, r);
    if (!b && poll(*on)) b = take(*on, r);
    plait_status s = b ? PLAIT_OK : grow(*on, r, &b);
    if (s == PLAIT_MEMORY_ERROR) unlocked([&] { s = recover(*on, r, &b); });
    if (s == PLAIT_MEMORY_ERROR) return exhausted(*on, r);
    if (s != PLAIT_OK) return s;
    *data = b->data;
    *out = b;
    return PLAIT_OK;
  }

  void free(Block *b) const {
    Device &on = *b->segment->device;
    if (is_of_parent(on)) return;
    Segment *alone = nullptr;
    {
      const Lock lock(on.lock);
      count(b->segment, [b](plait_memory_counters &m) {
        lower(m.blocks, 1), lower(m.block_bytes, b->nbytes), lower(m.request_bytes, b->requested);
      });
      b->state = Block::waiting;
      if (b->uses.empty() && !b->has_lost_use) {
        Segment *s = b->segment;
        give_back(on, b);
        if (has_cache_ || !is_unused(s)) return;
        unlink(on, s);
        alone = s;
      }
    }
    if (alone)
      end(on, alone);
    else
      settle(on, b);
  }

  void record_use(Block *b, plait_stream *stream) const {
    Device &on = *b->segment->device;
    if (is_of_parent(on) || number_of(stream) == b->segment->stream) return;
    const Lock lock(on.lock);
    for (const plait_stream *s : b->uses)
      if (number_of(s) == number_of(stream)) return;
    try {
      b->uses.push_back(stream);
      if (stream) plait_retain(stream);
    } catch (const std::bad_alloc &) {
      b->has_lost_use = true;
    }
  }

  void trim_device(Device &on) const {
    unlocked([&] {
      const std::lock_guard<std::mutex> turn(on.slow);
      if (records(on)) return;
      collect(on, true);
      give_up_unused(on);
    });
  }
  void trim() const {
    for (const auto &slot : devices_)
      if (Device *on = slot.load(std::memory_order_acquire); on && !is_of_parent(*on))
        trim_device(*on);
  }

  static uint64_t largest_free(const Caches &caches) {
    uint64_t largest = 0;
    for (const auto &each : caches)
      for (const FreeBlocks *list : {&each.second.small, &each.second.large})
        if (!list->empty()) largest = std::max(largest, (*list->rbegin())->nbytes);
    return largest;
  }
  static void stats(Device &on, plait_alloc_stats *out) {
    plait_alloc_stats all{};
    const Lock lock(on.lock);
    all.size = std::min<uint64_t>(out->size, sizeof all);
    all.live_bytes = on.all.block_bytes.current;
    all.live_blocks = on.all.blocks.current;
    all.cached_bytes = on.all.segment_bytes.current - on.all.block_bytes.current;
    all.peak_bytes = on.all.block_bytes.peak;
    all.allocations = on.all.blocks.added;
    all.system_allocations = on.all.segments.added;
    all.retries = on.retries;
    all.failures = on.failures;
    all.waits = on.waits;
    all.all = on.all;
    all.small = on.small;
    all.large = on.large;
    all.largest_cached = largest_free(on.common);
    for (const Pool *p = on.pools; p; p = p->next)
      all.largest_cached = std::max(all.largest_cached, largest_free(p->caches));
    std::memcpy(out, &all, all.size);
  }

  static uint64_t snapshot(Device &on, plait_memory_block *list, uint64_t room, uint64_t size) {
    const Lock lock(on.lock);
    uint64_t n = 0;
    for (const Segment *s = on.segments; s; s = s->next)
      for (const Block *b = s->first; b; b = b->after, n++) {
        if (n >= room) continue;
        uint64_t flags = s->pool ? PLAIT_BLOCK_PRIVATE : 0;
        if (b->state == Block::live) flags |= PLAIT_BLOCK_LIVE;
        if (b->state == Block::waiting) flags |= PLAIT_BLOCK_WAITING;
        const plait_memory_block block{b->data, b->nbytes, b->requested, s->data, s->stream, flags};
        std::memcpy(reinterpret_cast<char *>(list) + n * size, &block,
                    std::min<uint64_t>(size, sizeof block));
      }
    return n;
  }

  // ---- private pools -------------------------------------------------------------------------

  static Pool *pool_new(Device &on) {
    const Lock lock(on.lock);
    for (Pool *p = on.pools; p; p = p->next)
      if (!p->is_alive && !p->segments) return p->is_alive = true, p;
    auto fresh = std::make_unique<Pool>();
    fresh->device = &on;
    fresh->is_alive = true;
    fresh->next = on.pools;
    return on.pools = fresh.release();
  }
  void pool_use(Device &on, plait_stream *stream, Pool *pool) const {
    plait_stream *before = nullptr;
    {
      const Lock lock(on.lock);
      auto &list = on.redirections;
      const auto same = [stream](const Redirection &r) {
        return number_of(r.stream) == number_of(stream);
      };
      const auto at = std::find_if(list.begin(), list.end(), same);
      if (at != list.end()) {
        before = at->stream;
        list.erase(at);
      }
      if (pool) {
        list.push_back({stream, pool});
        if (stream) plait_retain(stream);
      }
      on.n_redirections.store(list.size(), std::memory_order_release);
    }
    plait_release(before);
  }
  void pool_free(Pool *pool) const {
    Device &on = *pool->device;
    if (is_of_parent(on)) return;
    std::vector<plait_stream *> streams;
    {
      const Lock lock(on.lock);
      pool->is_alive = false;
      auto &list = on.redirections;
      const auto mine = [pool](const Redirection &r) { return r.pool == pool; };
      for (const Redirection &r : list)
        if (mine(r)) streams.push_back(r.stream);
      list.erase(std::remove_if(list.begin(), list.end(), mine), list.end());
      on.n_redirections.store(list.size(), std::memory_order_release);
    }
    for (plait_stream *s : streams) plait_release(s);
  }

  // ---- the error ------------------------------------------------------------------------------

  static std::string text_of(uint64_t nbytes) {
    static const char *const units[] = {"bytes", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
    double size = double(nbytes);
    int unit = 0;
    for (; size >= 1024 && unit < 6; unit++) size /= 1024;
    char out[32];
    std::snprintf(out, sizeof out, unit ? "%.2f %s" : "%.0f %s", size, units[unit]);
    return out;
  }

  // Who has the memory of a device.
  struct Census {
    uint64_t own = 0, others = 0, waiting = 0;  // cached: of the stream, of others, behind events
    uint64_t pools = 0, live_in_pools = 0;
    uint64_t live = 0, blocks = 0, largest_free = 0;
    uint64_t largest[kListed + 1] = {};  // live blocks, and room for one more

    void add(const Segment *s, const Block *b, uint64_t stream) {
      if (s->pool) pools += b->nbytes;
      if (b->state == Block::live) {
        live += b->nbytes;
        blocks++;
        if (s->pool) live_in_pools += b->nbytes;
        largest[kListed] = b->nbytes;
        std::sort(largest, largest + kListed + 1, std::greater<uint64_t>());
      } else if (b->state == Block::waiting) {
        waiting += b->nbytes;
      } else {
        if (!s->pool) (s->stream == stream ? own : others) += b->nbytes;
        if (!s->pool && s->stream == stream) largest_free = std::max(largest_free, b->nbytes);
      }
    }
  };

  plait_status exhausted(Device &on, const Request &r) const {
    Census c;
    {
      const Lock lock(on.lock);
      on.failures++;
      for (const Segment *s = on.segments; s; s = s->next)
        for (const Block *b = s->first; b; b = b->after) c.add(s, b, number_of(r.stream));
    }
    const std::string device = std::string(device_->name) + ":" + std::to_string(on.id.device_id);
    // programs look for the first words: "CUDA out of memory. Tried to allocate"
    std::string text = device_->name;
    for (char &c : text)
      if (c >= 'a' && c <= 'z') c = char(c - 'a' + 'A');
    text += " out of memory. Tried to allocate " + text_of(r.nbytes) + " on " + device;
    uint64_t free_bytes = 0, total = 0;
    if (quietly([&](plait_thread *t) {
          return device_->memory_info(device_->ctx, t, on.id, &free_bytes, &total);
        }))
      text += ", which has " + text_of(free_bytes) + " of " + text_of(total) + " free";
    text += "; " + text_of(c.live) + " are live in " + std::to_string(c.blocks) + " blocks";
    for (int i = 0; i < kListed && c.largest[i]; i++)
      text += (i ? ", " : " (the largest: ") + text_of(c.largest[i]);
    if (c.largest[0]) text += ")";
    text += ", " + text_of(c.own) + " are cached for this stream, of which the largest free block" +
            " has " + text_of(c.largest_free);
    if (c.others) text += "; " + text_of(c.others) + " are cached for other streams";
    if (c.waiting) text += "; " + text_of(c.waiting) + " wait for other streams";
    if (c.pools)
      text += "; private pools, such as those of graphs, have " + text_of(c.pools) + ", of which " +
              text_of(c.live_in_pools) + " are live";
    {
      const Lock lock(on.lock);
      if (!on.refusal.empty()) text += "; " + on.refusal;
    }
    return runtime_->raise(runtime_->thread(), PLAIT_MEMORY_ERROR, nullptr, "%s", text.c_str());
  }

  // ---- the table -----------------------------------------------------------------------------

  static CachingAllocator *self(void *ctx) { return static_cast<CachingAllocator *>(ctx); }
  // Calls a function for a device that has been used, in this process.
  template <class F>
  static void with(void *ctx, DLDevice d, F call) noexcept {
    try {
      if (Device *on = self(ctx)->at(d)) call(*on);
    } catch (const std::bad_alloc &) {  // the function does nothing
    }
  }

  void fill_table() {
    plait_allocator &t = table_;
    t.h = PLAIT_HEADER(plait_allocator);
    t.name = device_->name;
    t.ctx = this;
    t.alloc = [](void *ctx, DLDevice d, uint64_t nbytes, plait_stream *s, void **data,
                 void **block) -> plait_status {
      try {
        return self(ctx)->alloc(d, nbytes, s, data, block);
      } catch (const std::bad_alloc &) {
        return PLAIT_MEMORY_ERROR;
      }
    };
    t.free = [](void *ctx, void *, uint64_t, void *block) {
      self(ctx)->free(static_cast<Block *>(block));
    };
    t.trim = [](void *ctx) { self(ctx)->trim(); };
    t.stats = [](void *ctx, DLDevice d, plait_alloc_stats *s) {
      with(ctx, d, [s](Device &on) { stats(on, s); });
    };
    if (device_->event_new)
      t.record_use = [](void *ctx, void *, void *block, plait_stream *s) {
        self(ctx)->record_use(static_cast<Block *>(block), s);
      };
    t.reset_peak = [](void *ctx, DLDevice d) {
      with(ctx, d, [](Device &on) {
        const Lock lock(on.lock);
        for (plait_memory_counters *each : {&on.all, &on.small, &on.large}) reset_peaks(*each);
      });
    };
    t.trim_device = [](void *ctx, DLDevice d) {
      with(ctx, d, [ctx](Device &on) { self(ctx)->trim_device(on); });
    };
    fill_pools(t);
  }
  static void fill_pools(plait_allocator &t) {
    t.pool_new = [](void *ctx, DLDevice d) -> void * {
      Pool *pool = nullptr;
      with(ctx, d, [&](Device &on) { pool = pool_new(on); });
      return pool;
    };
    t.pool_use = [](void *ctx, DLDevice d, plait_stream *s, void *pool) {
      with(ctx, d, [&](Device &on) { self(ctx)->pool_use(on, s, static_cast<Pool *>(pool)); });
    };
    t.pool_free = [](void *ctx, void *pool) { self(ctx)->pool_free(static_cast<Pool *>(pool)); };
    t.snapshot = [](void *ctx, DLDevice d, plait_memory_block *list, uint64_t room,
                    uint64_t size) -> uint64_t {
      uint64_t n = 0;
      with(ctx, d, [&](Device &on) { n = snapshot(on, list, room, size); });
      return n;
    };
  }

  const plait_runtime *runtime_;
  const plait_device *device_;
  bool has_cache_ = true, is_misspelt_ = false;  // the environment variable
  plait_allocator table_{};
  std::atomic<Device *> devices_[kMostDevices] = {};
};

// Pinned memory of the host in sizes of powers of two, for plait_device::pinned_alloc and
// plait_device::pinned_free. The runtime gives it back when copies from and to it are done, so that
// no events are required. Never destroyed, like the other one.
class __attribute__((visibility("hidden"))) PinnedCache {
 public:
  using Take = plait_status (*)(plait_thread *, uint64_t nbytes, void **data);
  using Give = void (*)(void *data, uint64_t nbytes);

  PinnedCache(Take take, Give give) : take_(take), give_(give) {}
  PinnedCache(const PinnedCache &) = delete;
  PinnedCache &operator=(const PinnedCache &) = delete;

  plait_status alloc(plait_thread *thread, uint64_t nbytes, void **data) {
    const int c = class_of(nbytes);
    if (c < 0) return PLAIT_MEMORY_ERROR;
    {
      const std::lock_guard<ProcessLock> lock(lock_);
      if (Free *first = free_[c]) {
        free_[c] = first->next;
        *data = first;
        return PLAIT_OK;
      }
    }
    const plait_status s = take_(thread, uint64_t(1) << c, data);
    if (s != PLAIT_MEMORY_ERROR || !trim()) return s;
    thread->runtime->clear(thread);
    return take_(thread, uint64_t(1) << c, data);
  }
  void free(void *data, uint64_t nbytes) {
    const int c = class_of(nbytes);
    const std::lock_guard<ProcessLock> lock(lock_);
    free_[c] = new (data) Free{free_[c]};
  }
  // Gives unused memory back to the driver; whether there was some.
  bool trim() {
    bool any = false;
    for (int c = kSmallest; c < kClasses; c++) {
      Free *list = nullptr;
      {
        const std::lock_guard<ProcessLock> lock(lock_);
        std::swap(list, free_[c]);
      }
      for (Free *next; list; list = next) {
        next = list->next;
        give_(list, uint64_t(1) << c);
        any = true;
      }
    }
    return any;
  }

 private:
  struct Free {  // at the begin of memory that nobody has
    Free *next;
  };
  static constexpr int kSmallest = 9, kClasses = 48;

  static int class_of(uint64_t nbytes) {  // or -1
    for (int c = kSmallest; c < kClasses; c++)
      if (nbytes <= uint64_t(1) << c) return c;
    return -1;
  }

  const Take take_;
  const Give give_;
  ProcessLock lock_;
  Free *free_[kClasses] = {};
};

}  // namespace plait
#endif  // PLAIT_CACHING_ALLOCATOR_HPP
