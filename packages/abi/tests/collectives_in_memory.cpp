// Groups of many members over a transport within this process, each a thread: what collectives
// give, how many letters they take, and what errors say. Arguments: libplait_abi, the number of
// members. Prints the most letters with calls that a member wrote in one collective, then "done".
#include <dlfcn.h>

#include <plait/collectives/provider.hpp>

#include <cstdio>
#include <cstdlib>
#include <deque>
#include <map>
#include <set>
#include <thread>

namespace {

using namespace plait::collectives;

const plait_runtime *runtime;

[[noreturn]] void fail(const std::string &subject) {
  const plait_error *e = runtime->thread()->error;
  std::printf("%s: %s\n", subject.c_str(), e ? e->message : "");
  std::fflush(stdout);
  std::_Exit(1);
}

// What lies between the members.
struct Fabric {
  struct Box {
    std::deque<std::pair<uint32_t, std::vector<char>>> letters;
    std::deque<std::pair<Transfer *, bool>> ended;
    std::condition_variable changed;
    std::deque<uint32_t> losses;  // that the transport is to report
    bool woken = false, locked = false, sends_slowly = false;
    uint64_t turns = 0;  // of its thread
    uint64_t calls = 0;  // letters with calls that it wrote
  };
  struct Way {
    std::deque<Transfer *> sends, receives;
  };
  // letters of one member to another that do not arrive yet
  void hold(uint32_t from, uint32_t to) {
    const std::lock_guard<std::mutex> lock(mutex);
    held[{from, to}];
  }
  void let_go(uint32_t from, uint32_t to) {
    const std::lock_guard<std::mutex> lock(mutex);
    for (auto &letter : held[{from, to}]) boxes[to].letters.emplace_back(from, std::move(letter));
    held.erase({from, to});
    boxes[to].changed.notify_all();
  }
  // waits until a letter of this kind was written
  void await(uint32_t from, uint32_t to, uint32_t kind) {
    std::unique_lock<std::mutex> lock(mutex);
    wrote.wait(lock, [&] { return written.count({from, to, kind}) > 0; });
  }
  std::mutex mutex;
  std::condition_variable wrote;
  std::set<std::array<uint32_t, 3>> written;  // sender, receiver, kind
  std::map<std::array<uint32_t, 2>, std::deque<std::vector<char>>> held;
  std::deque<Box> boxes;
  std::map<std::array<uint32_t, 3>, Way> ways;  // sender, receiver, channel
  // The thread of this member does not return from the transport.
  void lock_up(uint32_t rank) {
    const std::lock_guard<std::mutex> lock(mutex);
    boxes[rank].locked = true;
  }
  // Lets the locked thread of this member return; waits until it has called the transport again.
  void unlock(uint32_t rank) {
    std::unique_lock<std::mutex> lock(mutex);
    boxes[rank].locked = false;
    boxes[rank].changed.notify_all();
    wrote.wait(lock, [&, before = boxes[rank].turns] { return boxes[rank].turns > before; });
  }
  // The transport of this member reports another one as lost, behind the letters that have come.
  void lose(uint32_t rank, uint32_t lost) {
    const std::lock_guard<std::mutex> lock(mutex);
    boxes[rank].losses.push_back(lost);
    boxes[rank].woken = true;
    boxes[rank].changed.notify_all();
  }
  // What this member posts stays in its process for some time.
  void send_slowly(uint32_t rank, bool slowly) {
    const std::lock_guard<std::mutex> lock(mutex);
    boxes[rank].sends_slowly = slowly;
  }
};

class InMemory : public Transport {
 public:
  InMemory(Fabric &f, uint32_t rank) : f_(f), rank_(rank) {}
  uint32_t rank() const override { return rank_; }
  uint32_t size() const override { return uint32_t(f_.boxes.size()); }
  void post(uint32_t peer, const void *data, size_t bytes) override {
    if (bytes > most_letter) fail("a letter is too long");
    const auto *from = static_cast<const char *>(data);
    uint32_t kind = 0;
    std::memcpy(&kind, from, sizeof kind);
    const std::lock_guard<std::mutex> lock(f_.mutex);
    if (kind == LETTER_CALL || kind == LETTER_CALLS) own().calls++;
    f_.written.insert({rank_, peer, kind});
    f_.wrote.notify_all();
    const auto held = f_.held.find({rank_, peer});
    if (held != f_.held.end()) return void(held->second.emplace_back(from, from + bytes));
    f_.boxes[peer].letters.emplace_back(rank_, std::vector<char>(from, from + bytes));
    f_.boxes[peer].changed.notify_all();
  }
  void send(uint32_t peer, uint32_t channel, Transfer *t) override {
    const std::lock_guard<std::mutex> lock(f_.mutex);
    Fabric::Way &way = f_.ways[{rank_, peer, channel}];
    way.sends.push_back(t);
    meet(way, rank_, peer);
  }
  void receive(uint32_t peer, uint32_t channel, Transfer *t) override {
    const std::lock_guard<std::mutex> lock(f_.mutex);
    Fabric::Way &way = f_.ways[{peer, rank_, channel}];
    way.receives.push_back(t);
    meet(way, peer, rank_);
  }
  void cancel(Transfer *t) override {
    const std::lock_guard<std::mutex> lock(f_.mutex);
    for (auto &[key, way] : f_.ways)
      for (auto *list : {&way.sends, &way.receives}) {
        const auto it = std::find(list->begin(), list->end(), t);
        if (it == list->end()) continue;
        list->erase(it);
        own().ended.emplace_back(t, false);
      }
  }
  bool has_sent() const override {
    const std::lock_guard<std::mutex> lock(f_.mutex);
    return !own().sends_slowly;
  }
  bool progress(Listener &listener) override {
    std::unique_lock<std::mutex> lock(f_.mutex);
    own().turns++;
    f_.wrote.notify_all();
    own().changed.wait(lock, [&] { return !own().locked; });
    bool moved = false;
    for (; !own().letters.empty(); moved = true) {
      const auto letter = std::move(own().letters.front());
      own().letters.pop_front();
      lock.unlock();
      listener.letter(letter.first, letter.second.data(), letter.second.size());
      lock.lock();
    }
    for (; !own().ended.empty(); moved = true) {
      const auto ended = own().ended.front();
      own().ended.pop_front();
      lock.unlock();
      ended.first->ended(ended.second);
      lock.lock();
    }
    for (const uint32_t p : std::exchange(own().losses, {})) {
      lock.unlock();
      listener.lost(p, "its connection ended");
      lock.lock();
      moved = true;
    }
    return moved;
  }
  void wait(double seconds, bool) override {
    std::unique_lock<std::mutex> lock(f_.mutex);
    own().changed.wait_for(lock, std::chrono::duration<double>(seconds), [&] {
      return own().woken || !own().letters.empty() || !own().ended.empty();
    });
    own().woken = false;
  }
  void wake() override {
    const std::lock_guard<std::mutex> lock(f_.mutex);
    own().woken = true;
    own().changed.notify_all();
  }
  const char *call() const override { return "in_memory_progress"; }
  void give_up(uint32_t) override {}
  void close(double) override {}

 private:
  Fabric::Box &own() const { return f_.boxes[rank_]; }
  void meet(Fabric::Way &way, uint32_t from, uint32_t to) {
    if (way.sends.empty() || way.receives.empty()) return;
    Transfer *s = way.sends.front(), *r = way.receives.front();
    way.sends.pop_front();
    way.receives.pop_front();
    if (s->bytes != r->bytes) fail("a transfer has other bytes than its receiver expects");
    std::memcpy(r->data, s->data, s->bytes);
    for (const auto &[rank, t] : {std::pair(from, s), std::pair(to, r)}) {
      f_.boxes[rank].ended.emplace_back(t, true);
      f_.boxes[rank].changed.notify_all();
    }
  }
  Fabric &f_;
  const uint32_t rank_;
};

class Worlds : public Provider {
 public:
  explicit Worlds(uint32_t size) : Provider("in_memory") {
    for (uint32_t r = 0; r < size; r++) fabric.boxes.emplace_back();
    for (uint32_t r = 0; r < size; r++)
      all.push_back(World::start(std::make_unique<InMemory>(fabric, r), runtime));
  }
  plait_status find(plait_thread *, const char *where, uint32_t rank, uint32_t, double,
                    Place &place) override {
    place.world = all[rank];
    place.name = where;
    return PLAIT_OK;
  }
  uint64_t calls(uint32_t rank) {
    const std::lock_guard<std::mutex> lock(fabric.mutex);
    return fabric.boxes[rank].calls;
  }
  Fabric fabric;
  std::vector<std::shared_ptr<World>> all;
  std::atomic<uint32_t> waited{0};  // members whose waiting for another one has ended
  std::atomic<int> patience{1};     // seconds that they wait
};

struct Numbers {
  plait::Tensor t;
  explicit Numbers(int64_t n, int64_t first = 0) {
    plait::check(runtime->tensor_new(runtime->thread(), plait::dtype::int64, 1, &n, nullptr,
                                     {kDLCPU, 0}, t.out()));
    for (int64_t i = 0; i < n; i++) t.data<int64_t>()[i] = first + i;
  }
  void expect(int64_t first, int64_t step, const std::string &subject) const {
    for (int64_t i = 0; i < t.numel(); i++)
      if (t.data<int64_t>()[i] != first + step * i) fail(subject);
  }
};

class Caller {
 public:
  Caller(Worlds &worlds, uint32_t rank, uint32_t size, const char *name = "g")
      : worlds_(worlds), rank_(rank), size_(size) {
    need(worlds.table.open(&worlds, thread_, name, rank, size, 60, &group_), "open");
  }
  ~Caller() { plait_release(group_); }

  // the most letters in one collective
  uint64_t values() {
    const int64_t n = size_, ranks = n * (n - 1) / 2;
    for (const int64_t count : {0, 1, 100, 3000, 200'000, 300'000}) {
      const std::string text = " of " + std::to_string(count);
      Numbers x(count, rank_), y(count), z(count, rank_);
      run(PLAIT_ALL_REDUCE, {&x}, {&y});
      y.expect(ranks, n, "all_reduce" + text);
      run(PLAIT_REDUCE, {&z}, rank_ == 1 ? Some{&z} : Some{}, 1);
      z.expect(rank_ == 1 ? ranks : rank_, rank_ == 1 ? n : 1, "reduce" + text);
      run(PLAIT_BROADCAST, {&x}, {&x}, size_ - 1);
      x.expect(n - 1, 1, "broadcast" + text);
      if (count > 3000) continue;
      std::deque<Numbers> parts, sent;
      Some all, each;
      for (uint32_t r = 0; r < size_; r++) {
        all.push_back(&parts.emplace_back(count));
        each.push_back(&sent.emplace_back(count, 1000 * r + rank_));
      }
      Numbers own(count, 5 * rank_);
      run(PLAIT_ALL_GATHER, {&own}, all);
      for (uint32_t r = 0; r < size_; r++) parts[r].expect(5 * r, 1, "all_gather" + text);
      run(PLAIT_ALL_TO_ALL, each, all);
      for (uint32_t r = 0; r < size_; r++)
        parts[r].expect(1000 * rank_ + r, 1, "all_to_all" + text);
      run(PLAIT_REDUCE_SCATTER, each, {&own});
      own.expect(1000 * n * rank_ + ranks, n, "reduce_scatter" + text);
      run(PLAIT_GATHER, {&own}, rank_ == 0 ? all : Some{}, 0);
      for (uint32_t r = 0; r < size_ && rank_ == 0; r++)
        parts[r].expect(1000 * n * r + ranks, n, "gather" + text);
      run(PLAIT_SCATTER, rank_ == 2 ? each : Some{}, {&own}, 2);
      own.expect(1000 * rank_ + 2, 1, "scatter" + text);
    }
    run(PLAIT_BARRIER, {}, {});
    plait_communicator *part = nullptr;
    need(worlds_.table.split(&worlds_, thread_, group_, rank_ % 2, 0, &part), "split");
    if (part->rank != rank_ / 2 || part->size != (size_ + 1 - rank_ % 2) / 2) fail("split");
    plait_release(part);
    return most_;
  }

  // one calls something else: all learn of it, and the next collective goes on
  void difference() {
    Numbers x(rank_ == 3 ? 5 : 4), y(4, rank_);
    const std::string text = error(PLAIT_ALL_REDUCE, {&x}, {&x}, 60);
    for (const char *part :
         {"rank 2 calls all_reduce of 4 elements", "rank 3 calls all_reduce of 5"})
      if (text.find(part) == std::string::npos) fail("difference: " + text);
    run(PLAIT_ALL_REDUCE, {&y}, {&y});
    y.expect(int64_t(size_) * (size_ - 1) / 2, size_, "the collective behind a difference");
  }
  // one does not come: the others say which
  void absence() {
    run(PLAIT_BARRIER, {}, {});
    const auto begin = std::chrono::steady_clock::now();
    run(PLAIT_BARRIER, {}, {});
    const std::chrono::duration<double> barrier = std::chrono::steady_clock::now() - begin;
    // on a busy machine the others, too, take their time
    if (rank_ == 0) worlds_.patience = 1 + int(20 * barrier.count());
    run(PLAIT_BARRIER, {}, {});
    const int seconds = worlds_.patience;
    if (rank_ == 1) {
      while (worlds_.waited < size_ - 1) std::this_thread::sleep_for(std::chrono::milliseconds(1));
      return;
    }
    if (rank_ == 4) std::this_thread::sleep_for(std::chrono::milliseconds(500));
    Numbers x(4);
    const std::string text = error(PLAIT_ALL_REDUCE, {&x}, {&x}, seconds);
    const std::string expected = "waited " + std::to_string(seconds) + " s for rank 1 (pid";
    if (text.find(expected) == std::string::npos || text.find(", rank") != std::string::npos)
      fail("absence: " + text);
    worlds_.waited++;
  }

  // A receive that is open keeps no member in its group.
  void leave_while_receiving() {
    Numbers x(4);
    plait_work *work = nullptr;
    need(start(PLAIT_RECEIVE, {}, {&x}, 0, 60, &work), "receive");
    plait_release(std::exchange(group_, nullptr));
    if (work->table->wait(nullptr, thread_, work) == PLAIT_OK) fail("a receive without a sender");
    expect_error("this process left the group", "leave_while_receiving");
    plait_release(work);
  }
  void barrier() { run(PLAIT_BARRIER, {}, {}); }
  void expect_left() {
    const std::string text = error(PLAIT_BARRIER, {}, {}, 5);
    if (text.find("rank 1 (pid") == std::string::npos ||
        text.find("left the group") == std::string::npos)
      fail("left: " + text);
  }
  // The transport of member 0 does not return. Collectives, asynchronous ones and new groups fail
  // there, and the group is broken in all members when it does.
  void lock_up() {
    const char *part = "the transport has not returned from in_memory_progress for 2 s";
    Numbers x(4);
    worlds_.fabric.lock_up(rank_);
    if (error(PLAIT_BARRIER, {}, {}, 60).find(part) == std::string::npos) fail("lock_up");
    plait_work *work = nullptr;
    need(start(PLAIT_RECEIVE, {}, {&x}, 1, 60, &work), "receive");
    if (work->table->wait(nullptr, thread_, work) == PLAIT_OK) fail("a receive while locked");
    expect_error(part, "wait");
    int32_t done = 0;
    if (work->table->query(nullptr, thread_, work, &done) == PLAIT_OK || !done) fail("query");
    expect_error(part, "query");
    plait_release(work);
    plait_communicator *other = nullptr;
    if (worlds_.table.open(&worlds_, thread_, "new", 0, size_, 60, &other) == PLAIT_OK) fail("new");
    expect_error(part, "open");
    worlds_.fabric.unlock(rank_);
    const std::string text = error(PLAIT_BARRIER, {}, {}, 60);
    if (text.find("the group is broken: the transport did not return") == std::string::npos)
      fail("unlock: " + text);
  }
  void expect_broken() {
    const std::string text = error(PLAIT_BARRIER, {}, {}, 60);
    if (text.find("the group is broken: rank 0") == std::string::npos) fail("locked: " + text);
  }

  void abort() { worlds_.table.abort(&worlds_, group_, "enough"); }
  void interrupt() { worlds_.table.interrupt(&worlds_, group_, "step"); }
  // The next collective fails for this reason, with these lost ranks.
  void expect_failure(const std::string &kind, const std::vector<int64_t> &lost) {
    if (start(PLAIT_BARRIER, {}, {}, 0) == PLAIT_OK) fail("no error");
    const GroupFailure *failure = failure_of(thread_->error->cause);
    std::vector<int64_t> found;
    for (uint64_t i = 0; failure && i < failure->count; i++) found.push_back(failure->lost[i].rank);
    if (!failure || failure_name(failure->kind) != kind || found != lost) fail("not " + kind);
    runtime->clear(thread_);
  }

  // a message that one end gives up while the other one agrees to it
  void offer() {
    Numbers x(100'000);
    const std::string text = error(PLAIT_SEND, {&x}, {}, 0.2, 2);
    if (text.find("waited 0.2 s for rank 2") == std::string::npos) fail("offer: " + text);
  }
  void accept() {
    Numbers x(100'000);
    const std::string text = error(PLAIT_RECEIVE, {}, {&x}, 5);
    // or, where the sender gave up even before this: that it left
    if (text.find("rank 0") == std::string::npos || text.find("waited 5 s") != std::string::npos)
      fail("accept: " + text);
  }

 private:
  using Some = std::vector<Numbers *>;

  static void need(plait_status s, const std::string &subject) {
    if (s != PLAIT_OK) fail(subject);
  }
  plait_status start(uint32_t kind, const Some &in, const Some &out, uint32_t root,
                     double timeout = 60, plait_work **work = nullptr) {
    std::vector<plait_tensor *> from, to;
    for (const Numbers *x : in) from.push_back(x->t.get());
    for (const Numbers *x : out) to.push_back(x->t.get());
    plait_collective call{};
    call.size = sizeof call;
    call.kind = kind;
    call.in = from.data();
    call.out = to.data();
    call.n_in = uint32_t(from.size());
    call.n_out = uint32_t(to.size());
    call.peer = root;
    call.timeout = timeout;
    return worlds_.table.start(&worlds_, thread_, group_, &call, nullptr, work);
  }
  void run(uint32_t kind, const Some &in, const Some &out, uint32_t root = 0) {
    const uint64_t before = worlds_.calls(rank_);
    need(start(kind, in, out, root), kind_name(kind));
    most_ = std::max(most_, worlds_.calls(rank_) - before);
  }
  std::string error(uint32_t kind, const Some &in, const Some &out, double timeout,
                    uint32_t root = 0) {
    if (start(kind, in, out, root, timeout) == PLAIT_OK) fail("no error");
    const std::string text = thread_->error->message;
    runtime->clear(thread_);
    return text;
  }
  void expect_error(const char *part, const std::string &subject) {
    const std::string text = thread_->error->message;
    if (text.find(part) == std::string::npos) fail(subject + ": " + text);
    runtime->clear(thread_);
  }

  Worlds &worlds_;
  const uint32_t rank_, size_;
  plait_thread *thread_ = runtime->thread();
  plait_communicator *group_ = nullptr;
  uint64_t most_ = 0;
};

// Member 1 leaves before member 2 has heard of member 0.
void leave_early(Worlds &worlds) {
  Fabric &f = worlds.fabric;
  f.hold(0, 2);
  std::thread last([&] { Caller(worlds, 2, 3, "early").expect_left(); });
  std::thread early([&] { Caller(worlds, 1, 3, "early").leave_while_receiving(); });
  const Caller first(worlds, 0, 3, "early");
  f.await(1, 2, LETTER_LEFT);
  f.let_go(0, 2);
  early.join();
  last.join();
}

// Member 0 gives a message up, and leaves, before it hears that member 2 wants it.
void give_up_what_is_wanted(Worlds &worlds) {
  Fabric &f = worlds.fabric;
  std::thread receiver([&] {
    Caller caller(worlds, 2, 3, "wanted");
    f.hold(2, 0);
    caller.accept();
    f.let_go(2, 0);
  });
  std::thread third([&] { const Caller caller(worlds, 1, 3, "wanted"); });
  {
    Caller sender(worlds, 0, 3, "wanted");
    sender.offer();
  }
  receiver.join();
  third.join();
}

void lock_up(Worlds &worlds) {
  const double before = std::exchange(stuck_seconds, 2);
  std::thread first([&] { Caller(worlds, 0, 2, "locked").lock_up(); });
  Caller(worlds, 1, 2, "locked").expect_broken();
  first.join();
  stuck_seconds = before;
  std::thread again([&] { Caller(worlds, 0, 2, "again").barrier(); });
  Caller(worlds, 1, 2, "again").barrier();
  again.join();
}

// Member 0 ends the group and is lost then. The others hear of both in all orders.
enum class Order { end_first, end_from_member, loss_first, end_never };
void end_and_leave(Order order, bool by_user) {
  auto &worlds = *new Worlds(3);  // its thread 0 stays
  Fabric &f = worlds.fabric;
  const std::string kind = order == Order::end_never || by_user ? "lost" : "aborted";
  const std::vector<int64_t> lost =
      kind == "lost" ? std::vector<int64_t>{0} : std::vector<int64_t>{};
  std::vector<std::thread> members;
  std::atomic<int> opened{0};
  std::atomic<bool> over{false};
  for (uint32_t rank = 0; rank < 3; rank++)
    members.emplace_back([&, rank] {
      Caller caller(worlds, rank, 3, "ended");
      opened++;
      // member 1 cannot know why member 0 is lost before it has heard of it
      if (rank == 1 && order == Order::loss_first) return caller.expect_failure("lost", {0});
      if (rank) return caller.expect_failure(kind, lost);
      while (opened < 3) std::this_thread::yield();
      if (order == Order::end_never || order == Order::loss_first) f.hold(0, 1);
      if (order != Order::end_first) f.hold(0, 2);
      if (order == Order::loss_first) f.lock_up(2);
      by_user ? caller.interrupt() : caller.abort();
      f.lose(1, 0);
      f.await(1, 2, LETTER_LOST);
      if (order == Order::loss_first) {  // both lie there before member 2 reads any
        f.let_go(0, 1);
        f.let_go(0, 2);
        f.unlock(2);
      }
      f.lose(2, 0);
      while (!over) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    });
  members[1].join();
  members[2].join();
  over = true;
  members[0].join();
  for (uint32_t rank = 0; rank < 3; rank++) worlds.all[rank]->stop(5);
}

// An abort returns when the letters have left the process.
void abort_slowly(Worlds &worlds) {
  const double before = std::exchange(telling_seconds, 600);
  std::atomic<bool> returned{false};
  std::thread other([&] { Caller(worlds, 1, 2, "slowly").expect_failure("aborted", {}); });
  std::thread first([&] {
    Caller caller(worlds, 0, 2, "slowly");
    worlds.fabric.send_slowly(0, true);
    caller.abort();
    returned = true;
  });
  other.join();
  if (returned) fail("an abort that is not told yet returned");
  worlds.fabric.send_slowly(0, false);
  first.join();
  telling_seconds = before;
}

void watch_calls() {
  CallWatch watch;
  double t = 1000;
  for (uint64_t calls = 1; calls < 100; calls++)
    if (watch.silence(calls, t += 3) > 0) fail("a call that ended");
  for (int i = 0; i < 3; i++)
    if (watch.silence(99, t += 3600) > 4 * beat_seconds) fail("a process that slept");
  for (int i = 0; i < 1000; i++) watch.silence(99, t += 0.02);
  if (watch.silence(99, t) < 19) fail("a call that does not end");
}

}  // namespace

int main(int, char **argument) {
  void *library = dlopen(argument[1], RTLD_NOW | RTLD_GLOBAL);
  if (!library) return std::printf("%s\n", dlerror()), 1;
  runtime = reinterpret_cast<const plait_runtime *(*)()>(dlsym(library, "plait_runtime_v0"))();
  const auto size = uint32_t(std::atoi(argument[2]));
  Worlds worlds(size);
  leave_early(worlds);
  give_up_what_is_wanted(worlds);
  watch_calls();
  for (const bool by_user : {false, true})
    for (const Order order :
         {Order::end_first, Order::end_from_member, Order::loss_first, Order::end_never})
      end_and_leave(order, by_user);
  abort_slowly(worlds);
  if (size < 16) lock_up(worlds);  // once, as it takes two seconds
  std::atomic<uint64_t> most{0};
  std::vector<std::thread> threads;
  for (uint32_t rank = 0; rank < size; rank++)
    threads.emplace_back([&, rank] {
      Caller caller(worlds, rank, size);
      uint64_t result = caller.values(), before = most;
      while (before < result && !most.compare_exchange_weak(before, result)) {
      }
      caller.difference();
      caller.absence();
    });
  for (std::thread &t : threads) t.join();
  for (const auto &world : worlds.all) world->stop(5);
  std::printf("%llu\ndone\n", static_cast<unsigned long long>(most.load()));
}
