// Pins: each keeps a file open whose descriptor messages carry, an arena or memory of a device.
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <new>

#include "device_memory.hpp"
#include "table.hpp"

namespace plait::multiprocessing {
namespace {

constexpr size_t most_idle = 4;  // limit of unused arenas of other processes that stay mapped

template <class F>
void remove(std::vector<F *> &files, const File *file) {
  files.erase(std::remove(files.begin(), files.end(), file), files.end());
}

template <class F>
F *known(const std::vector<F *> &files, const struct stat &status) {
  for (F *f : files)
    if (f->inode == status.st_ino && f->device == status.st_dev) return f;
  return nullptr;
}

// The functions from here on take the descriptor over, also on failure, and are called under the
// lock.

Arena *open_arena(int fd, const struct stat &status, Failure &f) {
  std::vector<Arena *> &arenas = table().arenas;
  if (Arena *a = known(arenas, status)) return close(fd), a;
  drop_idle();
  if (!room_for_one_more(arenas, f)) return close(fd), nullptr;
  Arena *a = map_arena(fd, f);
  if (a) arenas.push_back(a);
  return a;
}

// Two descriptors of one inode are one file, if it is a regular one. Others (of drivers) may stand
// for different things.
File *open_other(int fd, const struct stat &status, Failure &f) {
  std::vector<File *> &files = table().files;
  const bool regular = S_ISREG(status.st_mode);
  if (regular)
    if (File *same = known(files, status)) return close(fd), same;
  if (regular && !room_for_one_more(files, f)) return close(fd), nullptr;
  auto *file = new (std::nothrow) File{fd, status.st_dev, status.st_ino, 0, false};
  if (!file) {
    f.set(PLAIT_MEMORY_ERROR, "shared memory: %zu bytes are required to note a file", sizeof(File));
    return close(fd), nullptr;
  }
  if (regular) files.push_back(file);
  return file;
}

}  // namespace

void drop_idle() {  // arenas of dead processes at once, others when there are many
  size_t idle = 0;
  for (size_t i = table().arenas.size(); i-- > 0;) {
    Arena *a = table().arenas[i];
    if (a->own || a->users) continue;
    if (++idle <= most_idle && is_alive(a->pid)) continue;
    remove(table().arenas, a);
    unmap_arena(a);
  }
}

void leave_file(File *file) {
  if (--file->users) return;
  if (file->is_arena) {
    if (!static_cast<Arena *>(file)->own) drop_idle();
    return;
  }
  remove(table().files, file);
  close(file->fd);
  delete file;
}

File *open_file(int fd, Failure &f) {
  const std::lock_guard<std::mutex> lock(table().mutex);
  struct stat status{};
  if (fstat(fd, &status) != 0) {
    f.set(PLAIT_VALUE_ERROR, "shared memory: a descriptor is required, got %d: %s", fd,
          std::strerror(errno));
    return nullptr;
  }
  File *file = is_arena(fd) ? open_arena(fd, status, f) : open_other(fd, status, f);
  if (file) file->users++;
  return file;
}

}  // namespace plait::multiprocessing

using namespace plait::multiprocessing;
#define PLAIT_EXPORT extern "C" __attribute__((visibility("default")))

PLAIT_EXPORT void *plait_shared_pin(const plait_storage *s) {
  const std::lock_guard<std::mutex> lock(table().mutex);
  File *file = block_of(s)->arena;
  file->users++;
  return file;
}

PLAIT_EXPORT int plait_shared_descriptor(void *pin) { return static_cast<File *>(pin)->fd; }

PLAIT_EXPORT plait_status plait_shared_adopt(plait_thread *thread, int fd, void **pin) {
  Failure f;
  File *file = open_file(fd, f);
  *pin = file;
  return file ? PLAIT_OK : table().runtime->raise(thread, f.code, nullptr, "%s", f.text);
}

PLAIT_EXPORT void plait_shared_unpin(void *pin) {
  const std::lock_guard<std::mutex> lock(table().mutex);
  leave_file(static_cast<File *>(pin));
}
