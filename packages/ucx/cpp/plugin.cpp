// The plug-in: the role "communicator" on the CPU under the name "ucx".
#include <unistd.h>

#include <chrono>
#include <map>
#include <set>
#include <thread>
#include <vector>

// the provider's header needs those above
#include <plait/collectives/provider.hpp>
#include <plait/fork.hpp>

#include "interface.hpp"
#include "ucx_transport.hpp"

namespace plait::ucx {
namespace {

using collectives::Outcome;
using collectives::World;

constexpr double stop_seconds = 2;  // for running operations when a world ends

const plait_runtime *runtime = nullptr;

// A world that ends when it is unused: its communicators and works hold it.
struct Used {
  std::shared_ptr<World> world;
  explicit Used(std::shared_ptr<World> w) : world(std::move(w)) {}
  Used(const Used &) = delete;
  ~Used();
};

// A process that meets the others: its worker, and the world when all addresses are known.
struct Preparation {
  std::string where;
  uint32_t rank = 0;
  std::unique_ptr<UcxTransport> transport;
  std::shared_ptr<Used> used;
};

struct Registry {
  ForkMutex mutex;
  std::set<Preparation *> prepared;
  std::map<std::string, std::weak_ptr<Used>> worlds;  // by `where` of their first group
  // those that end; whoever waits for them at the end of the process waits for these
  std::map<World *, std::shared_ptr<World>> ending;
  int64_t pid = 0;  // of the process that has worlds
};
Registry &registry() {
  static auto *result = new Registry();  // used until the process ends
  return *result;
}

void stop_in_background(std::shared_ptr<World> world) {
  Registry &r = registry();
  {
    const std::lock_guard<ForkMutex> lock(r.mutex);
    r.ending[world.get()] = world;
  }
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  std::thread([world] {
    world->stop(stop_seconds);
    const std::lock_guard<ForkMutex> lock(registry().mutex);
    registry().ending.erase(world.get());
  }).detach();
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

Used::~Used() {
  if (world->pid() != getpid()) return;
  try {
    stop_in_background(world);
  } catch (const std::exception &) {  // no thread can be started
    world->stop(stop_seconds);
  }
}

// The world of an earlier group, if `where` is its name with '/' or '!' and more behind it.
std::shared_ptr<Used> known_world(const std::string &where) {
  Registry &r = registry();
  const std::lock_guard<ForkMutex> lock(r.mutex);
  if (r.pid != getpid()) return nullptr;
  for (size_t at = where.find_last_of("/!"); at != std::string::npos && at > 0;
       at = where.find_last_of("/!", at - 1)) {
    const auto it = r.worlds.find(where.substr(0, at));
    if (it == r.worlds.end()) continue;
    if (auto used = it->second.lock()) return used;
    r.worlds.erase(it);
  }
  return nullptr;
}

bool is_child_of_user() {
  Registry &r = registry();
  const std::lock_guard<ForkMutex> lock(r.mutex);
  if (!r.pid || r.pid == getpid()) return false;
  for (const auto &each : r.worlds)
    if (!each.second.expired()) return true;
  return !r.ending.empty();
}

// The world that `plait_ucx_join` made for this member.
std::shared_ptr<Used> prepared_world(const std::string &where, uint32_t rank) {
  Registry &r = registry();
  const std::lock_guard<ForkMutex> lock(r.mutex);
  for (const Preparation *p : r.prepared)
    if (p->used && p->where == where && p->rank == rank) return p->used;
  return nullptr;
}

class Ucx : public collectives::Provider {
 public:
  Ucx() : Provider("ucx") {}

  plait_status find(plait_thread *thread, const char *where, uint32_t rank, uint32_t, double,
                    Place &out) override {
    std::shared_ptr<Used> used = known_world(where);
    if (!used) used = prepared_world(where, rank);
    if (!used)
      return thread->runtime->raise(
          thread, PLAIT_ERROR, "open",
          "the processes have not met at \"%s\"; plait_ucx_begin and plait_ucx_join come first",
          where);
    out.name = where;
    World *world = used->world.get();
    out.world = std::shared_ptr<World>(std::move(used), world);
    return PLAIT_OK;
  }
};

Ucx &provider() {
  static auto *result = new Ucx();  // used until the process ends
  return *result;
}

plait_status init(const plait_runtime *host_runtime, const plait_plugin *self) {
  runtime = host_runtime;
  return runtime->provide(runtime->thread(), "communicator", kDLCPU, &provider().table.h, self,
                          nullptr);
}

// The text of an error of this thread, until its next one.
const char *keep_text(const std::string &text) {
  static thread_local std::string kept;
  kept = text;
  return kept.c_str();
}

Preparation *begin(const char *where, uint32_t rank, const char *devices, const char *&reason) try {
  if (is_child_of_user()) {
    reason =
        "this process is a fork of one that used UCX at that time, which UCX does not allow; start "
        "processes with the method \"spawn\"";
    return nullptr;
  }
  std::string text;
  auto p = std::make_unique<Preparation>();
  p->where = where;
  p->rank = rank;
  p->transport = UcxTransport::open(devices, text);
  reason = keep_text(text);
  if (!p->transport) return nullptr;
  Registry &r = registry();
  const std::lock_guard<ForkMutex> lock(r.mutex);
  r.prepared.insert(p.get());
  return p.release();
} catch (const std::exception &error) {
  reason = keep_text(error.what());
  return nullptr;
}

const char *join(Preparation &p, uint32_t size, const char *const *addresses,
                 const size_t *bytes) try {
  std::vector<std::string> all;
  for (uint32_t i = 0; i < size; i++) all.emplace_back(addresses[i], bytes[i]);
  p.transport->join(p.rank, all);
  auto used = std::make_shared<Used>(World::start(std::move(p.transport), runtime, true));
  Registry &r = registry();
  const std::lock_guard<ForkMutex> lock(r.mutex);
  r.pid = getpid();
  r.worlds[p.where] = used;
  p.used = std::move(used);
  return nullptr;
} catch (const std::exception &error) {
  return keep_text(error.what());
}

void end(Preparation *p) {
  {
    Registry &r = registry();
    const std::lock_guard<ForkMutex> lock(r.mutex);
    r.prepared.erase(p);
  }
  delete p;
}

// Threads must not use UCX any more when the process ends, as the library's own end does not wait
// for them. Worlds that are used are never destroyed from here on, and those that end are waited
// for.
void quiesce() {
  static auto *kept = new std::set<std::shared_ptr<Used>>();
  std::vector<std::shared_ptr<World>> stopping;
  {
    Registry &r = registry();
    const std::lock_guard<ForkMutex> lock(r.mutex);
    if (r.pid != getpid()) return;
    for (const auto &each : r.worlds)
      if (auto used = each.second.lock()) {
        stopping.push_back(used->world);
        kept->insert(std::move(used));
      }
    for (const auto &each : r.ending) stopping.push_back(each.second);
  }
  for (const auto &world : stopping) world->stop(stop_seconds);
  stopping.clear();
  const double until = collectives::now() + stop_seconds;
  while (UcxTransport::alive() > kept->size() && collectives::now() < until)
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
}

}  // namespace
}  // namespace plait::ucx

#define PLAIT_EXPORT extern "C" __attribute__((visibility("default")))

// The path of libucp that is tried before the system's.
PLAIT_EXPORT void plait_ucx_set_library(const char *path) { plait::ucx::set_library_path(path); }

// The three numbers of UCX's version; NULL, or why UCX cannot be used.
PLAIT_EXPORT const char *plait_ucx_version(unsigned *numbers) {
  static std::string reason;
  reason.clear();
  const plait::ucx::Functions *f = plait::ucx::library(reason);
  if (!f) return reason.c_str();
  for (int i = 0; i < 3; i++) numbers[i] = f->version[i];
  return nullptr;
}

// ---- the meeting -------------------------------------------------------------------------------
// UCX has no way for processes to find each other. The host language brings them together before
// `open` of the role: each begins, all exchange their addresses, each joins, opens, and ends.
// `plait_ucx` does that in Python; another host may use MPI, files or a launcher of its own.

// Whether `where` is the name of an open group with '/' or '!' and more behind it: then its
// processes have met already, and `open` needs no preparation.
PLAIT_EXPORT int plait_ucx_is_open(const char *where) {
  return plait::ucx::known_world(where) != nullptr;
}

// Prepares a member of the group that `open` will name by `where` and `rank`, on devices that UCX
// knows by these names. NULL, with a text that is valid until the thread's next call, if it fails.
PLAIT_EXPORT void *plait_ucx_begin(const char *where, uint32_t rank, const char *devices,
                                   const char **reason) {
  return plait::ucx::begin(where, rank, devices, *reason);
}

// What the other members need of this one.
PLAIT_EXPORT const char *plait_ucx_address(const void *preparation, size_t *bytes) {
  const std::string &address =
      static_cast<const plait::ucx::Preparation *>(preparation)->transport->address();
  *bytes = address.size();
  return address.data();
}

// Takes the addresses of all members, by rank. NULL, or why it fails.
PLAIT_EXPORT const char *plait_ucx_join(void *preparation, uint32_t size,
                                        const char *const *addresses, const size_t *bytes) {
  return plait::ucx::join(*static_cast<plait::ucx::Preparation *>(preparation), size, addresses,
                          bytes);
}

// The member has opened its group, or does not open it.
PLAIT_EXPORT void plait_ucx_end(void *preparation) {
  plait::ucx::end(static_cast<plait::ucx::Preparation *>(preparation));
}

// The name of the interface that has an address; empty if none has.
PLAIT_EXPORT const char *plait_ucx_interface(const char *ip) {
  static thread_local std::string name;
  name = plait::ucx::interface_of(ip);
  return name.c_str();
}

// Finishes what was begun, and tells the others that this process ends.
PLAIT_EXPORT void plait_ucx_disconnect() { plait::ucx::quiesce(); }

PLAIT_EXPORT const plait_plugin plait_plugin_v1{PLAIT_HEADER(plait_plugin),
                                                "plait_ucx",
                                                "0.2.0",
                                                0,  // it is chosen by its name
                                                plait::ucx::init,
                                                plait::ucx::quiesce};
