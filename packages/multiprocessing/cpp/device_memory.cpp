// Memory of devices: a process lends a storage under a ticket block, whose counts tell when no
// process has it any more; others open it once each.
#include "device_memory.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <thread>

namespace plait::multiprocessing {
namespace {

using Held = std::unique_lock<std::mutex>;

constexpr uint64_t ticket_magic = 0x31306b6369746c70;
constexpr size_t looked_at = 16;  // loans, whenever something is lent or borrowed

struct DeviceTicket {  // the bytes of a ticket block
  uint64_t magic;
  int32_t device_type, device_id;
  uint64_t nbytes;
  plait_shared_memory memory;  // its `fd` only tells whether a descriptor goes along
  char device[64];             // "cuda:0", for errors
};

const DeviceTicket &ticket_of(const plait_storage *s) {
  return *static_cast<const DeviceTicket *>(s->data);
}

// Calls f without the lock of the host language: it waits for a device, or for another thread that
// may need that lock.
template <class F>
void unlocked(const plait_runtime *runtime, F &&f) {
  const auto *host = role<plait_host>(runtime);
  if (!host) return f();
  const auto call = [](void *p) { (*static_cast<std::remove_reference_t<F> *>(p))(); };
  host->unlocked(host->ctx, call, &f);
}

// The status of a function of a device, which may have given no text.
plait_status complete_error(plait_thread *thread, DLDevice d, const char *subject, plait_status s,
                            const plait_error *before) {
  if (s >= 0) return PLAIT_OK;
  if (thread->error && thread->error != before) return s;
  return thread->runtime->raise(thread, PLAIT_ERROR, nullptr,
                                "%s: `%s` failed with status %d and gave no text",
                                device_text(thread->runtime, d).c_str(), subject, int(s));
}

// Lending.

bool is_lent_no_more(const Lent &l) {
  const BlockStorage *b = block_of(l.ticket);
  const uint64_t w = b->arena->header(b->offset)->counts.load(std::memory_order_acquire);
  return Counts::messages(w) == 0 && Counts::holders(w) == 1 &&
         __atomic_load_n(&l.ticket->o.refs, __ATOMIC_ACQUIRE) == 1;
}

void release_loan(Lent *l) {
  if (l->file) {
    const std::lock_guard<std::mutex> lock(table().mutex);
    leave_file(l->file);
  }
  plait_release(l->ticket);
  plait_release(l->storage);
  delete l;
}

// Looks at some of the loans, in turns; returns how many it has looked at.
size_t end_some_loans() {
  Table &t = table();
  Lent *over[looked_at];
  size_t n = 0, looks = 0;
  {
    const std::lock_guard<std::mutex> lock(t.mutex);
    looks = std::min(looked_at, t.loans.size());
    for (size_t i = 0; i < looks; i++) {
      auto it = t.loans.upper_bound(t.swept);
      if (it == t.loans.end()) it = t.loans.begin();
      t.swept = it->first;
      if (!is_lent_no_more(*it->second)) continue;
      over[n++] = it->second;
      block_of(it->second->ticket)->lent = nullptr;
      t.loans.erase(it);
    }
  }
  while (n) release_loan(over[--n]);
  return looks;
}

// A copy of the device's descriptor, or nullptr if there is none.
plait_status copy_descriptor(plait_thread *thread, const plait_shared_memory &memory, File **file) {
  *file = nullptr;
  if (memory.fd < 0) return PLAIT_OK;
  const int fd = fcntl(memory.fd, F_DUPFD_CLOEXEC, 0);
  Failure f;
  if (fd < 0)
    f.set(PLAIT_ERROR, "shared memory: copying the descriptor of a device failed: %s",
          std::strerror(errno));
  else
    *file = open_file(fd, f);
  return *file ? PLAIT_OK : thread->runtime->raise(thread, f.code, nullptr, "%s", f.text);
}

plait_status fill_ticket(plait_thread *thread, plait_storage *storage, DeviceTicket &k) {
  const plait_runtime *runtime = thread->runtime;
  const DLDevice d = storage->device;
  k = {};
  k.magic = ticket_magic;
  k.device_type = int32_t(d.device_type);
  k.device_id = d.device_id;
  k.nbytes = storage->nbytes;
  k.memory.size = sizeof k.memory;
  k.memory.fd = -1;
  const std::string text = device_text(runtime, d);
  std::snprintf(k.device, sizeof k.device, "%s", text.c_str());
  const auto *device = role<plait_device>(runtime, int32_t(d.device_type));
  if (!device || !PLAIT_HAS(plait_device, device, share))
    return runtime->raise(thread, PLAIT_TYPE_ERROR, "send",
                          "the memory of %s cannot be shared; copy it with .cpu()", text.c_str());
  if (!storage->nbytes) return PLAIT_OK;
  const plait_error *before = thread->error;
  const plait_status s =
      device->share(device->ctx, thread, d, storage->data, storage->nbytes, &k.memory);
  if (s < 0) return complete_error(thread, d, "share", s, before);
  if (k.memory.length <= sizeof k.memory.handle) return PLAIT_OK;
  return runtime->raise(thread, PLAIT_ERROR, "send",
                        "%s: `share` gave a handle of %u bytes, at most %zu are required",
                        text.c_str(), unsigned(k.memory.length), sizeof k.memory.handle);
}

// Makes the ticket block of a storage; the result is no entry of the table yet.
plait_status new_loan(plait_thread *thread, plait_storage *storage, Lent **out) {
  DeviceTicket k;
  File *file = nullptr;
  plait_storage *ticket = nullptr;
  plait_status s = fill_ticket(thread, storage, k);
  if (s >= 0) s = copy_descriptor(thread, k.memory, &file);
  if (s >= 0) s = plait_shared_create(thread, sizeof k, &ticket);
  auto *l = s < 0 ? nullptr : new (std::nothrow) Lent{};
  if (!l) {
    plait_release(ticket);
    if (file) plait_shared_unpin(file);
    return s < 0 ? s : thread->runtime->raise(thread, PLAIT_MEMORY_ERROR, "send", "out of memory");
  }
  std::memcpy(ticket->data, &k, sizeof k);
  plait_retain(storage);
  *l = {ticket,  storage, file,    storage->device, storage->nbytes,
        nullptr, nullptr, nullptr, getpid()};
  *out = l;
  return PLAIT_OK;
}

void drop_borrowed(plait_object *);
const plait_type borrowed_type{PLAIT_HEADER(plait_type), "storage", drop_borrowed};

Lent *known(plait_storage *storage) {  // under the lock
  if (storage->o.type == &borrowed_type) return static_cast<Lent *>(storage->block);
  const auto it = table().loans.find(storage);
  return it == table().loans.end() ? nullptr : it->second;
}

// The loan's ticket block and pin, which the caller releases; under the lock.
void take(const Lent &l, plait_storage **ticket, void **pin) {
  plait_retain(l.ticket);
  if (l.file) l.file->users++;
  *ticket = l.ticket;
  *pin = l.file;
}

bool note(Lent *l) {  // among the loans, under the lock; false without memory
  try {
    table().loans.emplace(l->storage, l);
  } catch (const std::bad_alloc &) {
    return false;
  }
  block_of(l->ticket)->lent = l;
  return true;
}

plait_status lend(plait_thread *thread, plait_storage *storage, plait_storage **ticket,
                  void **pin) {
  Table &t = table();
  if (const plait_status s = thread->runtime->synchronize(thread, storage->device); s < 0) return s;
  end_some_loans();
  {
    const std::lock_guard<std::mutex> lock(t.mutex);
    if (const Lent *l = known(storage)) return take(*l, ticket, pin), PLAIT_OK;
  }
  Lent *fresh = nullptr;
  if (const plait_status s = new_loan(thread, storage, &fresh); s < 0) return s;
  plait_status s = PLAIT_OK;
  {
    const std::lock_guard<std::mutex> lock(t.mutex);
    const auto it = t.loans.find(storage);
    if (it != t.loans.end()) {  // another thread has lent it meanwhile
      take(*it->second, ticket, pin);
    } else if (note(fresh)) {
      return take(*fresh, ticket, pin), PLAIT_OK;
    } else {
      s = PLAIT_MEMORY_ERROR;
    }
  }
  release_loan(fresh);
  return s < 0 ? thread->runtime->raise(thread, s, "send", "out of memory") : s;
}

// Borrowing.

// Called without the GIL or with it, on any thread, when nothing in this process uses the storage.
void close_borrowed(void *p) {
  auto *l = static_cast<Lent *>(p);
  Table &t = table();
  const plait_runtime *runtime = t.runtime;
  const auto left = [&] {
    const std::lock_guard<std::mutex> lock(t.mutex);
    return t.left;
  };
  const bool is_forked = l->process != getpid();  // the device must not be called there
  if (l->nbytes && !left() && !is_forked) {
    unlocked(runtime, [&] {  // calls on it may still run
      l->table->synchronize(l->table->ctx, runtime->thread(), l->device);
      l->table->share_close(l->table->ctx, l->device, l->data, l->nbytes, l->opened);
    });
  }
  {
    const std::lock_guard<std::mutex> lock(t.mutex);
    block_of(l->ticket)->lent = nullptr;
    if (l->file) leave_file(l->file);
    t.opened.notify_all();
  }
  plait_release(l->ticket);
  delete l;
}

// As drop_block of table.cpp: another thread may have found the storage under its ticket.
void drop_borrowed(plait_object *o) {
  auto *s = reinterpret_cast<plait_storage *>(o);
  const plait_type *plain = nullptr;
  {
    const std::lock_guard<std::mutex> lock(table().mutex);
    plain = table().plain_storage;
    if (__atomic_load_n(&o->refs, __ATOMIC_ACQUIRE) > 1 &&
        __atomic_fetch_sub(&o->refs, 1, __ATOMIC_ACQ_REL) != 1)
      return;
    static_cast<Lent *>(s->block)->storage = nullptr;
  }
  o->type = plain;
  o->type->drop(o);
}

// The table of the ticket's device, if it can be used here.
plait_status device_of(plait_thread *thread, const DeviceTicket &k, DLDevice d,
                       const plait_device **device) {
  const plait_runtime *runtime = thread->runtime;
  const bool possible = is_accelerator(d) && k.device[sizeof k.device - 1] == 0;
  *device = possible ? role<plait_device>(runtime, k.device_type) : nullptr;
  const std::string name(k.device, strnlen(k.device, sizeof k.device));
  if (!*device)
    return runtime->raise(thread, PLAIT_NOT_IMPLEMENTED, "receive",
                          "a tensor on %s arrived, and no component in this process brings that "
                          "device; load its plug-in here before tensors are received",
                          name.c_str());
  const std::string here = device_text(runtime, d);
  if (here != name || !PLAIT_HAS(plait_device, *device, share_open))
    return runtime->raise(thread, PLAIT_NOT_IMPLEMENTED, "receive",
                          "a tensor on %s arrived, and the plug-in in this process, whose device "
                          "is %s, is not the plug-in of its sender",
                          name.c_str(), here.c_str());
  int32_t done = 0;  // ignored: later calls fail if the event cannot be used
  return runtime->stream_query(thread, d, nullptr, &done);
}

// Opens the memory of the ticket, whose entry `l` is noted already.
plait_status open_memory(plait_thread *thread, const DeviceTicket &k, Lent *l,
                         plait_storage **out) {
  const plait_runtime *runtime = thread->runtime;
  if (l->nbytes) {
    plait_shared_memory memory = k.memory;
    if (memory.fd >= 0 && !l->file)
      return runtime->raise(thread, PLAIT_ERROR, "receive",
                            "the descriptor of a tensor on %s did not come along; it must arrive "
                            "through a channel of plait_multiprocessing",
                            k.device);
    memory.fd = l->file ? l->file->fd : -1;
    const plait_error *before = thread->error;
    const plait_status s = l->table->share_open(l->table->ctx, thread, l->device, &memory,
                                                l->nbytes, &l->data, &l->opened);
    if (s < 0) return complete_error(thread, l->device, "share_open", s, before);
  }
  const plait_status s = runtime->storage_wrap(thread, l->data, l->nbytes, l->device,
                                               PLAIT_STORAGE_SHARED, close_borrowed, l, out);
  if (s < 0 && l->nbytes)
    l->table->share_close(l->table->ctx, l->device, l->data, l->nbytes, l->opened);
  return s;
}

// The storage that is open already, or nullptr and an entry that this thread is to open.
plait_status find_open(plait_thread *thread, plait_storage *ticket, Lent *fresh,
                       plait_storage **out) {
  Table &t = table();
  plait_status s = PLAIT_OK;
  unlocked(thread->runtime, [&] {
    BlockStorage *b = block_of(ticket);
    Held lock(t.mutex);
    for (;;) {
      t.opened.wait(lock, [&] { return !b->lent || b->lent->storage; });
      if (!b->lent) break;
      if (take_up(b->lent->storage)) {
        *out = b->lent->storage;
        return;
      }
      lock.unlock();  // it is being dropped
      std::this_thread::yield();
      lock.lock();
    }
    if (b->arena->own)
      s = PLAIT_ERROR;
    else
      b->lent = fresh;
  });
  if (s >= 0) return s;
  return thread->runtime->raise(thread, s, "receive",
                                "the message was read before, and its tensor is gone; bytes of "
                                "plait_multiprocessing can be read only once");
}

plait_status borrow(plait_thread *thread, plait_storage *ticket, void *pin, plait_storage **out) {
  Table &t = table();
  *out = nullptr;
  const DeviceTicket &k = ticket_of(ticket);
  if (ticket->nbytes != sizeof k || k.magic != ticket_magic)
    return thread->runtime->raise(thread, PLAIT_VALUE_ERROR, "receive",
                                  "the block of a tensor on a device is required");
  end_some_loans();
  const DLDevice d{DLDeviceType(k.device_type), k.device_id};
  const plait_device *device = nullptr;
  if (const plait_status s = device_of(thread, k, d, &device); s < 0) return s;
  auto *l = new (std::nothrow)
      Lent{ticket, nullptr, nullptr, d, k.nbytes, device, nullptr, nullptr, getpid()};
  if (!l) return thread->runtime->raise(thread, PLAIT_MEMORY_ERROR, "receive", "out of memory");
  plait_status s = find_open(thread, ticket, l, out);
  if (s < 0 || *out) {
    delete l;
    return s;
  }
  {
    const std::lock_guard<std::mutex> lock(t.mutex);
    l->file = k.memory.fd >= 0 ? static_cast<File *>(pin) : nullptr;
    if (l->file) l->file->users++;
  }
  s = open_memory(thread, k, l, out);
  const std::lock_guard<std::mutex> lock(t.mutex);
  if (s >= 0) {
    plait_retain(ticket);
    (*out)->o.type = &borrowed_type;
    l->storage = *out;
  } else {
    block_of(ticket)->lent = nullptr;
    if (l->file) leave_file(l->file);
    delete l;
  }
  t.opened.notify_all();
  return s;
}

}  // namespace

void end_loans() {
  Held lock(table().mutex);
  const size_t all = table().loans.size();
  lock.unlock();
  for (size_t n = 0, looks = 1; n < all && looks; n += looks) looks = end_some_loans();
}

void finish_borrowing() {
  Table &t = table();
  std::vector<std::pair<const plait_device *, DLDevice>> used;
  {
    const std::lock_guard<std::mutex> lock(t.mutex);
    for (const auto &[data, s] : t.storages) {
      const Lent *l = block_of(s)->lent;
      if (!l || !l->table) continue;
      const auto is_it = [&](const auto &u) { return same(u.second, l->device); };
      if (std::none_of(used.begin(), used.end(), is_it)) used.emplace_back(l->table, l->device);
    }
  }
  unlocked(t.runtime, [&] {
    for (const auto &[device, d] : used) device->synchronize(device->ctx, t.runtime->thread(), d);
  });
  const std::lock_guard<std::mutex> lock(t.mutex);
  t.left = true;
}

}  // namespace plait::multiprocessing

using namespace plait::multiprocessing;
#define PLAIT_EXPORT extern "C" __attribute__((visibility("default")))

PLAIT_EXPORT plait_status plait_shared_lend(plait_thread *thread, plait_storage *storage,
                                            plait_storage **ticket, void **pin) {
  return plait::border(thread, "send", [&] { return lend(thread, storage, ticket, pin); });
}

PLAIT_EXPORT plait_status plait_shared_borrow(plait_thread *thread, plait_storage *ticket,
                                              void *pin, plait_storage **out) {
  return plait::border(thread, "receive", [&] { return borrow(thread, ticket, pin, out); });
}
