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

#include "meeting.hpp"
#include "secret.hpp"
#include "ucx_transport.hpp"

namespace plait::ucx {
namespace {

using collectives::Outcome;
using collectives::World;

constexpr double stop_seconds = 2;  // for what was begun when a world ends

const plait_runtime *runtime = nullptr;

// A world that ends when nobody uses it: its communicators and works hold it.
struct Used {
  std::shared_ptr<World> world;
  explicit Used(std::shared_ptr<World> w) : world(std::move(w)) {}
  Used(const Used &) = delete;
  ~Used();
};

struct Registry {
  ForkMutex mutex;
  std::map<std::string, std::weak_ptr<Used>> worlds;  // by `where` of their first group
  // those that end; whoever waits for them at the end of the process waits for these
  std::map<World *, std::shared_ptr<World>> ending;
  int64_t pid = 0;  // of the process that has worlds
};
Registry &registry() {
  static auto *made = new Registry();  // used until the process ends
  return *made;
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
    const auto found = r.worlds.find(where.substr(0, at));
    if (found == r.worlds.end()) continue;
    if (auto used = found->second.lock()) return used;
    r.worlds.erase(found);
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

class Ucx : public collectives::Provider {
 public:
  Ucx() : Provider("ucx") {}

  plait_status find(plait_thread *thread, const char *where, uint32_t rank, uint32_t size,
                    double timeout, Place &out) override {
    std::shared_ptr<Used> used = known_world(where);
    if (!used) {
      const plait_status s = make_world(thread, where, rank, size, timeout, used);
      if (s < 0) return s;
    }
    out.name = where;
    World *world = used->world.get();
    out.world = std::shared_ptr<World>(std::move(used), world);
    return PLAIT_OK;
  }

 private:
  static plait_status make_world(plait_thread *thread, const char *where, uint32_t rank,
                                 uint32_t size, double timeout, std::shared_ptr<Used> &out) {
    const auto fail = [&](plait_status s, const std::string &why) {
      return thread->runtime->raise(thread, s, "open", "%s", why.c_str());
    };
    if (size > most_ranks)
      return fail(PLAIT_VALUE_ERROR, "`size` must be at most " + std::to_string(most_ranks) +
                                         ", got " + std::to_string(size));
    std::string why;
    ucx::Place place;
    if (!parse_place(where, place, why)) return fail(PLAIT_VALUE_ERROR, why);
    if (is_child_of_user())
      return fail(PLAIT_ERROR,
                  "this process is a fork of one that used UCX at that time, which UCX does not "
                  "allow; start processes with the method \"spawn\"");
    Guest self{rank, size, "", ""};
    if (!job_secret(self.secret, why)) return fail(PLAIT_ERROR, why);
    auto transport = UcxTransport::open(devices_towards(place), why);
    if (!transport) return fail(PLAIT_ERROR, why);
    self.brought = transport->address();
    collectives::Signals signals(thread);
    const std::function<bool()> interrupted = [&] { return signals.asked(); };
    std::vector<std::string> all;
    switch (meet(place, self, timeout, interrupted, all, why)) {
      case Met::all: break;
      case Met::failed: return fail(PLAIT_ERROR, why);
      case Met::timed_out: return fail(PLAIT_TIMEOUT_ERROR, why);
      case Met::interrupted:
        return collectives::status_of(thread, "open", Outcome::interrupted, why);
    }
    transport->join(rank, all);
    out = std::make_shared<Used>(World::start(std::move(transport), runtime, true));
    Registry &r = registry();
    const std::lock_guard<ForkMutex> lock(r.mutex);
    r.pid = getpid();
    r.worlds[where] = out;
    return PLAIT_OK;
  }
};

Ucx &provider() {
  static auto *made = new Ucx();  // used until the process ends
  return *made;
}

plait_status init(const plait_runtime *given, const plait_plugin *self) {
  runtime = given;
  return runtime->provide(runtime->thread(), "communicator", kDLCPU, &provider().table.h, self,
                          nullptr);
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
  static std::string why;
  why.clear();
  const plait::ucx::Functions *f = plait::ucx::library(why);
  if (!f) return why.c_str();
  for (int i = 0; i < 3; i++) numbers[i] = f->version[i];
  return nullptr;
}

// Finishes what was begun, and tells the others that this process ends.
PLAIT_EXPORT void plait_ucx_disconnect() { plait::ucx::quiesce(); }

PLAIT_EXPORT const plait_plugin plait_plugin_v1{PLAIT_HEADER(plait_plugin),
                                                "plait_ucx",
                                                "0.2.0",
                                                0,  // it is chosen by its name
                                                plait::ucx::init,
                                                plait::ucx::quiesce};
