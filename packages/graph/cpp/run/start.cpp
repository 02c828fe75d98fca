#include "run/start.hpp"

#include <mutex>

#include "graph.hpp"
#include "run/libraries.hpp"

namespace plait::graph {
namespace {

std::mutex starts;

}  // namespace

void start_runtime(const char *folders) {
  const std::lock_guard<std::mutex> lock(starts);
  const plait_runtime *loaded = load_libraries(folders);
  if (!runtime) runtime = loaded;
}

void load_device(const std::string &name) {
  const std::lock_guard<std::mutex> lock(starts);
  load_device_library(name);
}

void set_threads(uint32_t n) {
  const plait_executor *executor = role<plait_executor>(runtime);
  if (!PLAIT_HAS(plait_executor, executor, set_width))
    throw StartError("the number of threads of this process is fixed");
  executor->set_width(executor->ctx, n);
}

}  // namespace plait::graph
