// Observers. Their list is immutable: a change publishes a new one. The begin and end of an event
// see the same list.
#include <dlfcn.h>

#include <algorithm>
#include <cstring>

#include "runtime.hpp"

namespace plait::abi {

uint64_t observed = 0;

namespace {
using List = std::vector<const plait_observer *>;
std::atomic<const List *> current{nullptr};

// Replaced lists are kept, as an event may still use one, and are used again: otherwise a program
// that switches an observer on and off would need more and more memory.
const List *published(List list) {  // under the registry's mutex
  static auto *all = new std::vector<std::unique_ptr<const List>>;
  for (const auto &known : *all)
    if (*known == list) return known.get();
  all->push_back(std::make_unique<const List>(std::move(list)));
  return all->back().get();
}
// never destroyed, as the tables of operators
auto &owners = *new std::unordered_map<const plait_observer *, const plait_plugin *>;

// An observer that is registered again may ask for other events while an old event still uses it.
uint64_t kinds_of(const plait_observer *o) { return __atomic_load_n(&o->kinds, __ATOMIC_RELAXED); }
}  // namespace

plait_status observe(plait_thread *thread, const plait_observer *o, int on) {
  return border(thread, "observe", [&]() -> plait_status {
    if (!version_fits(thread, "an observer", o->h)) return PLAIT_ERROR;
    if (!size_fits(thread, "an observer", o->h, PLAIT_END_OF(plait_observer, end)))
      return PLAIT_VALUE_ERROR;
    if (!o->begin)
      return raise(thread, PLAIT_VALUE_ERROR, "observe", "an observer must have `begin`");
    const std::lock_guard<ForkMutex> lock(registry_mutex);
    const List *old = current;
    List next = old ? *old : List();
    const auto it = std::find(next.begin(), next.end(), o);
    if (on && it == next.end()) {
      if (next.size() + 1 >= PLAIT_TOKENS)
        return raise(thread, PLAIT_ERROR, "observe", "at most %d observers run at once",
                     PLAIT_TOKENS - 1);
      next.push_back(o);
      owners[o] = initialising();
    } else if (!on && it != next.end()) {
      next.erase(it);
    }
    uint64_t kinds = 0;
    for (const plait_observer *each : next) kinds |= kinds_of(each);
    current.store(published(std::move(next)), std::memory_order_release);
    __atomic_store_n(&observed, kinds, __ATOMIC_RELEASE);
    return PLAIT_OK;
  });
}

void forget_observers_of(plait_thread *thread, const plait_plugin *plugin) {
  std::vector<const plait_observer *> gone;
  {
    const std::lock_guard<ForkMutex> lock(registry_mutex);
    for (const auto &[o, owner] : owners)
      if (owner == plugin) gone.push_back(o);
    for (const plait_observer *o : gone) owners.erase(o);
  }
  for (const plait_observer *o : gone) observe(thread, o, 0);
}

// An observer belongs to the plug-in that began it in its init; others are known by their library.
void report_observers(std::vector<plait_record> &list) {
  const std::lock_guard<ForkMutex> lock(registry_mutex);
  const List *now = current.load(std::memory_order_acquire);
  for (size_t i = 0; now && i < now->size(); i++) {
    const plait_plugin *plugin = owners[(*now)[i]];
    Dl_info at{};
    if (!plugin) dladdr(reinterpret_cast<void *>((*now)[i]->begin), &at);
    const char *path = at.dli_fname ? at.dli_fname : "", *slash = std::strrchr(path, '/');
    const char *name = plugin ? plugin->name : slash ? slash + 1 : path;
    list.push_back({"observer", name, name, plugin ? plugin->version : "", 1, 0, 0});
  }
}

void emit(const plait_event *e) {
  const List *list = current.load(std::memory_order_acquire);
  if (!list) return;
  for (const plait_observer *o : *list)
    if (kinds_of(o) & e->kind) o->begin(o->ctx, e, nullptr);
}

uint64_t begin_event(const plait_event *e, uint64_t *tokens, uint64_t room) {
  const List *list = current.load(std::memory_order_acquire);
  if (!list || room < list->size() + 1) return 0;
  tokens[0] = reinterpret_cast<uint64_t>(list);
  for (size_t i = 0; i < list->size(); i++) {
    tokens[i + 1] = 0;
    if (kinds_of((*list)[i]) & e->kind) (*list)[i]->begin((*list)[i]->ctx, e, tokens + i + 1);
  }
  return list->size() + 1;
}

void end_event(const plait_event *e, const uint64_t *tokens, uint64_t n, plait_status status) {
  if (!n) return;
  const auto *list = reinterpret_cast<const List *>(tokens[0]);
  for (size_t i = 0; i < list->size(); i++)
    if ((kinds_of((*list)[i]) & e->kind) && (*list)[i]->end)
      (*list)[i]->end((*list)[i]->ctx, e, tokens[i + 1], status);
}

}  // namespace plait::abi
