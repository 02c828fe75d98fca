#include "host/nccl.h"

#include <plait/collectives/arguments.hpp>

#include <unistd.h>

#include <algorithm>
#include <cmath>

#include "host/nccl_group.h"

namespace plait::cuda {
namespace {

using nccl::Group;
using nccl::OperationPtr;

struct Communicator : plait_communicator {
  std::shared_ptr<Group> group;
};
struct Work : plait_work {
  std::shared_ptr<Group> group;
  OperationPtr operation;
};
Group &group_of(plait_communicator *c) { return *static_cast<Communicator *>(c)->group; }
Work *work_of(plait_work *w) { return static_cast<Work *>(w); }

// A forked child has neither the threads nor the device: it touches nothing.
bool is_forked(const Group &group) { return group.pid() != getpid(); }
plait_status refuse_child(plait_thread *thread, const Group &group, const char *caller) {
  return collectives::refuse_child(thread, group.pid(), caller);
}

void drop_communicator(plait_object *o) {
  auto *c = static_cast<Communicator *>(reinterpret_cast<plait_communicator *>(o));
  if (is_forked(*c->group)) return;
  c->group->close();
  delete c;
}
void drop_work(plait_object *o) {
  auto *w = work_of(reinterpret_cast<plait_work *>(o));
  if (!is_forked(*w->group)) delete w;
}
const plait_type communicator_type{PLAIT_HEADER(plait_type), "communicator", drop_communicator};
const plait_type work_type{PLAIT_HEADER(plait_type), "work", drop_work};

plait_communicator *new_communicator(std::shared_ptr<Group> group) {
  auto c = std::make_unique<Communicator>();
  c->o = {1, &communicator_type};
  c->table = &nccl_table();
  c->rank = group->rank();
  c->size = group->size();
  c->group = std::move(group);
  return c.release();
}

plait_status open(void *, plait_thread *thread, const char *where, uint32_t rank, uint32_t size,
                  double timeout, plait_communicator **out) {
  return plait::border(thread, "open", [&]() -> plait_status {
    const std::string text = where ? where : "";
    const size_t space = text.find(' ');
    if (space == std::string::npos)
      return runtime->raise(thread, PLAIT_VALUE_ERROR, "open",
                            "`where` must be \"PROVIDER NAME\", a provider of the CPU and a group "
                            "of its own, as \"shared_memory shm:x\"; got \"%s\"",
                            text.c_str());
    const std::string provider = text.substr(0, space);
    const auto *table = reinterpret_cast<const plait_collectives *>(
        runtime->provider("communicator", provider.c_str(), kDLCPU));
    if (!table)
      return runtime->raise(thread, PLAIT_VALUE_ERROR, "open",
                            "no communicator named %s is provided for the CPU; load its plug-in "
                            "first",
                            provider.c_str());
    PLAIT_TRY(driver::open(thread));
    if (!nccl::library()) return nccl::fail_without_library(thread, "open");
    plait_communicator *control = nullptr;
    PLAIT_TRY(
        table->open(table->ctx, thread, text.c_str() + space + 1, rank, size, timeout, &control));
    *out = new_communicator(std::make_shared<Group>(control, timeout));
    return PLAIT_OK;
  });
}

plait_status split(void *, plait_thread *thread, plait_communicator *c, int64_t color, int64_t key,
                   plait_communicator **out) {
  return plait::border(thread, "split", [&]() -> plait_status {
    *out = nullptr;
    Group &group = group_of(c);
    if (is_forked(group)) return refuse_child(thread, group, "split");
    std::shared_ptr<Group> part;
    PLAIT_TRY(group.split(thread, color, key, &part));
    if (part) *out = new_communicator(std::move(part));
    return PLAIT_OK;
  });
}

void abort(void *, plait_communicator *c, const char *reason) {
  if (!is_forked(group_of(c))) group_of(c).abort(reason ? reason : "no reason was given", false);
}
void interrupt(void *, plait_communicator *c, const char *where) {
  if (!is_forked(group_of(c))) group_of(c).abort(where ? where : "", true);
}

plait_status start(void *, plait_thread *thread, plait_communicator *c,
                   const plait_collective *collective, plait_stream *stream, plait_work **work) {
  plait_collective request{};
  memcpy(&request, collective, std::min<size_t>(collective->size, sizeof request));
  const char *const kind = collectives::kind_name(request.kind);
  return plait::border(thread, kind, [&]() -> plait_status {
    if (work) *work = nullptr;
    Group &group = group_of(c);
    if (is_forked(group)) return refuse_child(thread, group, kind);
    collectives::Collective call;
    PLAIT_TRY(
        collectives::check_arguments(thread, group.rank(), group.size(), request, call, kDLCUDA));
    const bool is_message = call.kind == PLAIT_SEND || call.kind == PLAIT_RECEIVE;
    if (is_message && request.tag)
      return runtime->raise(thread, PLAIT_NOT_IMPLEMENTED, kind,
                            "messages of NCCL have no tags: `tag` must be 0, got %lld",
                            static_cast<long long>(request.tag));
    const double timeout = request.timeout > 0 ? request.timeout : group.timeout();
    auto result = work ? std::make_unique<Work>() : nullptr;
    OperationPtr operation;
    PLAIT_TRY(group.start(thread, call, timeout, stream, !work, &operation));
    if (!work) return PLAIT_OK;
    result->o = {1, &work_type};
    result->table = &nccl_table();
    result->group = static_cast<Communicator *>(c)->group;
    result->operation = std::move(operation);
    *work = result.release();
    return PLAIT_OK;
  });
}

plait_status query(void *, plait_thread *thread, plait_work *handle, int32_t *done) {
  return plait::border(thread, "query", [&]() -> plait_status {
    const Work *w = work_of(handle);
    if (is_forked(*w->group)) return refuse_child(thread, *w->group, "query");
    return w->group->query(thread, *w->operation, done);
  });
}

plait_status wait(void *, plait_thread *thread, plait_work *handle) {
  return plait::border(thread, "wait", [&]() -> plait_status {
    const Work *w = work_of(handle);
    if (is_forked(*w->group)) return refuse_child(thread, *w->group, "wait");
    return w->group->wait(thread, *w->operation);
  });
}

}  // namespace

const plait_collectives &nccl_table() {
  static const plait_collectives table{PLAIT_HEADER(plait_collectives),
                                       "nccl",
                                       nullptr,
                                       open,
                                       split,
                                       abort,
                                       start,
                                       query,
                                       wait,
                                       interrupt};
  return table;
}

}  // namespace plait::cuda
