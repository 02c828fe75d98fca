// The runtime singleton: its function table, its threads, and the error for a second copy in one
// process.
#include <dlfcn.h>
#include <link.h>

#include <algorithm>
#include <climits>
#include <cstdlib>
#include <new>
#include <unordered_set>

#include "runtime.hpp"

namespace plait::abi {
namespace {

std::string own_path, refusal;

// Threads.

__thread Thread *current_thread __attribute__((tls_model("initial-exec"))) = nullptr;
__thread bool thread_gone __attribute__((tls_model("initial-exec"))) = false;

ForkMutex threads_mutex;
auto &live_threads = *new std::unordered_set<uint64_t>;  // their numbers; never destroyed
uint64_t threads = 0;

struct ThreadEnd {  // its destructor runs at thread exit
  ~ThreadEnd() {
    Thread *t = current_thread;
    thread_gone = true;  // blocks that are given back after this go to free
    current_thread = nullptr;
    if (!t) return;
    clear(t);
    release_streams(t);
    {
      const std::lock_guard<ForkMutex> lock(threads_mutex);
      live_threads.erase(t->number);
    }
    forget_thread(t->number);
    delete t;
  }
};

Thread *make_thread() {
  static thread_local ThreadEnd end;
  (void)&end;
  auto *t = new Thread();
  static_cast<plait_thread &>(*t) = plait_thread{};
  t->h = PLAIT_HEADER(plait_thread);
  t->runtime = &runtime;
  t->device = {kDLCPU, 0};
  {
    const std::lock_guard<ForkMutex> lock(threads_mutex);
    live_threads.insert(t->number = ++threads);
  }
  return current_thread = t;
}

plait_thread *thread_for_table() { return this_thread(); }

uint64_t report(plait_record *list, uint64_t room, uint64_t record_size) {
  std::vector<plait_record> all;
  report_plugins(all);
  report_roles(all);
  report_ops(all);
  report_observers(all);
  report_fallbacks(all);
  for (size_t i = 0; i < room && i < all.size(); i++) {
    char *to = reinterpret_cast<char *>(list) + i * record_size;
    std::memset(to, 0, record_size);
    std::memcpy(to, &all[i], std::min<size_t>(record_size, sizeof all[i]));
  }
  return all.size();
}

// One runtime in a process.

int other_copy(dl_phdr_info *info, size_t, void *) {
  const std::string name = info->dlpi_name ? info->dlpi_name : "";
  const size_t slash = name.rfind('/');
  if (name.substr(slash == std::string::npos ? 0 : slash + 1).rfind("libplait_abi.so", 0) != 0)
    return 0;
  char real[PATH_MAX];
  const std::string path = realpath(name.c_str(), real) ? real : name;
  if (path == own_path) return 0;
  refusal = "a second plait runtime, " + own_path + ", was loaded, but " + path +
            " is already in this process; install only one plait-abi";
  return 1;
}

bool start() {
  Dl_info info{};
  char real[PATH_MAX];
  if (dladdr(reinterpret_cast<const void *>(&plait_runtime_v0), &info) && info.dli_fname)
    own_path = realpath(info.dli_fname, real) ? real : info.dli_fname;
  if (dl_iterate_phdr(other_copy, nullptr)) return false;
  runtime.path = own_path.c_str();
  install_default_roles();
  return true;
}

}  // namespace

bool is_alive(uint64_t thread) {
  const std::lock_guard<ForkMutex> lock(threads_mutex);
  return live_threads.count(thread);
}

Thread *this_thread() { return current_thread ? current_thread : make_thread(); }
Thread *this_thread_if_alive() {
  if (current_thread) return current_thread;
  try {
    return thread_gone ? nullptr : make_thread();
  } catch (const std::bad_alloc &) {
    return nullptr;
  }
}

DLDataType default_dtype = dtype::float32;
uint64_t settings = 0;

// Other files and libraries get it as const; `path` is filled in at the start.
plait_runtime runtime{
    PLAIT_HEADER(plait_runtime),
    nullptr,
    thread_for_table,
    role,
    provider,
    define,
    find_op,
    list_ops,
    implement,
    retract,
    layer,
    call,
    call_below,
    decompose,
    result,
    result_strided,
    view,
    cast,
    tensor_new,
    tensor_on,
    tensor_alias,
    storage_new,
    storage_wrap,
    tensor_repoint,
    tensors_value,
    release_value,
    touched,
    generator_new,
    device_count,
    stream_new,
    stream_wrap,
    current_stream,
    set_stream,
    stream_query,
    stream_synchronize,
    synchronize,
    event_new,
    event_record,
    event_query,
    event_wait,
    stream_wait,
    event_elapsed,
    record_use,
    pinned_new,
    host_copy,
    set_fallback,
    raise,
    fail,
    raise_host,
    clear,
    provide,
    observe,
    &observed,
    emit,
    begin_event,
    end_event,
    load,
    attach,
    report,
    detach,
    &default_dtype,
    &settings,
    cost,
    quiesce,
    implement_named,
    use_device,
    event_share,
    event_open,
};

}  // namespace plait::abi

extern "C" __attribute__((visibility("default"))) const plait_runtime *plait_runtime_v0(void) {
  static const bool alone = plait::abi::start();
  return alone ? &plait::abi::runtime : nullptr;
}
extern "C" __attribute__((visibility("default"))) const char *plait_runtime_refusal(void) {
  return plait::abi::refusal.c_str();
}
