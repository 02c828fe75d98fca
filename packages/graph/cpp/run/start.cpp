#include "run/start.hpp"

#include <dlfcn.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <mutex>
#include <vector>

#include "graph.hpp"

namespace plait::graph {
namespace {

std::mutex starts;
std::vector<std::string> folders;

// The folder of this library, and the one in which its package lies: <folder>/plait_graph/lib.
std::vector<std::string> own_folders() {
  Dl_info info{};
  if (!dladdr(reinterpret_cast<const void *>(&start_runtime), &info) || !info.dli_fname) return {};
  const std::string path = info.dli_fname;
  const size_t slash = path.rfind('/');
  const std::string folder = slash == std::string::npos ? "." : path.substr(0, slash);
  return {folder, folder + "/../.."};
}

std::vector<std::string> split(const std::string &text) {
  std::vector<std::string> parts;
  for (size_t begin = 0; begin <= text.size();) {
    const size_t end = std::min(text.find(':', begin), text.size());
    if (end > begin) parts.push_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
  return parts;
}

// The path of lib<name>.so, or "" if no folder has it.
std::string find(const std::string &package, const std::string &name) {
  for (const std::string &folder : folders)
    for (const std::string &inner : {std::string("/"), "/" + package + "/lib/"}) {
      std::string path = folder;
      path += inner + "lib" + name + ".so";
      if (!access(path.c_str(), R_OK)) return path;
    }
  return "";
}

std::string require(const std::string &package, const std::string &name) {
  std::string path = find(package, name);
  if (!path.empty()) return path;
  std::string all;
  for (const std::string &folder : folders) all += (all.empty() ? "" : ", ") + folder;
  throw StartError("lib" + name + ".so is not there; looked in " +
                   (all.empty() ? "no folder" : all) + ", and in " + package + "/lib there");
}

bool has_avx2() {
#if defined(__x86_64__)
  return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") &&
         __builtin_cpu_supports("f16c");
#else
  return false;
#endif
}

const plait_runtime *load_runtime() {
  const std::string path = require("plait_abi", "plait_abi");
  void *library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (!library) throw StartError(dlerror());
  const auto get = reinterpret_cast<const plait_runtime *(*)()>(dlsym(library, "plait_runtime_v0"));
  const auto why = reinterpret_cast<const char *(*)()>(dlsym(library, "plait_runtime_refusal"));
  if (!get || !why) throw StartError(path + " is not the runtime of plait");
  const plait_runtime *result = get();
  if (!result) throw StartError(why());
  return result;
}

void load(const plait_runtime *r, const std::string &path) {
  plait_thread *thread = r->thread();
  if (r->load(thread, path.c_str()) >= 0) return;
  const std::string text = thread->error ? thread->error->message : path + " cannot be loaded";
  r->clear(thread);
  throw StartError(text);
}

}  // namespace

void start_runtime(const char *where) {
  const std::lock_guard<std::mutex> lock(starts);
  if (folders.empty()) folders = where ? split(where) : own_folders();
  if (runtime) return;
  const plait_runtime *r = load_runtime();
  load(r, require("plait_ops", "plait_ops"));
  load(r, require("plait_core", "plait_core"));
  // Later kernels are asked first. An installation for one processor has no base.
  const std::string fast = has_avx2() ? find("plait_core", "plait_cpu_avx2") : "";
  const std::string base = find("plait_core", "plait_cpu_base");
  if (fast.empty() || !base.empty()) load(r, require("plait_core", "plait_cpu_base"));
  if (!fast.empty()) load(r, fast);
  // Steps of optimizers, which have decompositions too.
  if (const std::string optim = find("plait_optim", "plait_optim"); !optim.empty()) load(r, optim);
  runtime = r;
}

void load_device(const std::string &name) {
  const std::lock_guard<std::mutex> lock(starts);
  const std::string path = find("plait_" + name, "plait_" + name);
  if (!path.empty()) load(runtime, path);
}

void set_threads(uint32_t n) {
  const plait_executor *executor = role<plait_executor>(runtime);
  if (!PLAIT_HAS(plait_executor, executor, set_width))
    throw StartError("the number of threads of this process is fixed");
  executor->set_width(executor->ctx, n);
}

namespace {

// An allocator that counts what the one below it gives.
const plait_allocator *below;
plait_allocator limited;
std::atomic<uint64_t> limit{0}, used{0};

plait_status limited_alloc(void *ctx, DLDevice device, uint64_t nbytes, plait_stream *stream,
                           void **data, void **block) {
  const uint64_t most = limit.load(std::memory_order_relaxed);
  const uint64_t before = used.fetch_add(nbytes, std::memory_order_relaxed);
  plait_status s = PLAIT_MEMORY_ERROR;
  if (most && (nbytes > most || before > most - nbytes))
    runtime->raise(runtime->thread(), s, nullptr,
                   "%llu bytes are requested; the memory limit is %llu bytes, of which %llu are in "
                   "use",
                   static_cast<unsigned long long>(nbytes), static_cast<unsigned long long>(most),
                   static_cast<unsigned long long>(before));
  else
    s = below->alloc(ctx, device, nbytes, stream, data, block);
  if (s < 0) used.fetch_sub(nbytes, std::memory_order_relaxed);
  return s;
}

void limited_free(void *ctx, void *data, uint64_t nbytes, void *block) {
  below->free(ctx, data, nbytes, block);
  used.fetch_sub(nbytes, std::memory_order_relaxed);
}

}  // namespace

void set_memory_limit(uint64_t nbytes) {
  const std::lock_guard<std::mutex> lock(starts);
  limit = nbytes;
  if (below) return;
  const auto *current = role<plait_allocator>(runtime, kDLCPU);
  std::memcpy(&limited, current, std::min<size_t>(current->h.size, sizeof limited));
  limited.h.size = uint32_t(std::min<size_t>(current->h.size, sizeof limited));
  limited.name = "limited";
  limited.alloc = limited_alloc;
  limited.free = limited_free;
  below = current;
  plait_thread *thread = runtime->thread();
  if (runtime->provide(thread, "allocator", kDLCPU, &limited.h, plugin, nullptr) >= 0) return;
  below = nullptr;
  throw StartError(thread->error ? thread->error->message : "no allocator can be registered");
}

}  // namespace plait::graph
