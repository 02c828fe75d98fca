// Plug-ins: a shared library or a table in memory, checked for its version, initialised once, never
// unloaded.
#include <dlfcn.h>

#include <climits>
#include <cstdlib>
#include <cstring>

#include "devices.hpp"
#include "runtime.hpp"
#include "uses.hpp"

namespace plait::abi {
namespace {
ForkMutex plugins_mutex;
// never destroyed, as the tables of operators
auto &plugins = *new std::vector<const plait_plugin *>;
auto &by_path = *new std::unordered_map<std::string, const plait_plugin *>;

thread_local const plait_plugin *in_init = nullptr;

// In the order of their starts; a plug-in that was detached may still have threads.
auto &to_quiesce = *new std::vector<const plait_plugin *>;

// Handlers of `exit` run in reverse order, so this one runs before the destructors of the plug-in's
// library and of the drivers that its `init` started.
plait_status quiesce_at_exit(plait_thread *thread, const plait_plugin *p) {
  if (!p->quiesce) return PLAIT_OK;
  const std::lock_guard<ForkMutex> lock(plugins_mutex);
  for (const plait_plugin *each : to_quiesce)
    if (each == p) return PLAIT_OK;
  if (std::atexit(quiesce))
    return raise(thread, PLAIT_MEMORY_ERROR, "attach", "out of memory for an exit handler");
  to_quiesce.push_back(p);
  return PLAIT_OK;
}
}  // namespace

void quiesce() {
  const auto stop = []() -> plait_status {
    std::vector<const plait_plugin *> list;
    {
      const std::lock_guard<ForkMutex> lock(plugins_mutex);
      list.swap(to_quiesce);
    }
    for (auto p = list.rbegin(); p != list.rend(); ++p) {  // later ones may use earlier ones
      if (has_gone_device(*p)) continue;  // its threads are those of the parent
      forget_observers_of(this_thread(), *p);
      end_devices_of(*p);
      (*p)->quiesce();
    }
    return PLAIT_OK;
  };
  unlocked(stop);  // threads may need the host language's lock to end
}

bool version_fits(plait_thread *thread, const char *subject, const plait_header &h) {
  const bool too_old = h.major == 0 && h.minor < 3;  // 0.3 is the first that later ones run
  if (h.major == PLAIT_ABI_MAJOR && h.minor <= PLAIT_ABI_MINOR && !too_old) return true;
  raise(thread, PLAIT_ERROR, nullptr, "%s was built for plait ABI %u.%u, this runtime is %d.%d; %s",
        subject, h.major, h.minor, PLAIT_ABI_MAJOR, PLAIT_ABI_MINOR,
        h.major == PLAIT_ABI_MAJOR && !too_old
            ? "install a later plait-abi, or build it with an older PLAIT_TARGET"
            : "rebuild it or install the matching plait-abi");
  return false;
}

bool size_fits(plait_thread *thread, const char *subject, const plait_header &h, size_t required) {
  if (h.size >= required) return true;
  raise(thread, PLAIT_VALUE_ERROR, nullptr, "%s has %u bytes; %zu are required", subject, h.size,
        required);
  return false;
}

bool flags_fit(plait_thread *thread, const char *subject, uint64_t flags, uint64_t known) {
  const uint64_t unknown = flags & ~known & PLAIT_MUST_UNDERSTAND;
  if (!unknown) return true;
  raise(thread, PLAIT_VALUE_ERROR, nullptr,
        "%s has flag bit %d, which this runtime (plait ABI %d.%d) doesn't know and must understand",
        subject, __builtin_ctzll(unknown), PLAIT_ABI_MAJOR, PLAIT_ABI_MINOR);
  return false;
}

namespace {
void take_back(plait_thread *thread, const plait_plugin *p) {
  forget_observers_of(thread, p);
  retract_roles_of(p);
  retract_ops_of(p);
}
}  // namespace

namespace {

struct Starting {  // a plug-in whose `init` runs
  const plait_plugin *plugin;
  const plait_thread *thread;
  uint32_t process;  // the number of forks: a child doesn't wait for threads of its parent
};
auto &starting = *new std::vector<Starting>;  // guarded by plugins_mutex

bool starts_in_other_thread(const plait_plugin *p, const plait_thread *thread) {
  const std::lock_guard<ForkMutex> lock(plugins_mutex);
  for (const Starting &s : starting)
    if (s.plugin == p && s.thread != thread && s.process == forks.number) return true;
  return false;
}
// On hosts without a global lock another thread may be in the plug-in's `init`: what it brings is
// there when that ends.
void wait_until_started(const plait_plugin *p, const plait_thread *thread) {
  constexpr int most_waits = 10000;  // 10 s: `init` may itself wait for this thread
  for (int i = 0; has_free_threads() && i < most_waits && starts_in_other_thread(p, thread); i++) {
    const timespec pause{0, 1000000};
    nanosleep(&pause, nullptr);
  }
}
void end_start(const plait_plugin *p) {
  const std::lock_guard<ForkMutex> lock(plugins_mutex);
  for (size_t i = starting.size(); i-- > 0;)
    if (starting[i].plugin == p) starting.erase(starting.begin() + long(i));
}

}  // namespace

plait_status attach(plait_thread *thread, const plait_plugin *p) {
  return border(thread, "attach", [&]() -> plait_status {
    const char *name = p->name ? p->name : "a plug-in";
    if (!version_fits(thread, name, p->h)) return PLAIT_ERROR;
    if (!size_fits(thread, name, p->h, PLAIT_END_OF(plait_plugin, quiesce)))
      return PLAIT_VALUE_ERROR;
    if (!flags_fit(thread, name, p->flags, PLAIT_PLUGIN_DEFAULT | PLAIT_PLUGIN_OVERWRITES))
      return PLAIT_VALUE_ERROR;
    if (!p->name || !p->version)
      return raise(thread, PLAIT_VALUE_ERROR, "attach", "a plug-in must have a name and a version");
    bool is_known = false;
    {
      const std::lock_guard<ForkMutex> lock(plugins_mutex);
      for (const plait_plugin *each : plugins) {
        is_known |= each == p;
        if (each != p && !std::strcmp(each->name, p->name))
          return raise(thread, PLAIT_VALUE_ERROR, "attach",
                       "a plug-in `%s` (version %s) is loaded already; detach it first", p->name,
                       each->version);
      }
      if (!is_known) plugins.push_back(p);
      if (!is_known) starting.push_back({p, thread, forks.number});
    }
    if (is_known) return wait_until_started(p, thread), PLAIT_OK;
    const plait_plugin *outer = in_init;
    const plait_error *before = thread->error;
    in_init = p;
    plait_status s = p->init ? p->init(&runtime, p) : PLAIT_OK;
    in_init = outer;
    if (s == PLAIT_OK) s = quiesce_at_exit(thread, p);
    if (s == PLAIT_OK) return end_start(p), PLAIT_OK;
    take_back(thread, p);
    undefine_ops_of(p);
    {
      const std::lock_guard<ForkMutex> lock(plugins_mutex);
      for (size_t i = 0; i < plugins.size(); i++)
        if (plugins[i] == p) plugins.erase(plugins.begin() + long(i));
    }
    end_start(p);
    if (s < 0 && thread->error != before) return s;
    return raise(thread, s < 0 ? s : PLAIT_ERROR, "attach",
                 "`init` of the plug-in `%s` gave status %d and no text", p->name, s);
  });
}

plait_status load(plait_thread *thread, const char *path) {
  return border(thread, "load", [&]() -> plait_status {
    char real[PATH_MAX];
    if (!realpath(path, real))
      return raise(thread, PLAIT_VALUE_ERROR, "load", "there is no file `%s`", path);
    {
      const std::lock_guard<ForkMutex> lock(plugins_mutex);
      if (by_path.count(real)) return PLAIT_OK;
    }
    void *library = dlopen(real, RTLD_NOW | RTLD_LOCAL);
    if (!library) return raise(thread, PLAIT_ERROR, "load", "%s", dlerror());
    const auto *p = static_cast<const plait_plugin *>(dlsym(library, "plait_plugin_v1"));
    if (!p)
      return raise(thread, PLAIT_VALUE_ERROR, "load",
                   "`%s` exports no plait_plugin_v1: it is not a plait plug-in", real);
    if (const plait_status s = attach(thread, p); s < 0) return s;
    const std::lock_guard<ForkMutex> lock(plugins_mutex);
    by_path[real] = p;
    return PLAIT_OK;
  });
}

const plait_plugin *initialising() { return in_init; }

plait_status detach(plait_thread *thread, const char *name) {
  return border(thread, "detach", [&]() -> plait_status {
    const plait_plugin *gone = nullptr;
    {
      const std::lock_guard<ForkMutex> lock(plugins_mutex);
      for (size_t i = 0; i < plugins.size() && !gone; i++) {
        if (std::string(plugins[i]->name) != name) continue;
        if (const plait_status s = may_retract(thread, plugins[i]); s < 0) return s;
        gone = plugins[i];
        plugins.erase(plugins.begin() + long(i));
      }
      for (auto it = by_path.begin(); it != by_path.end();)
        it = it->second == gone ? by_path.erase(it) : std::next(it);
    }
    if (!gone) return raise(thread, PLAIT_VALUE_ERROR, "detach", "no plug-in `%s` is loaded", name);
    take_back(thread, gone);
    return PLAIT_OK;
  });
}

void report_plugins(std::vector<plait_record> &list) {
  const std::lock_guard<ForkMutex> lock(plugins_mutex);
  for (const plait_plugin *p : plugins)
    list.push_back({"plugin", p->name, p->name, p->version, 1, 0, 0});
}

}  // namespace plait::abi
