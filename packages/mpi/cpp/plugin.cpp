// The plug-in: the role "communicator" on the CPU under the name "mpi".
#include <plait/collectives/provider.hpp>

#include <unistd.h>

#include <atomic>
#include <cstdio>

#include "transport.hpp"

namespace plait::mpi {
namespace {

using collectives::World;

std::mutex mutex;
std::shared_ptr<World> world;  // of this process's MPI
const plait_runtime *runtime = nullptr;
std::atomic<bool> is_stuck{false};  // its thread did not end

class Mpi : public collectives::Provider {
 public:
  Mpi() : Provider("mpi") {}

  plait_status find(plait_thread *thread, const char *where, uint32_t, uint32_t, double,
                    Place &place) override {
    const auto fail = [&](plait_status s, const char *format, auto... args) {
      return thread->runtime->raise(thread, s, "open", format, args...);
    };
    if (std::strncmp(where, "mpi:", 4) != 0 || !where[4])
      return fail(PLAIT_VALUE_ERROR, "`where` must be \"mpi:NAME\", got \"%s\"", where);
    place.name = where + 4;
    place.living = place.name.rfind("living:", 0) == 0;
    const std::lock_guard<std::mutex> lock(mutex);
    place.world = world;
    if (!world)
      return fail(PLAIT_ERROR, "%s", "MPI is not connected; import plait_mpi, not its library");
    return PLAIT_OK;
  }
};

// never destroyed: threads use it until the process ends
Mpi &provider() {
  static auto *instance = new Mpi();
  return *instance;
}

template <class Handle>
std::string connect(const plait_mpi_facts &facts) {
  void *library = dlopen(facts.library, RTLD_NOW | RTLD_NOLOAD);
  if (!library) return std::string(facts.library) + " is not loaded";
  Functions<Handle> functions;
  std::string missing;
  if (!functions.load(library, missing)) return "the MPI library has no function " + missing;
  world = World::start(std::make_unique<Transport<Handle>>(facts, functions), runtime);
  return "";
}

plait_status init(const plait_runtime *the_runtime, const plait_plugin *self) {
  runtime = the_runtime;
  return runtime->provide(runtime->thread(), "communicator", kDLCPU, &provider().table.h, self,
                          nullptr);
}

}  // namespace
}  // namespace plait::mpi

using namespace plait::mpi;

const char *plait_mpi_connect(const plait_mpi_facts *facts) {
  static std::string reason;
  const std::lock_guard<std::mutex> lock(mutex);
  if (world) return nullptr;
  try {
    if (facts->handle_bytes == sizeof(void *))
      reason = connect<void *>(*facts);
    else if (facts->handle_bytes == sizeof(int))
      reason = connect<int>(*facts);
    else
      reason = "handles of " + std::to_string(facts->handle_bytes) + " bytes are unknown";
  } catch (const std::exception &e) {
    reason = e.what();
  }
  return reason.empty() ? nullptr : reason.c_str();
}

void plait_mpi_disconnect(double timeout) {
  std::shared_ptr<World> stopping;
  {
    const std::lock_guard<std::mutex> lock(mutex);
    stopping = world;
  }
  if (stopping && !stopping->stop(timeout)) is_stuck = true;
}

void plait_mpi_exit_if_stuck() {
  if (!is_stuck || world->stop(plait::collectives::stuck_seconds / 2)) return;
  std::fprintf(stderr, "plait_mpi: MPI does not return from %s; the process ends without %s\n",
               last_call.load(), "MPI_Finalize");
  _exit(1);
}

uint32_t plait_mpi_lost(uint32_t *ranks, uint32_t room) {
  const std::lock_guard<std::mutex> lock(mutex);
  if (!world) return 0;
  const std::vector<uint32_t> results = world->lost_peers();
  std::copy_n(results.begin(), std::min<size_t>(room, results.size()), ranks);
  return uint32_t(results.size());
}

extern "C" __attribute__((visibility("default")))
const plait_plugin plait_plugin_v1{PLAIT_HEADER(plait_plugin),
                                   "plait_mpi",
                                   "0.2.0",
                                   0,  // a program chooses it by name
                                   init,
                                   nullptr};
