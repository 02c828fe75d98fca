// Storages on blocks: one for each block in a process, reused while it is alive.
#include "table.hpp"

#include <pthread.h>
#include <unistd.h>

#include "device_memory.hpp"
#include "group.hpp"
#include "member.hpp"

namespace plait::multiprocessing {
namespace {

void drop_block(plait_object *);
const plait_type block_type{PLAIT_HEADER(plait_type), "storage", drop_block};

// Called when the last reference is dropped, or by a sole owner (then the count is still 1).
// Another thread may have found the storage in the table in between: then there are more
// references.
void drop_block(plait_object *o) {
  auto *s = reinterpret_cast<plait_storage *>(o);
  BlockStorage *b = block_of(s);
  Table &t = table();
  const plait_type *plain = nullptr;
  {
    const std::lock_guard<std::mutex> lock(t.mutex);
    plain = t.plain_storage;
    if (__atomic_load_n(&o->refs, __ATOMIC_ACQUIRE) > 1 &&
        __atomic_fetch_sub(&o->refs, 1, __ATOMIC_ACQ_REL) != 1)
      return;
    const auto it = t.storages.find(s->data);
    if (it != t.storages.end() && it->second == s) t.storages.erase(it);
    if (!b->given_back) step_back(b->arena, b->offset);
    if (b->arena->own && !b->given_back) t.blocks.give(b->arena, b->offset);
    leave_file(b->arena);
  }
  delete b;
  s->block = nullptr;
  o->type = plain;
  o->type->drop(o);
}

// The table's entry for a block, to be set; nullptr without memory.
plait_storage **entry_of(const void *data) {
  try {
    return &table().storages[data];
  } catch (const std::bad_alloc &) {
    return nullptr;
  }
}

// A storage on a block whose count this process has; under the lock.
plait_status make_storage(plait_thread *thread, Arena *a, uint64_t offset, uint64_t nbytes,
                          plait_storage **out) {
  Table &t = table();
  auto *b = new (std::nothrow) BlockStorage{a, offset, false, nullptr};
  plait_storage **entry = b ? entry_of(a->base + offset) : nullptr;
  plait_status s = entry ? t.runtime->storage_wrap(thread, a->base + offset, nbytes, {kDLCPU, 0},
                                                   PLAIT_STORAGE_SHARED, nullptr, b, out)
                         : t.runtime->raise(thread, PLAIT_MEMORY_ERROR, nullptr, "out of memory");
  if (s < 0) {
    delete b;
    t.storages.erase(a->base + offset);
    step_back(a, offset);
    if (a->own) t.blocks.give(a, offset);
    return s;
  }
  t.plain_storage = (*out)->o.type;
  (*out)->o.type = &block_type;
  *entry = *out;
  a->users++;
  return s;
}

// A retained storage of the table, or nullptr if it is being dropped.
plait_storage *living(const void *data) {
  const auto it = table().storages.find(data);
  return it != table().storages.end() && take_up(it->second) ? it->second : nullptr;
}

Arena *find(const uint64_t id[2]) {
  for (Arena *a : table().arenas)
    if (a->id[0] == id[0] && a->id[1] == id[1]) return a;
  return nullptr;
}

bool lies_in(const plait_block_name *n, const Arena *a) {
  return n->offset >= header_bytes + block_header && n->offset % block_header == 0 &&
         n->offset <= a->size && n->nbytes <= a->size - n->offset;
}

// Takes a message's count over. `holding`: this process holds the block already.
bool take_over(Arena *a, const plait_block_name *name, bool holding) {
  std::atomic<uint64_t> &counts = a->header(name->offset)->counts;
  uint64_t w = counts.load(std::memory_order_acquire), next = 0;
  do {
    if (Counts::generation(w) != name->generation || Counts::is_free(w)) return false;
    if (a->header(name->offset)->room < name->nbytes) return false;
    next = w + (holding ? 0 : Counts::one_holder);
    if (Counts::messages(w)) next -= Counts::one_message;
  } while (!counts.compare_exchange_weak(w, next, std::memory_order_acq_rel));
  return true;
}

thread_local bool fork_with_python = false;  // a page that is not inherited by exec

// A child of a fork holds every storage of its parent once more, but for memory of devices, which
// it cannot use. They are counted at the fork itself, as other threads may receive storages until
// then.
void lock_table() {
  table().mutex.lock();
  if (!std::exchange(fork_with_python, false)) return;
  for (const auto &[data, s] : table().storages) {
    const BlockStorage *b = block_of(s);
    if (b->lent) continue;
    b->arena->header(b->offset)->counts.fetch_add(Counts::one_holder, std::memory_order_acq_rel);
  }
}
void unlock_table() { table().mutex.unlock(); }
// The ticket blocks of the parent are not this process's: their objects stay, and name nothing.
void forget_tickets() {
  Table &t = table();
  for (auto it = t.storages.begin(); it != t.storages.end();) {
    BlockStorage *b = block_of(it->second);
    if (b->lent) b->given_back = true;
    it = b->lent ? t.storages.erase(it) : std::next(it);
  }
  t.loans.clear();
  t.left = false;
}
void start_child() {
  forget_tickets();
  for (Arena *a : table().arenas) a->own = false;
  table().blocks.forget();
  forget_taken();
  forget_collectives();
  unlock_table();
}

}  // namespace

Table &table() {
  static auto *t = new Table;  // storages are dropped on any thread, also after static objects
  return *t;
}

void start(const plait_runtime *runtime) {
  if (!table().runtime) pthread_atfork(lock_table, unlock_table, start_child);
  table().runtime = runtime;
}

plait_storage *held_block(const plait_block_name &name) {
  const std::lock_guard<std::mutex> lock(table().mutex);
  Arena *a = find(name.arena);
  if (!a || !lies_in(&name, a)) return nullptr;
  const uint64_t w = a->header(name.offset)->counts.load(std::memory_order_acquire);
  return Counts::generation(w) == name.generation ? living(a->base + name.offset) : nullptr;
}

bool take_up(plait_storage *s) {
  if (__atomic_fetch_add(&s->o.refs, 1, __ATOMIC_ACQ_REL) > 0) return true;
  __atomic_fetch_sub(&s->o.refs, 1, __ATOMIC_ACQ_REL);
  return false;
}

bool step_back(Arena *a, uint64_t offset) {
  const uint64_t w =
      a->header(offset)->counts.fetch_sub(Counts::one_holder, std::memory_order_acq_rel);
  return Counts::is_free(w - Counts::one_holder);
}

}  // namespace plait::multiprocessing

using namespace plait::multiprocessing;
#define PLAIT_EXPORT extern "C" __attribute__((visibility("default")))

PLAIT_EXPORT plait_status plait_shared_create(plait_thread *thread, uint64_t nbytes,
                                              plait_storage **out) {
  Table &t = table();
  Failure f;
  {
    const std::lock_guard<std::mutex> lock(t.mutex);
    const BlockAddress p = t.blocks.take(nbytes, t.arenas, f);
    if (p.arena) return make_storage(thread, p.arena, p.offset, nbytes, out);
  }
  return t.runtime->raise(thread, f.code, nullptr, "%s", f.text);
}

PLAIT_EXPORT int plait_shared_is_block(const plait_storage *s) { return s->o.type == &block_type; }

PLAIT_EXPORT plait_status plait_shared_send(plait_thread *thread, const plait_storage *s,
                                            plait_block_name *name) {
  const BlockStorage *b = block_of(s);
  std::atomic<uint64_t> &counts = b->arena->header(b->offset)->counts;
  uint64_t w = counts.load(std::memory_order_acquire);
  do {
    if (Counts::messages(w) == Counts::most)
      return table().runtime->raise(thread, PLAIT_ERROR, nullptr,
                                    "shared memory: %llu messages with one tensor are on their "
                                    "way; receive some first",
                                    static_cast<unsigned long long>(Counts::most));
  } while (!counts.compare_exchange_weak(w, w + Counts::one_message, std::memory_order_acq_rel));
  plait_shared_name(s, name);
  return PLAIT_OK;
}

PLAIT_EXPORT void plait_shared_name(const plait_storage *s, plait_block_name *name) {
  const BlockStorage *b = block_of(s);
  const uint64_t w = b->arena->header(b->offset)->counts.load(std::memory_order_acquire);
  *name = {{b->arena->id[0], b->arena->id[1]}, b->offset, Counts::generation(w), s->nbytes};
}

PLAIT_EXPORT plait_status plait_shared_receive(plait_thread *thread, const plait_block_name *name,
                                               plait_storage **out) {
  Table &t = table();
  {
    const std::lock_guard<std::mutex> lock(t.mutex);
    Arena *a = find(name->arena);
    if (!a)
      return t.runtime->raise(thread, PLAIT_ERROR, nullptr,
                              "shared memory: the message names an arena that this process does "
                              "not know; it must arrive through a channel of "
                              "plait_multiprocessing");
    plait_storage *result = lies_in(name, a) ? living(a->base + name->offset) : nullptr;
    if (lies_in(name, a) && take_over(a, name, result != nullptr)) {
      *out = result;
      return result ? PLAIT_OK : make_storage(thread, a, name->offset, name->nbytes, out);
    }
    *out = result;  // to be released when the lock is not held
  }
  plait_release(*out);
  *out = nullptr;
  return t.runtime->raise(thread, PLAIT_ERROR, nullptr,
                          "shared memory: the message was read before, and its tensor is gone; "
                          "bytes of plait_multiprocessing can be read only once");
}

PLAIT_EXPORT void plait_shared_cancel(const plait_block_name *name) {
  const std::lock_guard<std::mutex> lock(table().mutex);
  Arena *a = find(name->arena);
  if (!a) return;
  std::atomic<uint64_t> &counts = a->header(name->offset)->counts;
  uint64_t w = counts.load(std::memory_order_acquire);
  do {
    if (Counts::generation(w) != name->generation || !Counts::messages(w)) return;
  } while (!counts.compare_exchange_weak(w, w - Counts::one_message, std::memory_order_acq_rel));
}

PLAIT_EXPORT void plait_shared_trim(void) {
  end_loans();
  const std::lock_guard<std::mutex> lock(table().mutex);
  table().blocks.trim();
  drop_idle();
}

PLAIT_EXPORT void plait_shared_get_stats(plait_shared_stats *out) {
  const std::lock_guard<std::mutex> lock(table().mutex);
  *out = {table().arenas.size(), table().storages.size(), bytes_taken(),
          table().blocks.free_bytes()};
}

PLAIT_EXPORT void plait_shared_before_fork(void) { fork_with_python = true; }

PLAIT_EXPORT void plait_shared_leave(void) {
  leave_groups();
  try {
    finish_borrowing();
  } catch (const std::bad_alloc &) {  // then calls on borrowed memory are not waited for
  }
  const std::lock_guard<std::mutex> lock(table().mutex);
  for (const auto &[data, s] : table().storages) {
    BlockStorage *b = block_of(s);
    if (b->given_back) continue;
    b->given_back = true;
    step_back(b->arena, b->offset);
  }
}
