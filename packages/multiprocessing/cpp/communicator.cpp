// The role "communicator" under the name "shared_memory": groups of processes of one machine.
#include "communicator.hpp"

#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cinttypes>
#include <cmath>
#include <cstdio>
#include <deque>
#include <thread>
#include <vector>

#include "collectives.hpp"
#include "rendezvous.hpp"
#include "table.hpp"
#include "transfers.hpp"

namespace plait::multiprocessing {
namespace {

using Held = std::unique_lock<std::mutex>;

constexpr auto pause = std::chrono::milliseconds(20);

std::atomic<bool> process_ends{false};
std::atomic<int64_t> unfinished{0};  // asynchronous collectives

// What a thread that waits asks: whether the user wants it to stop (Ctrl-C).
class Signals {
 public:
  explicit Signals(plait_thread *thread) : host_(role<plait_host>(thread->runtime)) {}
  Patience patience(double timeout) { return {timeout, ask, this}; }
  bool asked() { return ask(this); }

 private:
  static bool ask(void *p) {
    auto *self = static_cast<Signals *>(p);
    self->came_ = self->came_ || (self->host_ && self->host_->interrupted(self->host_->ctx));
    return self->came_;  // the host tells it once
  }
  const plait_host *host_;
  bool came_ = false;
};
bool ask_for_end(void *) { return process_ends.load(); }

struct Operation {  // an asynchronous collective
  Collective call{};
  std::vector<plait_tensor *> in, out;  // handles of its own: others may be given other bytes
  double timeout = 0;
  bool done = false;
  Outcome outcome = Outcome::done;
  std::string why;
  Operation() { unfinished++; }
  Operation(const Operation &) = delete;
  ~Operation() { release(); }
  // before it is done: whoever waited for it is the only one who uses its tensors then
  void release() {
    for (auto *list : {&in, &out}) {
      for (plait_tensor *t : *list) plait_release(t);
      list->clear();
    }
  }
};

// One member of a group, with its threads. The communicator owns it together with what it started.
struct Core : std::enable_shared_from_this<Core> {
  std::unique_ptr<Group> group;
  Transfers transfers;
  const int64_t pid;
  const plait_runtime *runtime;
  std::mutex mutex;
  std::condition_variable changed;
  std::deque<std::shared_ptr<Operation>> queue;
  bool busy = false;     // a collective runs
  bool closing = false;  // the communicator is gone
  bool has_worker = false, has_mover = false;
  int threads = 0;
  std::atomic<int64_t> splits{0};

  Core(std::unique_ptr<Group> g, const plait_runtime *r)
      : group(std::move(g)), transfers(*group), pid(getpid()), runtime(r) {}

  Outcome run_now(const Collective &c, double timeout, Signals &signals, std::string &why);
  void enqueue(const std::shared_ptr<Operation> &);
  void close();

 private:
  template <class F>
  void start_thread(F &&body);
  void work();
  void move_messages();
  Outcome run_observed(const Collective &, const Patience &, std::string &why);
  Outcome run_safely(const Collective &, const Patience &, std::string &why);
};

struct Communicator : plait_communicator {
  std::shared_ptr<Core> core;
};
struct Work : plait_work {
  std::shared_ptr<Core> core;
  std::shared_ptr<Operation> operation;
};
Core &core_of(plait_communicator *c) { return *static_cast<Communicator *>(c)->core; }
Work *work_of(plait_work *w) { return static_cast<Work *>(w); }

// A forked child has its parent's objects but not its threads, and is no member: it touches
// nothing.
bool is_forked(const Core &core) { return core.pid != getpid(); }
plait_status refuse_child(plait_thread *thread, const Core &core, const char *who) {
  return thread->runtime->raise(
      thread, PLAIT_ERROR, who,
      "the communicator is that of the process %lld, of which this one is a forked child; a child "
      "opens or joins one itself",
      static_cast<long long>(core.pid));
}

plait_status status_of(plait_thread *thread, const char *who, Outcome o, const std::string &why) {
  if (o == Outcome::done) return PLAIT_OK;
  // the exception of a signal's handler
  if (o == Outcome::interrupted && thread->error && thread->error->host) return PLAIT_HOST_ERROR;
  return thread->runtime->raise(thread, o == Outcome::timed_out ? PLAIT_TIMEOUT_ERROR : PLAIT_ERROR,
                                who, "%s", why.c_str());
}

// Running.

Outcome Core::run_observed(const Collective &c, const Patience &patience, std::string &why) {
  if (!(__atomic_load_n(runtime->observed, __ATOMIC_RELAXED) & PLAIT_EVENT_COLLECTIVE))
    return run(*group, c, patience, why);
  plait_event e{};
  e.size = sizeof e;
  e.kind = PLAIT_EVENT_COLLECTIVE;
  e.name = kind_name(c.kind);
  e.a = c.elements * uint64_t(itemsize(c.dtype));
  e.device = {kDLCPU, 0};
  uint64_t tokens[PLAIT_TOKENS];
  const uint64_t n = runtime->begin(&e, tokens, PLAIT_TOKENS);
  const Outcome o = run(*group, c, patience, why);
  runtime->end(&e, tokens, n, o == Outcome::done ? PLAIT_OK : PLAIT_ERROR);
  return o;
}

// Without memory the others must not wait for this member.
Outcome Core::run_safely(const Collective &c, const Patience &patience, std::string &why) {
  try {
    return run_observed(c, patience, why);
  } catch (const std::bad_alloc &) {
    const Reason reason(group->rank(), group->rank(), CAUSE_INTERRUPTED);
    return group->give_up(Outcome::broken, reason, 0, why, "out of memory");
  }
}

// Behind all that was started before.
Outcome Core::run_now(const Collective &c, double timeout, Signals &signals, std::string &why) {
  {
    Held lock(mutex);
    while (busy || !queue.empty()) {
      changed.wait_for(lock, pause);
      if (!busy && queue.empty()) break;
      lock.unlock();  // asking may wait for the interpreter's lock
      const bool interrupted = signals.asked();
      lock.lock();
      if (interrupted)
        return group->give_up(Outcome::interrupted,
                              {group->rank(), group->rank(), CAUSE_INTERRUPTED}, 0, why,
                              "interrupted");
    }
    busy = true;
  }
  const Outcome o = run_safely(c, signals.patience(timeout), why);
  const std::lock_guard<std::mutex> lock(mutex);
  busy = false;
  changed.notify_all();
  return o;
}

template <class F>
void Core::start_thread(F &&body) {  // the mutex is held
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);  // signals are for the program's own threads
  threads++;
  try {
    std::thread([self = shared_from_this(), body] {
      body();
      const std::lock_guard<std::mutex> lock(self->mutex);
      if (--self->threads == 0 && self->closing) self->group->leave();
    }).detach();
  } catch (...) {
    threads--;
    pthread_sigmask(SIG_SETMASK, &before, nullptr);
    throw;
  }
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

void Core::enqueue(const std::shared_ptr<Operation> &o) {
  const std::lock_guard<std::mutex> lock(mutex);
  const bool transfers_it = o->call.kind == PLAIT_SEND || o->call.kind == PLAIT_RECEIVE;
  bool &has = transfers_it ? has_mover : has_worker;
  if (!has) {
    if (transfers_it)
      start_thread([this] { move_messages(); });
    else
      start_thread([this] { work(); });
    has = true;
  }
  if (!transfers_it) queue.push_back(o);
  changed.notify_all();
}

void Core::move_messages() {
  for (;;) {
    try {
      return transfers.drive_all({0, ask_for_end, nullptr});
    } catch (const std::bad_alloc &) {  // memory may come back
      std::this_thread::sleep_for(pause);
    }
  }
}

void Core::work() {
  for (;;) {
    std::shared_ptr<Operation> o;
    {
      Held lock(mutex);
      changed.wait(lock, [&] { return !busy && (closing || !queue.empty()); });
      if (queue.empty()) return;
      o = queue.front();
      queue.pop_front();
      busy = true;
    }
    const Outcome outcome = run_safely(o->call, {o->timeout, ask_for_end, nullptr}, o->why);
    o->release();
    const std::lock_guard<std::mutex> lock(mutex);
    busy = false;
    o->outcome = outcome;
    o->done = true;
    unfinished--;
    changed.notify_all();
  }
}

void Core::close() {
  transfers.stop();
  const bool no_messages = transfers.idle();
  const std::lock_guard<std::mutex> lock(mutex);
  closing = true;
  // else the last of its threads does it
  if (no_messages && queue.empty() && !busy) group->leave();
  changed.notify_all();
}

// Checking what is asked for.

class Arguments {
 public:
  Arguments(plait_thread *thread, const Group &group, const plait_collective &c)
      : thread_(thread), group_(group), asked_(c), who_(kind_name(c.kind)) {}

  plait_status check(Collective &out) {
    if (asked_.kind < PLAIT_ALL_REDUCE || asked_.kind > PLAIT_BARRIER)
      return thread_->runtime->raise(thread_, PLAIT_NOT_IMPLEMENTED, "collective",
                                     "the kind %u is unknown", asked_.kind);
    if (!(asked_.timeout >= 0) || std::isinf(asked_.timeout))
      return fail(PLAIT_VALUE_ERROR, "`timeout` must be positive, got %g", asked_.timeout);
    out = {asked_.kind, 0, 0, 0, 0, asked_.in, asked_.out, dtype::uint8, 0};
    plait_status s = check_peer(out);
    if (s >= 0) s = check_counts(out);
    if (s >= 0) s = check_tensors(out);
    if (s >= 0) s = check_elements(out);
    return s < 0 ? s : check_reduction(out);
  }

 private:
  template <class... Args>
  plait_status fail(plait_status code, const char *format, Args... args) const {
    return thread_->runtime->raise(thread_, code, who_, format, args...);
  }
  bool rooted() const {
    return asked_.kind == PLAIT_BROADCAST || asked_.kind == PLAIT_REDUCE ||
           asked_.kind == PLAIT_GATHER || asked_.kind == PLAIT_SCATTER;
  }
  bool transfer() const { return asked_.kind == PLAIT_SEND || asked_.kind == PLAIT_RECEIVE; }

  plait_status check_peer(Collective &out) const {
    if (!rooted() && !transfer()) return PLAIT_OK;
    out.root = asked_.peer;
    const char *name = rooted() ? "root" : "peer";
    if (asked_.peer >= group_.size())
      return fail(PLAIT_VALUE_ERROR, "`%s` must be in [0, %u], got %u", name, group_.size() - 1,
                  asked_.peer);
    if (transfer() && asked_.peer == group_.rank())
      return fail(PLAIT_VALUE_ERROR, "`peer` must be another rank, got the own one, %u",
                  asked_.peer);
    return PLAIT_OK;
  }

  // which tensors of this rank take part; others are not looked at
  plait_status check_counts(Collective &out) const {
    const bool root = asked_.peer == group_.rank();
    const uint32_t size = group_.size(), any = std::max(asked_.n_in, 1u);
    switch (asked_.kind) {
      case PLAIT_ALL_REDUCE: return counts(out, any, any);
      case PLAIT_BROADCAST:
        if (!root) return counts(out, 0, std::max(asked_.n_out, 1u));
        return counts(out, any, asked_.n_out ? any : 0);
      case PLAIT_REDUCE: return counts(out, any, root ? any : 0);
      case PLAIT_ALL_GATHER: return counts(out, 1, size);
      case PLAIT_GATHER: return counts(out, 1, root ? size : 0);
      case PLAIT_SCATTER: return counts(out, root ? size : 0, 1);
      case PLAIT_REDUCE_SCATTER: return counts(out, size, 1);
      case PLAIT_ALL_TO_ALL: return counts(out, size, size);
      case PLAIT_SEND: return counts(out, 1, 0);
      case PLAIT_RECEIVE: return counts(out, 0, 1);
      default: return counts(out, 0, 0);
    }
  }
  plait_status counts(Collective &out, uint32_t n_in, uint32_t n_out) const {
    out.n_in = n_in;
    out.n_out = n_out;
    const bool more_in = asked_.n_in > n_in && n_in, more_out = asked_.n_out > n_out && n_out;
    const bool there = (asked_.in || !n_in) && (asked_.out || !n_out);
    if (there && asked_.n_in >= n_in && asked_.n_out >= n_out && !more_in && !more_out)
      return PLAIT_OK;
    return fail(PLAIT_VALUE_ERROR, "%u inputs and %u outputs are required, got %u and %u", n_in,
                n_out, asked_.n_in, asked_.n_out);
  }

  plait_status check_tensors(Collective &out) const {
    const plait_tensor *first = nullptr;
    for (uint32_t i = 0; i < out.n_in + out.n_out; i++) {
      const plait_tensor *t = i < out.n_in ? out.in[i] : out.out[i - out.n_in];
      if (!t) return fail(PLAIT_TYPE_ERROR, "tensors are required, number %u is missing", i);
      if (t->dl.device.device_type != kDLCPU)
        return fail(PLAIT_TYPE_ERROR, "a tensor on the CPU is required, got one on %s",
                    device_text(thread_->runtime, t->dl.device).c_str());
      if (!first) first = t;
      if (!same(t->dl.dtype, first->dl.dtype))
        return fail(PLAIT_TYPE_ERROR, "tensors of one dtype are required, got %s and %s",
                    name(first->dl.dtype), name(t->dl.dtype));
      if (i >= out.n_in && t->storage->flags & PLAIT_STORAGE_READONLY)
        return fail(PLAIT_VALUE_ERROR,
                    "a tensor that may be written is required, got a read-only one");
    }
    if (first) out.dtype = first->dl.dtype;
    return PLAIT_OK;
  }

  // tensors for ranks are of one size; other lists have the same sizes as in- and outputs
  plait_status check_elements(Collective &out) const {
    const bool by_rank = asked_.kind == PLAIT_ALL_GATHER || asked_.kind == PLAIT_GATHER ||
                         asked_.kind == PLAIT_SCATTER || asked_.kind == PLAIT_REDUCE_SCATTER ||
                         asked_.kind == PLAIT_ALL_TO_ALL;
    if (by_rank) {
      const plait_tensor *first = out.n_in ? out.in[0] : out.out[0];
      out.elements = uint64_t(numel(first));
      for (uint32_t i = 0; i < out.n_in + out.n_out; i++) {
        const plait_tensor *t = i < out.n_in ? out.in[i] : out.out[i - out.n_in];
        if (numel(t) != numel(first))
          return fail(PLAIT_VALUE_ERROR,
                      "tensors of one size are required, got %" PRId64 " and %" PRId64 " elements",
                      numel(first), numel(t));
      }
      return PLAIT_OK;
    }
    out.elements =
        out.n_in ? Stream(out.in, out.n_in).elements() : Stream(out.out, out.n_out).elements();
    for (uint32_t i = 0; out.n_in && i < out.n_out; i++)
      if (numel(out.in[i]) != numel(out.out[i]))
        return fail(PLAIT_VALUE_ERROR,
                    "an output of the size of the input is required, got %" PRId64
                    " elements for %" PRId64,
                    numel(out.out[i]), numel(out.in[i]));
    return PLAIT_OK;
  }

  plait_status check_reduction(Collective &out) const {
    if (asked_.kind != PLAIT_ALL_REDUCE && asked_.kind != PLAIT_REDUCE &&
        asked_.kind != PLAIT_REDUCE_SCATTER)
      return PLAIT_OK;
    out.reduction = asked_.reduction;
    if (asked_.reduction > PLAIT_REDUCE_XOR)
      return fail(PLAIT_VALUE_ERROR, "`reduction` must be in [0, 7], got %u", asked_.reduction);
    if (reduce(out.dtype, out.reduction, nullptr, 1, nullptr, 0)) return PLAIT_OK;
    const char *dtype = name(out.dtype), *reduction = reduction_name(out.reduction);
    if (out.reduction == PLAIT_REDUCE_AVERAGE)
      return fail(PLAIT_TYPE_ERROR, "a floating-point dtype is required for mean, got %s", dtype);
    if (out.reduction >= PLAIT_REDUCE_AND)
      return fail(PLAIT_TYPE_ERROR, "integers or bools are required for %s, got %s", reduction,
                  dtype);
    return fail(PLAIT_TYPE_ERROR,
                "a dtype that has an order is required for %s, got %s; complex "
                "numbers have no %s",
                reduction, dtype, reduction);
  }

  plait_thread *thread_;
  const Group &group_;
  const plait_collective &asked_;
  const char *who_;
};

// The objects.

void drop_communicator(plait_object *o) {
  auto *c = static_cast<Communicator *>(reinterpret_cast<plait_communicator *>(o));
  if (is_forked(*c->core)) {
    c->core->group->abandon();
    return;  // what its threads may have locked cannot be destroyed
  }
  c->core->close();
  delete c;
}
void drop_work(plait_object *o) {
  auto *w = static_cast<Work *>(reinterpret_cast<plait_work *>(o));
  if (!is_forked(*w->core)) delete w;
}
const plait_type communicator_type{PLAIT_HEADER(plait_type), "communicator", drop_communicator};
const plait_type work_type{PLAIT_HEADER(plait_type), "work", drop_work};

plait_communicator *new_communicator(const plait_runtime *runtime, std::unique_ptr<Group> group) {
  auto c = std::make_unique<Communicator>();
  c->o = {1, &communicator_type};
  c->table = &shared_memory;
  c->rank = group->rank();
  c->size = group->size();
  c->core = std::make_shared<Core>(std::move(group), runtime);
  return c.release();
}

// The functions of the role.

plait_status join_block(plait_thread *thread, const plait_block_name &name, uint32_t rank,
                        plait_communicator **out) {
  const auto s = Ref<plait_storage>::steal(held_block(name));
  if (!s || !is_group(s.get()))
    return thread->runtime->raise(thread, PLAIT_VALUE_ERROR, "join",
                                  "the block of a group is required, which this process holds");
  auto group = std::make_unique<Group>(s.get(), rank);
  std::string why;
  if (rank >= group->size())
    return thread->runtime->raise(thread, PLAIT_VALUE_ERROR, "join",
                                  "`rank` must be in [0, %u], got %u", group->size() - 1, rank);
  if (!group->take(why))
    return thread->runtime->raise(thread, PLAIT_VALUE_ERROR, "join", "%s", why.c_str());
  *out = new_communicator(thread->runtime, std::move(group));
  return PLAIT_OK;
}

plait_status open_by_name(plait_thread *thread, const char *who, const Meeting &meeting,
                          double timeout, plait_communicator **out) {
  Outcome o = Outcome::done;
  std::string why;
  plait_status status = PLAIT_OK;
  auto group = meet_by_name(thread, meeting, timeout, o, why, status);
  if (status < 0) return status;
  if (o != Outcome::done) return status_of(thread, who, o, why);
  *out = new_communicator(thread->runtime, std::move(group));
  return PLAIT_OK;
}

plait_status open(void *, plait_thread *thread, const char *where, uint32_t rank, uint32_t size,
                  double timeout, plait_communicator **out) {
  return border(thread, "open", [&]() -> plait_status {
    const auto fail = [&](const char *format, auto... args) {
      return thread->runtime->raise(thread, PLAIT_VALUE_ERROR, "open", format, args...);
    };
    plait_block_name name{};
    if (where &&
        std::sscanf(where, "block:%" SCNu64 ":%" SCNu64 ":%" SCNu64 ":%" SCNu64 ":%" SCNu64,
                    &name.arena[0], &name.arena[1], &name.offset, &name.generation,
                    &name.nbytes) == 5)
      return join_block(thread, name, rank, out);
    if (!where || std::strncmp(where, "shm:", 4) != 0 || !where[4])
      return fail("`where` must be \"shm:NAME\", got \"%s\"", where ? where : "NULL");
    if (std::strlen(where + 4) > most_name)
      return fail("the name in `where` must have at most %zu bytes, got %zu", most_name,
                  std::strlen(where + 4));
    if (size < 1 || size > most_ranks)
      return fail("`size` must be in [1, %u], got %u", most_ranks, size);
    if (rank >= size) return fail("`rank` must be in [0, %u], got %u", size - 1, rank);
    if (!(timeout > 0) || std::isinf(timeout))
      return fail("`timeout` must be positive, got %g", timeout);
    Signals signals(thread);
    const Meeting meeting{where + 4, rank, size, signals.patience(timeout), nullptr};
    return open_by_name(thread, "open", meeting, timeout, out);
  });
}

struct Choice {  // of a member that splits a group
  int64_t color, key, number;  // number: of its splits so far
};

// The choices of all members, by rank.
plait_status exchange(plait_thread *thread, Core &core, Signals &signals, int64_t color,
                      int64_t key, std::vector<Choice> &all) {
  const uint32_t size = core.group->size();
  const int64_t three = 3;
  std::vector<Tensor> tensors(size + 1);
  std::vector<plait_tensor *> handles;
  for (Tensor &t : tensors) {
    check(thread->runtime->tensor_new(thread, dtype::int64, 1, &three, nullptr, {kDLCPU, 0},
                                      t.out()));
    handles.push_back(t.get());
  }
  tensors[size].data<int64_t>()[0] = color;
  tensors[size].data<int64_t>()[1] = key;
  tensors[size].data<int64_t>()[2] = core.splits++;
  const Collective c{split_kind,   0, 0, 1, size, handles.data() + size, handles.data(),
                     dtype::int64, 3};
  std::string why;
  const Outcome o = core.run_now(c, core.group->timeout(), signals, why);
  if (o != Outcome::done) return status_of(thread, "split", o, why);
  for (uint32_t r = 0; r < size; r++) {
    const auto *x = tensors[r].data<int64_t>();
    all.push_back({x[0], x[1], x[2]});
  }
  return PLAIT_OK;
}

plait_status split(void *, plait_thread *thread, plait_communicator *c, int64_t color, int64_t key,
                   plait_communicator **out) {
  return border(thread, "split", [&]() -> plait_status {
    *out = nullptr;
    Core &core = core_of(c);
    if (is_forked(core)) return refuse_child(thread, core, "split");
    Signals signals(thread);
    std::vector<Choice> all;
    const plait_status s = exchange(thread, core, signals, color, key, all);
    if (s < 0 || color < 0) return s;
    Group &group = *core.group;
    std::vector<uint32_t> ranks;  // of the part's members in this group
    for (uint32_t r = 0; r < group.size(); r++)
      if (all[r].color == color) ranks.push_back(r);
    std::stable_sort(ranks.begin(), ranks.end(),
                     [&](uint32_t a, uint32_t b) { return all[a].key < all[b].key; });
    const auto rank = uint32_t(std::find(ranks.begin(), ranks.end(), group.rank()) - ranks.begin());
    // the same text in all members, and in no other group
    const std::string name = std::to_string(group.id()) + "/" + std::to_string(all[0].number) +
                             "/" + std::to_string(color);
    const auto lost = [&](uint32_t r, std::string &why) {
      return group.check(ranks[r], [] { return false; }, why);
    };
    const Meeting meeting{name, rank, uint32_t(ranks.size()), signals.patience(group.timeout()),
                          lost};
    return open_by_name(thread, "split", meeting, group.timeout(), out);
  });
}

void abort(void *, plait_communicator *c, const char *why) {
  if (!is_forked(core_of(c))) core_of(c).group->abort(why ? why : "no reason was given");
}

std::shared_ptr<Transfer> new_transfer(const Collective &c, int64_t tag, double timeout) {
  const bool sends = c.kind == PLAIT_SEND;
  auto t = std::make_shared<Transfer>();
  t->sends = sends;
  t->peer = c.root;
  t->tag = tag;
  t->elements = sends ? Stream(c.in, 1) : Stream(c.out, 1);
  t->dtype = c.dtype;
  t->timeout = timeout;
  t->deadline = now() + timeout;
  return t;
}

plait_status run_now(plait_thread *thread, Core &core, const Collective &c, int64_t tag,
                     double timeout) {
  Signals signals(thread);
  std::string why;
  Outcome o = Outcome::done;
  if (c.kind == PLAIT_SEND || c.kind == PLAIT_RECEIVE) {
    const auto transfer = new_transfer(c, tag, timeout);
    core.transfers.add(transfer);
    core.transfers.drive(*transfer, signals.patience(timeout));
    o = transfer->outcome;
    why = transfer->why;
  } else {
    o = core.run_now(c, timeout, signals, why);
  }
  return status_of(thread, kind_name(c.kind), o, why);
}

void begin(plait_thread *thread, const std::shared_ptr<Core> &core, const Collective &c,
           int64_t tag, double timeout, plait_work **out) {
  const auto operation = std::make_shared<Operation>();
  struct Counted {
    bool given = false;
    ~Counted() { unfinished -= !given; }
  } counted;
  const auto copy = [&](plait_tensor *const *from, uint32_t n, std::vector<plait_tensor *> &to) {
    for (uint32_t i = 0; i < n; i++) {
      to.push_back(nullptr);
      check(thread->runtime->tensor_alias(thread, from[i], &to.back()));
    }
  };
  copy(c.in, c.n_in, operation->in);
  copy(c.out, c.n_out, operation->out);
  operation->call = c;
  operation->call.in = operation->in.data();
  operation->call.out = operation->out.data();
  operation->timeout = timeout;
  auto work = std::make_unique<Work>();
  work->o = {1, &work_type};
  work->table = &shared_memory;
  work->core = core;
  work->operation = operation;
  core->enqueue(operation);
  if (c.kind == PLAIT_SEND || c.kind == PLAIT_RECEIVE) {
    const auto transfer = new_transfer(operation->call, tag, timeout);
    // it is called by whoever drives transfers, while the core lives
    transfer->finished = [core = core.get(), operation](Transfer &t) {
      operation->release();
      const std::lock_guard<std::mutex> lock(core->mutex);
      operation->outcome = t.outcome;
      operation->why = t.why;
      operation->done = true;
      unfinished--;
      core->changed.notify_all();
    };
    core->transfers.add(transfer);
  }
  counted.given = true;
  *out = work.release();
}

plait_status start(void *, plait_thread *thread, plait_communicator *c,
                   const plait_collective *given, plait_stream *, plait_work **work) {
  plait_collective asked{};
  std::memcpy(&asked, given, std::min<size_t>(given->size, sizeof asked));
  return border(thread, kind_name(asked.kind), [&]() -> plait_status {
    if (work) *work = nullptr;
    Core &core = core_of(c);
    if (is_forked(core)) return refuse_child(thread, core, kind_name(asked.kind));
    Collective call;
    const plait_status s = Arguments(thread, *core.group, asked).check(call);
    if (s < 0) return s;
    const double timeout = asked.timeout > 0 ? asked.timeout : core.group->timeout();
    if (!work) return run_now(thread, core, call, asked.tag, timeout);
    begin(thread, static_cast<Communicator *>(c)->core, call, asked.tag, timeout, work);
    return PLAIT_OK;
  });
}

plait_status result_of(plait_thread *thread, const Operation &o) {
  return status_of(thread, kind_name(o.call.kind), o.outcome, o.why);
}

plait_status query(void *, plait_thread *thread, plait_work *given, int32_t *done) {
  return border(thread, "query", [&]() -> plait_status {
    const Work *w = work_of(given);
    if (is_forked(*w->core)) return refuse_child(thread, *w->core, "query");
    const std::lock_guard<std::mutex> lock(w->core->mutex);
    *done = w->operation->done;
    return *done ? result_of(thread, *w->operation) : PLAIT_OK;
  });
}

plait_status wait(void *, plait_thread *thread, plait_work *given) {
  return border(thread, "wait", [&]() -> plait_status {
    const Work *w = work_of(given);
    if (is_forked(*w->core)) return refuse_child(thread, *w->core, "wait");
    Signals signals(thread);
    Held lock(w->core->mutex);
    while (!w->operation->done) {
      w->core->changed.wait_for(lock, pause);
      if (w->operation->done) break;
      lock.unlock();
      const bool interrupted = signals.asked();
      lock.lock();
      // the collective goes on
      if (interrupted) return status_of(thread, "wait", Outcome::interrupted, "interrupted");
    }
    return result_of(thread, *w->operation);
  });
}

}  // namespace

const plait_collectives shared_memory{PLAIT_HEADER(plait_collectives),
                                      "shared_memory",
                                      nullptr,
                                      open,
                                      split,
                                      abort,
                                      start,
                                      query,
                                      wait};

void stop_collectives() {
  process_ends = true;
  for (int i = 0; i < 100 && unfinished.load() > 0; i++) std::this_thread::sleep_for(pause);
}

void forget_collectives() { unfinished = 0; }

}  // namespace plait::multiprocessing

using namespace plait::multiprocessing;
#define PLAIT_EXPORT extern "C" __attribute__((visibility("default")))

PLAIT_EXPORT plait_status plait_group_create(plait_thread *thread, uint32_t size, uint64_t chunk,
                                             double timeout, plait_storage **out) {
  const plait_status s = plait_shared_create(thread, group_bytes(size, chunk), out);
  if (s >= 0) format_group((*out)->data, size, chunk, timeout);
  return s;
}

PLAIT_EXPORT void plait_group_where(const plait_storage *s, char *text, uint64_t room) {
  plait_block_name n;
  plait_shared_name(s, &n);
  std::snprintf(text, room, "block:%" PRIu64 ":%" PRIu64 ":%" PRIu64 ":%" PRIu64 ":%" PRIu64,
                n.arena[0], n.arena[1], n.offset, n.generation, n.nbytes);
}
