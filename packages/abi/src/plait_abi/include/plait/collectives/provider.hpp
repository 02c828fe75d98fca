// The role "communicator" over a transport: whoever brings one derives from Provider.
#ifndef PLAIT_COLLECTIVES_PROVIDER_HPP
#define PLAIT_COLLECTIVES_PROVIDER_HPP
#include <cmath>

#include "arguments.hpp"
#include "world.hpp"

namespace plait::collectives {

class Provider {
 public:
  explicit Provider(const char *name)
      : table{PLAIT_HEADER(plait_collectives),
              name,
              this,
              open,
              split,
              abort,
              start,
              query,
              wait,
              interrupt} {}
  virtual ~Provider() = default;

  struct Place {
    std::shared_ptr<World> world;
    std::string name;     // of the group in it
    bool living = false;  // the group is that of all processes that live
  };
  // Finds the world that `where` means, or makes it, in which case all members do the same.
  // `timeout` is positive.
  virtual plait_status find(plait_thread *, const char *where, uint32_t rank, uint32_t size,
                            double timeout, Place &) = 0;

  // to be provided as the role "communicator"
  const plait_collectives table;

 private:
  struct Communicator : plait_communicator {
    std::shared_ptr<World> world;
    std::shared_ptr<Group> group;
    std::string name;
    std::atomic<int64_t> splits{0};
  };
  struct Work : plait_work {
    std::shared_ptr<World> world;
    std::shared_ptr<Operation> operation;
  };
  static Communicator *of(plait_communicator *c) { return static_cast<Communicator *>(c); }
  static bool is_forked(const World &world) { return world.pid() != getpid(); }

  static void drop_communicator(plait_object *o) {
    auto *c = of(reinterpret_cast<plait_communicator *>(o));
    if (is_forked(*c->world)) return;  // what its thread may have locked cannot be destroyed
    c->world->close(c->group);
    delete c;
  }
  static void drop_work(plait_object *o) {
    auto *w = static_cast<Work *>(reinterpret_cast<plait_work *>(o));
    if (!is_forked(*w->world)) delete w;
  }
  static const plait_type *communicator_type() {
    static const plait_type type{PLAIT_HEADER(plait_type), "communicator", drop_communicator};
    return &type;
  }
  static const plait_type *work_type() {
    static const plait_type type{PLAIT_HEADER(plait_type), "work", drop_work};
    return &type;
  }

  // Waits as the program's thread; `give_up` is called once if the user wants to stop. An operation
  // that is left undone, as the transport does not return, keeps its tensors.
  template <class F>
  static plait_status wait_for(plait_thread *thread, const char *caller, World &world, Operation &o,
                               F &&give_up) {
    Signals signals(thread);
    std::unique_lock<std::mutex> lock(o.mutex);
    bool asked = false;
    while (!o.done) {
      o.changed.wait_for(lock, pause);
      if (o.done) continue;
      lock.unlock();  // asking may wait for the interpreter's lock
      const std::string explanation = world.stuck();
      if (!asked && (asked = signals.asked()) && give_up())
        return status_of(thread, caller, Outcome::interrupted, "interrupted");
      lock.lock();
      if (!explanation.empty() && !o.done)
        return status_of(thread, caller, asked ? Outcome::interrupted : Outcome::broken,
                         explanation);
    }
    o.release(lock);
    return status_of(thread, caller,
                     asked && o.outcome != Outcome::done ? Outcome::interrupted : o.outcome,
                     o.explanation);
  }

  plait_status join(plait_thread *thread, const char *caller, const std::shared_ptr<World> &world,
                    const std::string &name, uint32_t rank, uint32_t size, double patience,
                    double timeout, const World::Parent &parent, plait_communicator **out) const {
    const auto opening = world->open(name, rank, size, patience, timeout, parent);
    const plait_status s = wait_for(thread, caller, *world, *opening, [&] {
      world->withdraw(opening);
      return false;
    });
    if (s < 0) return s;
    auto c = std::make_unique<Communicator>();
    c->o = {1, communicator_type()};
    c->table = &table;
    c->rank = rank;
    c->size = size;
    c->world = world;
    c->group = opening->group;
    c->name = name;
    *out = c.release();
    return PLAIT_OK;
  }

  static plait_status open(void *ctx, plait_thread *thread, const char *where, uint32_t rank,
                           uint32_t size, double timeout, plait_communicator **out) {
    return border(thread, "open", [&]() -> plait_status {
      const auto fail = [&](const char *format, auto... args) {
        return thread->runtime->raise(thread, PLAIT_VALUE_ERROR, "open", format, args...);
      };
      if (!where || !*where) return fail("`where` must name a group, got an empty text");
      if (size < 1 || size > most_members)
        return fail("`size` must be in [1, %u], got %u", most_members, size);
      if (rank >= size) return fail("`rank` must be in [0, %u], got %u", size - 1, rank);
      if (!(timeout > 0) || std::isinf(timeout))
        return fail("`timeout` must be positive, got %g", timeout);
      auto *self = static_cast<Provider *>(ctx);
      const double until = now() + timeout;
      Place place;
      plait_status s = self->find(thread, where, rank, size, timeout, place);
      if (s < 0) return s;
      const auto &world = place.world;
      if (is_forked(*world)) return refuse_child(thread, world->pid(), "open");
      const auto left = [&] { return std::clamp(until - now(), 0.001, timeout); };
      if (place.living) {
        const auto found = world->find_living(place.name, left());
        s = wait_for(thread, "open", *world, *found, [&] {
          world->withdraw(found);
          return false;
        });
        if (s < 0) return s;
        size = uint32_t(found->living.size());
        const auto own = std::find(found->living.begin(), found->living.end(), world->rank());
        rank = uint32_t(own - found->living.begin());
      }
      if (size > world->size())
        return fail("`size` must be at most %u, the number of processes, got %u", world->size(),
                    size);
      return self->join(thread, "open", world, place.name, rank, size, left(), timeout, {}, out);
    });
  }

  // Begins an operation; tensors are handles of its own.
  static std::shared_ptr<Operation> begin(plait_thread *thread, Communicator &c,
                                          const Collective &call, int64_t tag, double timeout) {
    const auto op = std::make_shared<Operation>();
    const auto copy = [&](plait_tensor *const *from, uint32_t n, std::vector<plait_tensor *> &to) {
      for (uint32_t i = 0; i < n; i++) {
        to.push_back(nullptr);
        check(thread->runtime->tensor_alias(thread, from[i], &to.back()));
      }
    };
    copy(call.in, call.n_in, op->tensors->in);
    copy(call.out, call.n_out, op->tensors->out);
    op->call = call;
    op->call.in = op->tensors->in.data();
    op->call.out = op->tensors->out.data();
    op->tag = tag;
    op->timeout = timeout;
    c.world->begin(c.group, op);
    return op;
  }
  static plait_status finish(plait_thread *thread, Communicator &c,
                             const std::shared_ptr<Operation> &op) {
    return wait_for(thread, kind_name(op->call.kind), *c.world, *op, [&] {
      c.world->interrupt(c.group, op);
      return false;
    });
  }

  static plait_status split(void *ctx, plait_thread *thread, plait_communicator *handle,
                            int64_t color, int64_t key, plait_communicator **out) {
    return border(thread, "split", [&]() -> plait_status {
      *out = nullptr;
      Communicator &c = *of(handle);
      if (is_forked(*c.world)) return refuse_child(thread, c.world->pid(), "split");
      const uint32_t size = c.size;
      const int64_t three = 3;
      std::vector<Tensor> tensors(size + 1);
      std::vector<plait_tensor *> handles;
      for (Tensor &t : tensors) {
        check(thread->runtime->tensor_new(thread, dtype::int64, 1, &three, nullptr, {kDLCPU, 0},
                                          t.out()));
        handles.push_back(t.get());
      }
      auto *own = tensors[size].data<int64_t>();
      own[0] = color;
      own[1] = key;
      own[2] = c.splits++;
      const Collective call{split_kind,   0, 0, 1, size, handles.data() + size, handles.data(),
                            dtype::int64, 3, 0};
      const auto op = begin(thread, c, call, 0, c.group->timeout());
      const plait_status s = finish(thread, c, op);
      if (s < 0 || color < 0) return s;
      const auto of_rank = [&](uint32_t r, int i) { return tensors[r].data<int64_t>()[i]; };
      std::vector<uint32_t> ranks;  // of the part's members in this group
      for (uint32_t r = 0; r < size; r++)
        if (of_rank(r, 0) == color) ranks.push_back(r);
      std::stable_sort(ranks.begin(), ranks.end(),
                       [&](uint32_t a, uint32_t b) { return of_rank(a, 1) < of_rank(b, 1); });
      const auto rank = uint32_t(std::find(ranks.begin(), ranks.end(), c.rank) - ranks.begin());
      // the same text in all members, and in no other group
      const std::string name = c.name + "|" + std::to_string(of_rank(0, 2)) + "|" +
                               std::to_string(c.group->peer_of(0)) + "." +
                               std::to_string(c.group->group_of(0)) + "|" + std::to_string(color);
      return static_cast<Provider *>(ctx)->join(
          thread, "split", c.world, name, rank, uint32_t(ranks.size()), c.group->timeout(),
          c.group->timeout(), World::Parent{name, c.group, ranks, true}, out);
    });
  }

  static void abort(void *, plait_communicator *handle, const char *explanation) {
    Communicator &c = *of(handle);
    if (!is_forked(*c.world))
      c.world->abort(c.group, CAUSE_ABORTED, explanation ? explanation : "no reason was given");
  }
  static void interrupt(void *, plait_communicator *handle, const char *where) {
    Communicator &c = *of(handle);
    if (!is_forked(*c.world)) c.world->abort(c.group, CAUSE_INTERRUPTED, where ? where : "");
  }

  static plait_status start(void *ctx, plait_thread *thread, plait_communicator *handle,
                            const plait_collective *collective, plait_stream *, plait_work **work) {
    plait_collective asked{};
    std::memcpy(&asked, collective, std::min<size_t>(collective->size, sizeof asked));
    return border(thread, kind_name(asked.kind), [&]() -> plait_status {
      if (work) *work = nullptr;
      Communicator &c = *of(handle);
      if (is_forked(*c.world)) return refuse_child(thread, c.world->pid(), kind_name(asked.kind));
      Collective call;
      const plait_status s = check_arguments(thread, c.rank, c.size, asked, call);
      if (s < 0) return s;
      const double timeout = asked.timeout > 0 ? asked.timeout : c.group->timeout();
      auto w = work ? std::make_unique<Work>() : nullptr;
      const auto op = begin(thread, c, call, asked.tag, timeout);
      if (!work) return finish(thread, c, op);
      w->o = {1, work_type()};
      w->table = &static_cast<Provider *>(ctx)->table;
      w->world = c.world;
      w->operation = op;
      *work = w.release();
      return PLAIT_OK;
    });
  }

  static plait_status query(void *, plait_thread *thread, plait_work *handle, int32_t *done) {
    return border(thread, "query", [&]() -> plait_status {
      const auto &w = *static_cast<Work *>(handle);
      if (is_forked(*w.world)) return refuse_child(thread, w.world->pid(), "query");
      Operation &o = *w.operation;
      std::unique_lock<std::mutex> lock(o.mutex);
      *done = o.done;
      if (o.done) {
        o.release(lock);
        return status_of(thread, kind_name(o.call.kind), o.outcome, o.explanation);
      }
      lock.unlock();
      const std::string explanation = w.world->stuck();
      *done = !explanation.empty();
      return *done ? status_of(thread, kind_name(o.call.kind), Outcome::broken, explanation)
                   : PLAIT_OK;
    });
  }

  static plait_status wait(void *, plait_thread *thread, plait_work *handle) {
    return border(thread, "wait", [&]() -> plait_status {
      const auto &w = *static_cast<Work *>(handle);
      if (is_forked(*w.world)) return refuse_child(thread, w.world->pid(), "wait");
      // the collective goes on if the user stops
      return wait_for(thread, kind_name(w.operation->call.kind), *w.world, *w.operation,
                      [] { return true; });
    });
  }
};

}  // namespace plait::collectives
#endif  // PLAIT_COLLECTIVES_PROVIDER_HPP
