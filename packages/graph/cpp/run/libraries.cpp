#include "run/libraries.hpp"

#include <dlfcn.h>
#include <unistd.h>

#include <algorithm>
#include <vector>

#include "graph.hpp"

namespace plait::graph {
namespace {

const plait_runtime *loaded;
std::vector<std::string> folders;

// The folder of this library, and the one in which its package lies: <folder>/plait_graph/lib.
std::vector<std::string> own_folders() {
  Dl_info info{};
  if (!dladdr(reinterpret_cast<const void *>(&load_libraries), &info) || !info.dli_fname) return {};
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

const plait_runtime *load_libraries(const char *where) {
  if (folders.empty()) folders = where ? split(where) : own_folders();
  if (loaded) return loaded;
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
  loaded = r;
  return r;
}

void load_device_library(const std::string &name) {
  const std::string path = find("plait_" + name, "plait_" + name);
  if (!path.empty()) load(loaded, path);
}

}  // namespace plait::graph
