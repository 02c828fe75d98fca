// The role "communicator" under the name "shared_memory": groups of processes of one machine.
#include "communicator.hpp"

#include <plait/collectives/arguments.hpp>
#include <plait/collectives/subgroup.hpp>
#include <plait/fork.hpp>

#include <unistd.h>

#include <algorithm>
#include <cinttypes>
#include <cmath>
#include <cstdio>
#include <map>

#include "member.hpp"
#include "rendezvous.hpp"
#include "table.hpp"

namespace plait::multiprocessing {
namespace {

struct Communicator : plait_communicator {
  std::shared_ptr<Member> member;
};
struct Work : plait_work {
  std::shared_ptr<Member> member;
  std::shared_ptr<Operation> operation;
};
Member &member_of(plait_communicator *c) { return *static_cast<Communicator *>(c)->member; }
Work *work_of(plait_work *w) { return static_cast<Work *>(w); }

// A forked child has its parent's objects but not its threads, and is no member: it touches
// nothing.
bool is_forked(const Member &member) { return member.pid != getpid(); }
plait_status refuse_child(plait_thread *thread, const Member &member, const char *caller) {
  return thread->runtime->raise(
      thread, PLAIT_ERROR, caller,
      "the communicator is that of the process %lld, of which this one is a forked child; a child "
      "opens or joins one itself",
      static_cast<long long>(member.pid));
}

void drop_communicator(plait_object *o) {
  auto *c = static_cast<Communicator *>(reinterpret_cast<plait_communicator *>(o));
  if (is_forked(*c->member)) {
    c->member->group->abandon();
    return;  // what its threads may have locked cannot be destroyed
  }
  c->member->close();
  delete c;
}
void drop_work(plait_object *o) {
  auto *w = static_cast<Work *>(reinterpret_cast<plait_work *>(o));
  if (!is_forked(*w->member)) delete w;
}
const plait_type communicator_type{PLAIT_HEADER(plait_type), "communicator", drop_communicator};
const plait_type work_type{PLAIT_HEADER(plait_type), "work", drop_work};

plait_communicator *new_communicator(const plait_runtime *runtime, std::unique_ptr<Group> group) {
  auto c = std::make_unique<Communicator>();
  c->o = {1, &communicator_type};
  c->table = &shared_memory;
  c->rank = group->rank();
  c->size = group->size();
  c->member = std::make_shared<Member>(std::move(group), runtime);
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
  Explanation reason;
  if (rank >= group->size())
    return thread->runtime->raise(thread, PLAIT_VALUE_ERROR, "join",
                                  "`rank` must be in [0, %u], got %u", group->size() - 1, rank);
  if (!group->take(reason))
    return thread->runtime->raise(thread, PLAIT_VALUE_ERROR, "join", "%s", reason.c_str());
  *out = new_communicator(thread->runtime, std::move(group));
  return PLAIT_OK;
}

// The members of groups that were opened by a name, in this process.
struct Opened {
  ForkMutex mutex;
  std::map<std::string, std::weak_ptr<Member>> by_name;
};
Opened &opened() {
  static auto *result = new Opened();  // used until the process ends
  return *result;
}
void note_opened(const std::string &name, plait_communicator *c) {
  Opened &o = opened();
  const std::lock_guard<ForkMutex> lock(o.mutex);
  for (auto it = o.by_name.begin(); it != o.by_name.end();)
    it = it->second.expired() ? o.by_name.erase(it) : std::next(it);
  o.by_name[name] = static_cast<Communicator *>(c)->member;
}
std::shared_ptr<Member> find_opened(const std::string &name) {
  Opened &o = opened();
  const std::lock_guard<ForkMutex> lock(o.mutex);
  const auto it = o.by_name.find(name);
  auto member = it == o.by_name.end() ? nullptr : it->second.lock();
  return member && !is_forked(*member) ? member : nullptr;
}

plait_status open_by_name(plait_thread *thread, const char *caller, const Meeting &meeting,
                          double timeout, plait_communicator **out) {
  Outcome o = Outcome::done;
  Explanation reason;
  plait_status status = PLAIT_OK;
  auto group = meet_by_name(thread, meeting, timeout, o, reason, status);
  if (status < 0) return status;
  if (o != Outcome::done) return status_of(thread, caller, o, reason);
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
    const auto of = find_parent<std::shared_ptr<Member>>(
        where + 4, size, find_opened, [](const auto &member) { return member->group->size(); });
    if (of.name.size() > most_name)
      return fail("the name in `where` must have at most %zu bytes, got %zu", most_name,
                  of.name.size());
    if (size < 1 || size > most_ranks)
      return fail("`size` must be in [1, %u], got %u", most_ranks, size);
    if (rank >= size) return fail("`rank` must be in [0, %u], got %u", size - 1, rank);
    if (!(timeout > 0) || std::isinf(timeout))
      return fail("`timeout` must be positive, got %g", timeout);
    Signals signals(thread);
    const auto lost = [&](uint32_t r, Explanation &reason) {
      Group &parent = *of.parent->group;
      const bool found = of.by_all ? parent.check(
                                         of.ranks[r], [] { return false; }, reason) != Outcome::done
                                   : parent.find_loss(of.ranks[r], reason);
      reason.lost = in_subgroup(reason.lost, of.ranks);
      return found;
    };
    Meeting meeting{of.name, rank, size, signals.patience(timeout), nullptr};
    if (!of.ranks.empty()) meeting.lost = lost;
    const plait_status s = open_by_name(thread, "open", meeting, timeout, out);
    if (s >= 0) note_opened(of.name, *out);
    return s;
  });
}

struct Choice {  // of a member that splits a group
  int64_t color, key, number;  // number: of its splits so far
};

// The choices of all members, by rank.
plait_status exchange(plait_thread *thread, Member &member, Signals &signals, int64_t color,
                      int64_t key, std::vector<Choice> &all) {
  const uint32_t size = member.group->size();
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
  tensors[size].data<int64_t>()[2] = member.splits++;
  const Collective c{split_kind,   0, 0, 1, size, handles.data() + size, handles.data(),
                     dtype::int64, 3, 0};
  Explanation reason;
  const Outcome o = member.run_now(c, member.group->timeout(), signals, reason);
  if (o != Outcome::done) return status_of(thread, "split", o, reason);
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
    Member &member = member_of(c);
    if (is_forked(member)) return refuse_child(thread, member, "split");
    Signals signals(thread);
    std::vector<Choice> all;
    const plait_status s = exchange(thread, member, signals, color, key, all);
    if (s < 0 || color < 0) return s;
    Group &group = *member.group;
    std::vector<uint32_t> ranks;  // of the part's members in this group
    for (uint32_t r = 0; r < group.size(); r++)
      if (all[r].color == color) ranks.push_back(r);
    std::stable_sort(ranks.begin(), ranks.end(),
                     [&](uint32_t a, uint32_t b) { return all[a].key < all[b].key; });
    const auto rank = uint32_t(std::find(ranks.begin(), ranks.end(), group.rank()) - ranks.begin());
    // the same text in all members, and in no other group
    const std::string name = std::to_string(group.id()) + "/" + std::to_string(all[0].number) +
                             "/" + std::to_string(color);
    const auto lost = [&](uint32_t r, Explanation &reason) {
      const bool found = group.check(ranks[r], [] { return false; }, reason) != Outcome::done;
      reason.lost = in_subgroup(reason.lost, ranks);
      return found;
    };
    const Meeting meeting{name, rank, uint32_t(ranks.size()), signals.patience(group.timeout()),
                          lost};
    return open_by_name(thread, "split", meeting, group.timeout(), out);
  });
}

void abort(void *, plait_communicator *c, const char *reason) {
  if (!is_forked(member_of(c))) member_of(c).group->abort(reason ? reason : "no reason was given");
}
void interrupt(void *, plait_communicator *c, const char *where) {
  if (!is_forked(member_of(c))) member_of(c).group->abort(where ? where : "", CAUSE_INTERRUPTED);
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

plait_status run_now(plait_thread *thread, Member &member, const Collective &c, int64_t tag,
                     double timeout) {
  Signals signals(thread);
  Explanation explanation;
  Outcome o = Outcome::done;
  if (c.kind == PLAIT_SEND || c.kind == PLAIT_RECEIVE) {
    const auto transfer = new_transfer(c, tag, timeout);
    member.transfers.add(transfer);
    member.transfers.drive(*transfer, signals.patience(timeout));
    o = transfer->outcome;
    explanation = transfer->explanation;
  } else {
    o = member.run_now(c, timeout, signals, explanation);
  }
  return status_of(thread, kind_name(c.kind), o, explanation);
}

void begin(plait_thread *thread, const std::shared_ptr<Member> &member, const Collective &c,
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
  work->member = member;
  work->operation = operation;
  member->enqueue(operation);
  if (c.kind == PLAIT_SEND || c.kind == PLAIT_RECEIVE) {
    const auto transfer = new_transfer(operation->call, tag, timeout);
    // it is called by whoever drives transfers, while the member lives
    transfer->finished = [member = member.get(), operation](Transfer &t) {
      operation->release();
      const std::lock_guard<std::mutex> lock(member->mutex);
      operation->outcome = t.outcome;
      operation->explanation = t.explanation;
      operation->done = true;
      unfinished--;
      member->changed.notify_all();
    };
    member->transfers.add(transfer);
  }
  counted.given = true;
  *out = work.release();
}

plait_status start(void *, plait_thread *thread, plait_communicator *c,
                   const plait_collective *collective, plait_stream *, plait_work **work) {
  plait_collective request{};
  std::memcpy(&request, collective, std::min<size_t>(collective->size, sizeof request));
  return border(thread, kind_name(request.kind), [&]() -> plait_status {
    if (work) *work = nullptr;
    Member &member = member_of(c);
    if (is_forked(member)) return refuse_child(thread, member, kind_name(request.kind));
    Collective call;
    const plait_status s =
        check_arguments(thread, member.group->rank(), member.group->size(), request, call);
    if (s < 0) return s;
    const double timeout = request.timeout > 0 ? request.timeout : member.group->timeout();
    if (!work) return run_now(thread, member, call, request.tag, timeout);
    begin(thread, static_cast<Communicator *>(c)->member, call, request.tag, timeout, work);
    return PLAIT_OK;
  });
}

plait_status result_of(plait_thread *thread, const Operation &o) {
  return status_of(thread, kind_name(o.call.kind), o.outcome, o.explanation);
}

plait_status query(void *, plait_thread *thread, plait_work *handle, int32_t *done) {
  return border(thread, "query", [&]() -> plait_status {
    const Work *w = work_of(handle);
    if (is_forked(*w->member)) return refuse_child(thread, *w->member, "query");
    const std::lock_guard<std::mutex> lock(w->member->mutex);
    *done = w->operation->done;
    return *done ? result_of(thread, *w->operation) : PLAIT_OK;
  });
}

plait_status wait(void *, plait_thread *thread, plait_work *handle) {
  return border(thread, "wait", [&]() -> plait_status {
    const Work *w = work_of(handle);
    if (is_forked(*w->member)) return refuse_child(thread, *w->member, "wait");
    Signals signals(thread);
    Held lock(w->member->mutex);
    while (!w->operation->done) {
      w->member->changed.wait_for(lock, pause);
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
                                      wait,
                                      interrupt};

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
