#include "libraries.hpp"

#include <unistd.h>

#include <atomic>
#include <mutex>

namespace plait::node {
namespace {

struct Library {
  const char *package, *name;
  bool optional, avx2;
};
const Library libraries[] = {
#include "libraries.inc"
};

std::atomic<const plait_runtime *> loaded;  // threads of JavaScript share it

bool has_avx2() {
#if defined(__x86_64__)
  return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") &&
         __builtin_cpu_supports("f16c");
#else
  return false;
#endif
}

[[noreturn]] void missing(const std::string &folders, const std::string &package,
                          const std::string &name) {
  if (folders.empty())
    fail(PLAIT_VALUE_ERROR,
         "folders with the libraries of plait are required, as an argument or in PLAIT_LIBRARIES");
  fail(PLAIT_ERROR, "lib" + name + ".so is not there; looked in " + folders + ", and in " +
                        package + "/lib there");
}

void check_with(const plait_runtime *r, plait_status status) {
  if (status >= 0) return;
  plait_thread *t = r->thread();
  const std::string text = t->error ? t->error->message : "plait: an error without a text";
  r->clear(t);
  fail(status, text);
}

}  // namespace

std::string find_library(const std::string &folders, const std::string &package,
                         const std::string &name) {
  for (size_t begin = 0; begin < folders.size();) {
    const size_t end = std::min(folders.find(':', begin), folders.size());
    for (const std::string &inner : {std::string("/"), "/" + package + "/lib/"}) {
      const std::string path = folders.substr(begin, end - begin) + inner + "lib" + name + ".so";
      if (end > begin && !access(path.c_str(), R_OK)) return path;
    }
    begin = end + 1;
  }
  return "";
}

void *open_library(const std::string &folders, const std::string &package,
                   const std::string &name) {
  const std::string path = find_library(folders, package, name);
  if (path.empty()) missing(folders, package, name);
  void *library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (!library) fail(PLAIT_ERROR, dlerror());
  return library;
}

void load_libraries(const std::string &folders) {
  static std::mutex lock;
  const std::lock_guard<std::mutex> guard(lock);
  if (loaded.load()) return;
  void *library = open_library(folders, libraries[0].package, libraries[0].name);
  decltype(&plait_runtime_v0) get;
  decltype(&plait_runtime_refusal) why;
  find(library, "plait_runtime_v0", &get);
  find(library, "plait_runtime_refusal", &why);
  const plait_runtime *r = get();
  if (!r) fail(PLAIT_ERROR, why());
  bool kernels = false;
  for (const Library &each : libraries) {
    if (&each == libraries || (each.avx2 && !has_avx2())) continue;
    const std::string path = find_library(folders, each.package, each.name);
    if (path.empty() && !each.optional) missing(folders, each.package, each.name);
    if (path.empty()) continue;
    kernels |= std::string(each.name).rfind("plait_cpu", 0) == 0;
    check_with(r, r->load(r->thread(), path.c_str()));
  }
  if (!kernels) missing(folders, "plait_core", "plait_cpu_base");
  loaded.store(r);
}

const plait_runtime *runtime() {
  const plait_runtime *r = loaded.load();
  if (!r) fail(PLAIT_ERROR, "plait is not loaded: call load first");
  return r;
}

plait_thread *thread() { return runtime()->thread(); }

void check_status(plait_status status) { check_with(runtime(), status); }

const plait_engine *engine() {
  const plait_engine *e = role<plait_engine>(runtime());
  if (!e) fail(PLAIT_ERROR, "no engine is loaded: libplait_autograd.so is not in the folders");
  return e;
}

}  // namespace plait::node
