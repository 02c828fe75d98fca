// The roles and their built-in defaults: a serial executor, a plain allocator, a counter for random
// numbers.
#include <sys/random.h>

#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <cstring>

#include "devices.hpp"

namespace plait::abi {

Roles roles{};

namespace {

// The functions of roles that no plug-in provides.

uint32_t serial_width(void *) { return 1; }
void serial_parallel(void *, uint64_t n, void (*fn)(void *, uint64_t), void *arg) {
  for (uint64_t i = 0; i < n; i++) fn(arg, i);
}
void serial_set_width(void *, uint32_t) {}
const plait_executor serial{PLAIT_HEADER(plait_executor),
                            "serial",
                            nullptr,
                            serial_width,
                            serial_parallel,
                            serial_set_width};

std::atomic<uint64_t> live_bytes{0}, live_blocks{0}, peak_bytes{0}, allocations{0};
plait_status plain_alloc(void *, DLDevice, uint64_t nbytes, plait_stream *, void **data,
                         void **block) {
  if (nbytes > uint64_t(INT64_MAX) || posix_memalign(data, 64, nbytes) != 0)
    return PLAIT_MEMORY_ERROR;
  *block = *data;
  live_blocks++;
  allocations++;
  const uint64_t live = live_bytes += nbytes;
  uint64_t peak = peak_bytes;
  while (live > peak && !peak_bytes.compare_exchange_weak(peak, live)) {
  }
  return PLAIT_OK;
}
void plain_free(void *, void *data, uint64_t nbytes, void *) {
  std::free(data);
  live_bytes -= nbytes;
  live_blocks--;
}
void plain_stats(void *, DLDevice, plait_alloc_stats *s) {
  plait_alloc_stats all{};
  all.size = s->size;
  all.live_bytes = live_bytes;
  all.live_blocks = live_blocks;
  all.peak_bytes = peak_bytes;
  all.allocations = all.system_allocations = allocations;
  std::memcpy(s, &all, std::min<size_t>(s->size, sizeof all));
}
void plain_reset_peak(void *, DLDevice) { peak_bytes = live_bytes.load(); }
// Tables are filled by name, so that code compiles on when a struct grows.
const plait_allocator plain = [] {
  plait_allocator t{};
  t.h = PLAIT_HEADER(plait_allocator);
  t.name = "malloc";
  t.alloc = plain_alloc;
  t.free = plain_free;
  t.stats = plain_stats;
  t.inline_below = 65;
  t.reset_peak = plain_reset_peak;
  return t;
}();

void counter_reserve(void *, plait_generator *, uint64_t, uint64_t *, uint64_t *);
plait_generator *default_generator = nullptr;
plait_generator *counter_default(void *) { return default_generator; }
plait_generator *seeded_generator() {
  uint64_t seed = 0;
  if (getrandom(&seed, sizeof seed, 0) != sizeof seed)
    seed = uint64_t(reinterpret_cast<uintptr_t>(&seed));
  return generator_new(seed >> 11);  // 53 bits: exact as a Python float too
}
void counter_reserve(void *ctx, plait_generator *g, uint64_t blocks, uint64_t *seed,
                     uint64_t *offset) {
  if (!g) g = counter_default(ctx);
  *seed = __atomic_load_n(&g->seed, __ATOMIC_RELAXED);
  *offset = __atomic_fetch_add(&g->offset, blocks, __ATOMIC_RELAXED);
}
const plait_rng counter = [] {
  plait_rng t{};
  t.h = PLAIT_HEADER(plait_rng);
  t.name = "counter";
  t.reserve = counter_reserve;
  t.default_generator = counter_default;
  return t;
}();

// The providers of each role.

enum Rank : int { built_in, by_default, chosen };
struct Provided {
  Rank rank;
  uint64_t undo;
  std::string role;
  int32_t device_type;
  const plait_header *table;
  const plait_plugin *who;
};
auto &provided = *new std::vector<Provided>;  // never destroyed, as the tables of operators

// The table stands in a header of another package: plait/compiler.h of plait-graph.
const plait_header *compiler = nullptr;

const plait_header **slot_of(const std::string &role, int32_t device_type) {
  const auto as = [](auto **p) { return reinterpret_cast<const plait_header **>(p); };
  const bool device_ok = device_type > 0 && device_type < PLAIT_MAX_DEVICE_TYPES;
  if (role == "executor") return as(&roles.executor);
  if (role == "rng") return as(&roles.rng);
  if (role == "host") return as(&roles.host);
  if (role == "engine") return as(&roles.engine);
  if (role == "compiler") return &compiler;
  if (role == "allocator" && device_ok) return as(&roles.allocator[device_type]);
  if (role == "device" && device_ok) return as(&roles.device[device_type]);
  if (role == "communicator" && device_ok) return as(&roles.communicator[device_type]);
  return nullptr;
}

// There is one table of every other role, whatever device type a plug-in names.
bool is_by_device(const std::string &role) {
  return role == "allocator" || role == "device" || role == "communicator";
}

// What a role's table must have: its length of version 0.3, and these pointers.
struct Required {
  const char *name;
  size_t offset;
};
struct Contract {
  size_t size;
  std::vector<Required> fields;
};
const Contract &contract_of(const std::string &role) {
#define FIELD(T, field)        \
  {                            \
    #field, offsetof(T, field) \
  }
  static const auto &all = *new std::unordered_map<std::string, Contract>{
      {"executor",
       {PLAIT_END_OF(plait_executor, set_width),
        {FIELD(plait_executor, name), FIELD(plait_executor, width),
         FIELD(plait_executor, parallel)}}},
      {"rng",
       {PLAIT_END_OF(plait_rng, fill),
        {FIELD(plait_rng, name), FIELD(plait_rng, reserve), FIELD(plait_rng, default_generator)}}},
      {"host",
       {PLAIT_END_OF(plait_host, release),
        {FIELD(plait_host, name), FIELD(plait_host, hold), FIELD(plait_host, object),
         FIELD(plait_host, apply), FIELD(plait_host, site), FIELD(plait_host, describe),
         FIELD(plait_host, interrupted), FIELD(plait_host, unlocked), FIELD(plait_host, release)}}},
      {"compiler", {sizeof(plait_header) + sizeof(const char *), {{"name", sizeof(plait_header)}}}},
      {"engine",
       {PLAIT_END_OF(plait_engine, record),
        {FIELD(plait_engine, name), FIELD(plait_engine, enabled), FIELD(plait_engine, set_enabled),
         FIELD(plait_engine, set_requires_grad), FIELD(plait_engine, is_leaf),
         FIELD(plait_engine, grad), FIELD(plait_engine, set_grad), FIELD(plait_engine, node),
         FIELD(plait_engine, node_name), FIELD(plait_engine, retain_grad),
         FIELD(plait_engine, detach_), FIELD(plait_engine, backward),
         FIELD(plait_engine, record)}}},
      {"allocator",
       {PLAIT_END_OF(plait_allocator, reset_peak),
        {FIELD(plait_allocator, name), FIELD(plait_allocator, alloc),
         FIELD(plait_allocator, free)}}},
      {"device",
       {PLAIT_END_OF(plait_device, share_close),
        {FIELD(plait_device, name), FIELD(plait_device, count), FIELD(plait_device, copy),
         FIELD(plait_device, synchronize), FIELD(plait_device, stream_synchronize)}}},
      {"communicator",
       {PLAIT_END_OF(plait_collectives, wait),
        {FIELD(plait_collectives, name), FIELD(plait_collectives, open),
         FIELD(plait_collectives, split), FIELD(plait_collectives, abort),
         FIELD(plait_collectives, start), FIELD(plait_collectives, query),
         FIELD(plait_collectives, wait)}}}};
#undef FIELD
  return all.at(role);
}

bool is_complete(plait_thread *thread, const char *role, const plait_header *table) {
  const Contract &contract = contract_of(role);
  const std::string subject = std::string("the table for the role `") + role + "`";
  if (!size_fits(thread, subject.c_str(), *table, contract.size)) return false;
  for (const Required &field : contract.fields) {
    const void *pointer = nullptr;
    std::memcpy(&pointer, reinterpret_cast<const char *>(table) + field.offset, sizeof pointer);
    if (pointer) continue;
    raise(thread, PLAIT_VALUE_ERROR, "provide", "%s must have `%s`, which is NULL", subject.c_str(),
          field.name);
    return false;
  }
  return true;
}

// Functions of a device that are there together or not at all.
bool is_consistent(plait_thread *thread, const plait_device *d) {
#define has(field) PLAIT_HAS(plait_device, d, field)
  const struct {
    bool first, others;
    const char *text;
  } groups[] = {
      {!!d->stream_new, d->stream_free && d->stream_query && d->event_new,
       "`stream_free`, `stream_query` and `event_new` go with `stream_new`"},
      {!!d->event_new,
       d->event_free && d->event_record && d->event_query && d->event_wait && d->stream_wait,
       "`event_free`, `event_record`, `event_query`, `event_wait` and `stream_wait` go with "
       "`event_new`"},
      {!!d->pinned_alloc, !!d->pinned_free, "`pinned_free` goes with `pinned_alloc`"},
      {has(memory_alloc), has(memory_free) && has(memory_info),
       "`memory_free` and `memory_info` go with `memory_alloc`"},
      {has(event_share), has(event_open), "`event_open` goes with `event_share`"},
      {has(capture_begin),
       has(capture_end) && has(capture_query) && has(graph_launch) && has(graph_free),
       "`capture_end`, `capture_query`, `graph_launch` and `graph_free` go with `capture_begin`"},
      {has(activity_start), has(activity_stop), "`activity_stop` goes with `activity_start`"}};
#undef has
  const char *c = d->name;
  while (std::isalnum(static_cast<unsigned char>(*c)) || *c == '_') c++;
  if (*c || c == d->name || std::isdigit(static_cast<unsigned char>(*d->name))) {
    raise(thread, PLAIT_VALUE_ERROR, "provide",
          "the name of a device must be letters, digits and underscores, got `%s`", d->name);
    return false;
  }
  for (const auto &group : groups)
    if (group.first && !group.others) {
      raise(thread, PLAIT_VALUE_ERROR, "provide", "the device `%s` is incomplete: %s", d->name,
            group.text);
      return false;
    }
  return flags_fit(thread, d->name, d->flags, 0);
}

// Whether the optional functions of an allocator that need one another are there together.
bool is_consistent(plait_thread *thread, const plait_allocator *a) {
  if (!PLAIT_HAS(plait_allocator, a, pool_new) ||
      (PLAIT_HAS(plait_allocator, a, pool_use) && PLAIT_HAS(plait_allocator, a, pool_free)))
    return true;
  raise(thread, PLAIT_VALUE_ERROR, "provide",
        "the allocator `%s` is incomplete: `pool_use` and `pool_free` go with `pool_new`", a->name);
  return false;
}
bool is_consistent(plait_thread *thread, const plait_rng *r) {
  if (!PLAIT_HAS(plait_rng, r, state_size) ||
      (PLAIT_HAS(plait_rng, r, get_state) && PLAIT_HAS(plait_rng, r, set_state) &&
       PLAIT_HAS(plait_rng, r, set_seed)))
    return true;
  raise(thread, PLAIT_VALUE_ERROR, "provide",
        "the generator `%s` is incomplete: `get_state`, `set_state` and `set_seed` go with "
        "`state_size`",
        r->name);
  return false;
}
bool is_consistent(plait_thread *thread, const std::string &role, const plait_header *table) {
  const void *t = table;
  if (role == "device") return is_consistent(thread, static_cast<const plait_device *>(t));
  if (role == "allocator") return is_consistent(thread, static_cast<const plait_allocator *>(t));
  return role != "rng" || is_consistent(thread, static_cast<const plait_rng *>(t));
}

// Who brings the device of this type already, or nullptr.
const Provided *device_in_force(int32_t device_type) {
  for (const Provided &p : provided)
    if (p.role == "device" && p.device_type == device_type) return &p;
  return nullptr;
}

// The type that has a name already, by DLPack or by a plug-in, or -1.
int32_t type_named(const char *name, int32_t but) {
  for (int32_t type = 0; type < PLAIT_MAX_DEVICE_TYPES; type++) {
    const char *known = known_device_name(type);
    if (type != but && known && !std::strcmp(known, name)) return type;
  }
  for (const Provided &p : provided)
    if (p.role == "device" && p.device_type != but &&
        !std::strcmp(reinterpret_cast<const plait_device *>(p.table)->name, name))
      return p.device_type;
  return -1;
}

// The name that a table has: behind its header in every role.
const char *name_of(const plait_header *table) {
  const char *name = nullptr;
  std::memcpy(&name, table + 1, sizeof name);
  return name;
}

void put(const std::string &role, int32_t device_type) {
  const Provided *first = nullptr;  // the latest of the highest rank
  for (const Provided &p : provided)
    if (p.role == role && p.device_type == device_type && (!first || p.rank >= first->rank))
      first = &p;
  __atomic_store_n(slot_of(role, device_type), first ? first->table : nullptr, __ATOMIC_RELEASE);
}

}  // namespace

plait_status provide(plait_thread *thread, const char *role, int32_t device_type,
                     const plait_header *table, const plait_plugin *who, uint64_t *undo) {
  return border(thread, "provide", [&]() -> plait_status {
    if (!role || !slot_of(role, device_type))
      return raise(thread, PLAIT_VALUE_ERROR, "provide", "there is no role `%s` for device type %d",
                   role ? role : "NULL", device_type);
    if (!table)
      return raise(thread, PLAIT_VALUE_ERROR, "provide", "the table for the role `%s` is NULL",
                   role);
    if (!version_fits(thread, role, *table)) return PLAIT_ERROR;
    if (!is_complete(thread, role, table)) return PLAIT_VALUE_ERROR;
    const bool is_device = !std::strcmp(role, "device");
    if (!is_consistent(thread, role, table)) return PLAIT_VALUE_ERROR;
    if (is_device && device_type <= kDLCPU)
      return raise(thread, PLAIT_VALUE_ERROR, "provide",
                   "the CPU and `meta` need no table for the role `device`");
    if (!who) who = initialising();
    const std::lock_guard<ForkMutex> lock(registry_mutex);
    if (is_device && type_named(name_of(table), device_type) >= 0)
      return raise(thread, PLAIT_VALUE_ERROR, "provide",
                   "the name `%s` is that of device type %d already", name_of(table),
                   type_named(name_of(table), device_type));
    if (const Provided *first = is_device ? device_in_force(device_type) : nullptr)
      return raise(thread, PLAIT_VALUE_ERROR, "provide",
                   "the device `%s` of type %d is brought by `%s` already; detach that first",
                   name_of(first->table), device_type, first->who ? first->who->name : "a program");
    const Rank rank = is_default(who) ? by_default : chosen;
    const int32_t of = is_by_device(role) ? device_type : 0;
    provided.push_back({rank, next_undo(), role, of, table, who});
    if (undo) *undo = provided.back().undo;
    put(role, of);
    if (is_device && reinterpret_cast<const plait_device *>(table)->flags & PLAIT_DEVICE_STARTED)
      start_use(of);
    return PLAIT_OK;
  });
}

const plait_header *const *role(const char *name, int32_t device_type) {
  return name ? slot_of(name, device_type) : nullptr;
}

const plait_header *provider(const char *role, const char *name, int32_t device_type) {
  if (!role || !name) return nullptr;
  const std::lock_guard<ForkMutex> lock(registry_mutex);
  const int32_t of = is_by_device(role) ? device_type : 0;
  for (auto p = provided.rbegin(); p != provided.rend(); ++p)
    if (p->role == role && p->device_type == of && !std::strcmp(name_of(p->table), name))
      return p->table;
  return nullptr;
}

plait_status may_retract(plait_thread *thread, const plait_plugin *who) {
  std::vector<int32_t> types;
  {
    const std::lock_guard<ForkMutex> lock(registry_mutex);
    for (const Provided &p : provided)
      if (p.who == who && p.role == "device") types.push_back(p.device_type);
  }
  // storages that the runtime kept for finished copies do not count
  for (const int32_t type : types) let_go(thread, {DLDeviceType(type), 0});
  const std::lock_guard<ForkMutex> lock(registry_mutex);
  for (const Provided &p : provided) {
    if (p.who != who || p.role != "device") continue;
    if (const int64_t n = live_on(p.device_type); n > 0)
      return raise(thread, PLAIT_ERROR, "detach",
                   "`%s` cannot go while %lld storages, streams and events of its device `%s` are "
                   "alive",
                   who->name, (long long)n, name_of(p.table));
  }
  return PLAIT_OK;
}

bool has_gone_device(const plait_plugin *who) {
  const std::lock_guard<ForkMutex> lock(registry_mutex);
  for (const Provided &p : provided)
    if (p.who == who && p.role == "device" && is_gone({DLDeviceType(p.device_type), 0}))
      return true;
  return false;
}

void end_devices_of(const plait_plugin *who) {
  const std::lock_guard<ForkMutex> lock(registry_mutex);
  for (const Provided &p : provided)
    if (p.who == who && p.role == "device") end_use(p.device_type);
}

bool retract_role(uint64_t undo) {
  const auto it = std::find_if(provided.begin(), provided.end(),
                               [undo](const Provided &p) { return p.undo == undo; });
  if (it == provided.end()) return false;
  const Provided gone = *it;
  provided.erase(it);
  put(gone.role, gone.device_type);
  return true;
}

void retract_roles_of(const plait_plugin *who) {
  const std::lock_guard<ForkMutex> lock(registry_mutex);
  std::vector<Provided> gone;
  for (const Provided &p : provided)
    if (p.who == who) gone.push_back(p);
  for (const Provided &p : gone) retract_role(p.undo);
}

void install_default_roles() {
  default_generator = seeded_generator();
  provided.push_back({built_in, next_undo(), "executor", 0, &serial.h, nullptr});
  provided.push_back({built_in, next_undo(), "rng", 0, &counter.h, nullptr});
  provided.push_back({built_in, next_undo(), "allocator", kDLCPU, &plain.h, nullptr});
  roles.executor = &serial;
  roles.rng = &counter;
  roles.allocator[kDLCPU] = &plain;
}

void report_roles(std::vector<plait_record> &list) {
  const std::lock_guard<ForkMutex> lock(registry_mutex);
  for (const Provided &p : provided)
    list.push_back(
        {"role", p.role.c_str(), p.who ? p.who->name : "plait_abi", p.who ? p.who->version : "",
         int32_t(*slot_of(p.role, p.device_type) == p.table), uint32_t(p.device_type), 0});
}

}  // namespace plait::abi
