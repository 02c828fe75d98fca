// What plait_run_memory tells of graphs, and what their runs take: bytes of the allocator, and of
// the process. Arguments: the folders of libraries, a small graph, the number of threads. Standard
// input has the names of files, a line each: the graph in NAME, its inputs in NAME.0, NAME.1 and so
// on; without such a file an input is zeros. A line of the output has the name, "fixed" or
// "varying" shapes, what is told, what the question took, what three runs took, and the growth of
// the process.
#include <dlfcn.h>
#include <plait/run.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iostream>
#include <iterator>
#include <plait/plait.hpp>
#include <string>
#include <vector>

namespace {

std::atomic<int64_t> live{0}, peak{0};
const plait_allocator *below;
plait_allocator counting;

plait_status count_alloc(void *ctx, DLDevice device, uint64_t nbytes, plait_stream *stream,
                         void **data, void **block) {
  const plait_status s = below->alloc(ctx, device, nbytes, stream, data, block);
  if (s != PLAIT_OK) return s;
  const int64_t now = live += int64_t(nbytes);
  for (int64_t most = peak; now > most && !peak.compare_exchange_weak(most, now);) continue;
  return s;
}

void count_free(void *ctx, void *data, uint64_t nbytes, void *block) {
  below->free(ctx, data, nbytes, block);
  live -= int64_t(nbytes);
}

// An allocator that counts, above all others of the process.
void count_allocations(const char *library) {
  void *abi = dlopen(library, RTLD_NOW);
  const auto get = reinterpret_cast<const plait_runtime *(*)()>(dlsym(abi, "plait_runtime_v0"));
  const plait_runtime *runtime = get();
  below = plait::role<plait_allocator>(runtime, kDLCPU);
  std::memcpy(&counting, below, below->h.size < sizeof counting ? below->h.size : sizeof counting);
  counting.name = "test";
  counting.alloc = count_alloc;
  counting.free = count_free;
  runtime->provide(runtime->thread(), "allocator", kDLCPU, &counting.h, nullptr, nullptr);
}

int64_t most_of_the_process() {  // resident bytes
  std::ifstream file("/proc/self/status");
  for (std::string line; std::getline(file, line);)
    if (line.compare(0, 6, "VmHWM:") == 0) return std::atoll(line.c_str() + 6) * 1024;
  return 0;
}

plait_run *opened(const char *path, const plait_run_settings &settings) {
  plait_run *run = nullptr;
  if (!plait_run_open(path, &settings, &run)) return run;
  std::fprintf(stderr, "%s\n", plait_run_error(run));
  std::exit(1);
}

// Sets the inputs and runs; false after an error, such as of an operator that refuses them.
bool execute(plait_run *run, const std::string &name) {
  int code = 0;
  for (uint32_t i = 0; !code && i < plait_run_count(run, PLAIT_RUN_INPUT); i++) {
    plait_run_tensor x{};
    x.size = sizeof x;
    code = plait_run_get(run, PLAIT_RUN_INPUT, i, &x);
    std::ifstream file(name + "." + std::to_string(i), std::ios::binary);
    std::vector<char> data{std::istreambuf_iterator<char>(file), {}};
    data.resize(x.nbytes);
    if (!code) code = plait_run_set(run, PLAIT_RUN_INPUT, i, data.data(), x.nbytes, 0);
  }
  for (int i = 0; i < 3 && !code; i++) code = plait_run_execute(run);
  return !code;
}

bool has_fixed_shapes(plait_run *run) {
  for (uint32_t i = 0; i < plait_run_count(run, PLAIT_RUN_OUTPUT); i++) {
    plait_run_tensor y{};
    y.size = sizeof y;
    if (plait_run_get(run, PLAIT_RUN_OUTPUT, i, &y) || y.ndim < 0) return false;
  }
  return true;
}

void measure(const std::string &name, const plait_run_settings &settings) {
  live = peak = 0;
  const int64_t before = most_of_the_process();
  plait_run *run = opened(name.c_str(), settings);
  const bool is_fixed = has_fixed_shapes(run);
  const auto told = int64_t(plait_run_memory(run)), asking = peak.load();
  plait_run_close(run);
  live = peak = 0;
  run = opened(name.c_str(), settings);
  const bool runs = execute(run, name);
  const int64_t taken = peak, grown = most_of_the_process() - before;
  if (int64_t(plait_run_memory(run)) != told) {
    std::fprintf(stderr, "%s: another number is told after a run\n", name.c_str());
    std::exit(1);
  }
  plait_run_close(run);
  const char *kind = !runs ? "error" : is_fixed ? "fixed" : "varying";
  std::cout << name << ' ' << kind << ' ' << told << ' ' << asking << ' ' << taken << ' ' << grown
            << std::endl;
}

}  // namespace

int main(int, char **argv) {
  plait_run_settings settings{};
  settings.size = sizeof settings;
  settings.libraries = argv[1];
  settings.threads = uint32_t(std::atoi(argv[3]));
  plait_run *small = opened(argv[2], settings);
  execute(small, argv[2]);  // what a process takes for any graph
  const std::string folders = argv[1];
  count_allocations((folders.substr(0, folders.find(':')) + "/libplait_abi.so").c_str());
  for (std::string name; std::getline(std::cin, name);) measure(name, settings);
  plait_run_close(small);
}
