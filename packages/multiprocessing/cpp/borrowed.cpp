#include "borrowed.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>

#include "device_memory.hpp"
#include "table.hpp"

namespace plait::multiprocessing {
namespace {

Arena *find(const uint64_t id[2]) {  // under the lock
  for (Arena *a : table().arenas)
    if (a->id[0] == id[0] && a->id[1] == id[1]) return a;
  return nullptr;
}

// Counts this process as one that holds the block; under the lock.
bool hold(Arena *a, const Place &place, uint64_t nbytes) {
  const plait_block_name &b = place.block;
  if (b.offset < header_bytes + block_header || b.offset % block_header || b.offset > a->size)
    return false;
  std::atomic<uint64_t> &counts = a->header(b.offset)->counts;
  uint64_t w = counts.load(std::memory_order_acquire);
  do {
    const uint64_t room = a->header(b.offset)->room;
    if (Counts::generation(w) != b.generation || Counts::is_free(w) || room > a->size - b.offset ||
        place.at > room || nbytes > room - place.at)
      return false;
  } while (!counts.compare_exchange_weak(w, w + Counts::one_holder, std::memory_order_acq_rel));
  return true;
}

}  // namespace

Place place_of(const plait_tensor *t) {
  Place p{};
  if (t->storage->device.device_type != kDLCPU || !plait_shared_is_block(t->storage)) return p;
  p.known = 1;
  p.descriptor = block_of(t->storage)->arena->fd;
  plait_shared_name(t->storage, &p.block);
  p.at = uint64_t(static_cast<char *>(t->dl.data) - static_cast<char *>(t->storage->data));
  return p;
}

char *Borrowed::take(const Place &place, uint64_t nbytes, int64_t pid) {
  held_.reserve(held_.size() + 1);
  pinned_.reserve(pinned_.size() + 1);
  File *opened = nullptr;
  {
    const std::lock_guard<std::mutex> lock(table().mutex);
    if (Arena *a = find(place.block.arena)) {
      a->users++;
      opened = a;
    }
  }
  if (!opened) {
    char path[64];
    std::snprintf(path, sizeof path, "/proc/%lld/fd/%d", static_cast<long long>(pid),
                  place.descriptor);
    const int fd = open(path, O_RDWR | O_CLOEXEC);
    Failure f;
    opened = fd < 0 || !is_arena(fd) ? nullptr : open_file(fd, f);
    if (!opened) {
      if (fd >= 0 && !f.code) close(fd);
      return nullptr;
    }
  }
  const std::lock_guard<std::mutex> lock(table().mutex);
  const bool known = std::find(pinned_.begin(), pinned_.end(), opened) != pinned_.end();
  if (known)
    opened->users--;  // one pin is enough
  else
    pinned_.push_back(opened);
  Arena *a = find(place.block.arena);  // what was opened may be another file by now
  if (!a || a != opened || !hold(a, place, nbytes)) return nullptr;
  held_.push_back({a, place.block.offset});
  return a->base + place.block.offset + place.at;
}

void Borrowed::give_back() {
  for (const Held &h : held_) step_back(h.arena, h.offset);
  held_.clear();
}

Borrowed::~Borrowed() {
  give_back();
  const std::lock_guard<std::mutex> lock(table().mutex);
  for (File *f : pinned_) leave_file(f);
}

}  // namespace plait::multiprocessing
