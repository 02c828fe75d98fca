#include "arena.hpp"

#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <new>

#ifndef MFD_CLOEXEC
#define MFD_CLOEXEC 1u
#endif
#ifndef MFD_ALLOW_SEALING
#define MFD_ALLOW_SEALING 2u
#endif

namespace plait::multiprocessing {
namespace {

constexpr int seals = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL;
constexpr uint64_t unlimited = ~uint64_t(0);

uint64_t number_in(const char *path, const char *key) {  // unlimited if there is none
  std::FILE *file = std::fopen(path, "re");
  if (!file) return unlimited;
  char line[256];
  uint64_t result = unlimited;
  while (result == unlimited && std::fgets(line, sizeof line, file)) {
    const size_t n = std::strlen(key);
    if (std::strncmp(line, key, n) != 0) continue;
    char *end = nullptr;
    const unsigned long long x = std::strtoull(line + n, &end, 10);
    if (end != line + n) result = x;
    if (result == unlimited) break;  // "max"
  }
  std::fclose(file);
  return result;
}

// The memory that can be used without the kernel killing a process.
uint64_t available() {
  uint64_t room = unlimited;
  const uint64_t free_kib = number_in("/proc/meminfo", "MemAvailable:");
  if (free_kib != unlimited) {
    const uint64_t swap = number_in("/proc/meminfo", "SwapFree:");
    room = (free_kib + (swap == unlimited ? 0 : swap)) * 1024;
  }
  const uint64_t most = number_in("/sys/fs/cgroup/memory.max", "");
  const uint64_t now = number_in("/sys/fs/cgroup/memory.current", "");
  const uint64_t cached = number_in("/sys/fs/cgroup/memory.stat", "inactive_file ");
  if (most != unlimited && now != unlimited) {
    const uint64_t busy = now - (cached == unlimited || cached > now ? 0 : cached);
    const uint64_t left = busy < most ? most - busy : 0;
    if (left < room) room = left;
  }
  return room;
}

bool own_limit(uint64_t &limit, Failure &f) {
  const char *text = std::getenv("PLAIT_SHARED_MEMORY_LIMIT");
  limit = unlimited;
  if (!text || !*text) return true;
  char *end = nullptr;
  limit = std::strtoull(text, &end, 10);
  if (*text >= '0' && *text <= '9' && !*end) return true;
  f.set(PLAIT_VALUE_ERROR, "PLAIT_SHARED_MEMORY_LIMIT: a number of bytes is required, got '%.100s'",
        text);
  return false;
}

std::atomic<uint64_t> taken{0};  // committed by this process

void describe_errno(Failure &f, const char *subject, uint64_t bytes) {
  rlimit limit{};
  if (errno == EMFILE || errno == ENFILE) {
    getrlimit(RLIMIT_NOFILE, &limit);
    f.set(PLAIT_ERROR,
          "shared memory: a file descriptor is required, and the limit of open files "
          "(RLIMIT_NOFILE) is %llu; raise it with `ulimit -n` or resource.setrlimit",
          static_cast<unsigned long long>(limit.rlim_cur));
    return;
  }
  if (errno == EFBIG) {
    getrlimit(RLIMIT_FSIZE, &limit);
    f.set(PLAIT_MEMORY_ERROR,
          "shared memory: %llu bytes are required, and the limit of file sizes (RLIMIT_FSIZE) is "
          "%llu bytes; raise it with `ulimit -f`",
          static_cast<unsigned long long>(bytes), static_cast<unsigned long long>(limit.rlim_cur));
    return;
  }
  const plait_status code = errno == ENOMEM || errno == ENOSPC ? PLAIT_MEMORY_ERROR : PLAIT_ERROR;
  f.set(code, "shared memory: %s of %llu bytes failed: %s", subject,
        static_cast<unsigned long long>(bytes), std::strerror(errno));
}

Arena *failed(int fd, void *base, uint64_t size) {
  if (base != MAP_FAILED) munmap(base, size);
  close(fd);
  return nullptr;
}

// An arena on a descriptor and its mapping; nullptr with a failure, after which both are closed.
Arena *over(int fd, void *base, uint64_t size, const struct stat &status, Failure &f) {
  auto *a = new (std::nothrow) Arena{};
  if (!a) {
    f.set(PLAIT_MEMORY_ERROR, "shared memory: %zu bytes are required to note an arena",
          sizeof(Arena));
    return failed(fd, base, size);
  }
  a->fd = fd;
  a->is_arena = true;
  a->base = static_cast<char *>(base);
  a->size = size;
  a->device = status.st_dev;
  a->inode = status.st_ino;
  return a;
}

}  // namespace

uint64_t bytes_taken() { return taken.load(); }
void forget_taken() { taken = 0; }

void Failure::set(plait_status c, const char *format, ...) {
  code = c;
  va_list list;
  va_start(list, format);
  std::vsnprintf(text, sizeof text, format, list);
  va_end(list);
}

bool is_alive(int64_t pid) { return kill(pid_t(pid), 0) == 0 || errno != ESRCH; }

Arena *make_arena(uint64_t size, Failure &f) {
  const int fd = memfd_create("plait", MFD_CLOEXEC | MFD_ALLOW_SEALING);
  if (fd < 0) {
    describe_errno(f, "memfd_create", size);
    return nullptr;
  }
  if (ftruncate(fd, off_t(size)) != 0) {
    describe_errno(f, "ftruncate", size);
    return failed(fd, MAP_FAILED, 0);
  }
  void *base = mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, fd, 0);
  struct stat status{};
  if (base == MAP_FAILED || fcntl(fd, F_ADD_SEALS, seals) != 0 || fstat(fd, &status) != 0) {
    describe_errno(f, "mmap", size);
    return failed(fd, base, size);
  }
  Arena *a = over(fd, base, size, status, f);
  if (!a) return nullptr;
  a->own = true;
  a->pid = getpid();
  a->used = header_bytes;
  if (getrandom(a->id, sizeof a->id, 0) != ssize_t(sizeof a->id) ||
      !commit(a, 0, header_bytes, f)) {
    if (!f.code) f.set(PLAIT_ERROR, "shared memory: getrandom failed: %s", std::strerror(errno));
    unmap_arena(a);
    return nullptr;
  }
  a->committed = header_bytes;
  auto *header = reinterpret_cast<ArenaHeader *>(base);
  *header = {arena_magic, size, {a->id[0], a->id[1]}, a->pid};
  return a;
}

bool is_arena(int fd) {
  uint64_t magic = 0;
  const int result = fcntl(fd, F_GET_SEALS);
  if (result < 0 || (result & F_SEAL_SHRINK) == 0) return false;
  if (pread(fd, &magic, sizeof magic, 0) != ssize_t(sizeof magic)) return false;
  return (magic ^ arena_magic) << 16 == 0;  // the last two letters are the version
}

Arena *map_arena(int fd, Failure &f) {
  struct stat status{};
  const int result = fcntl(fd, F_GET_SEALS);
  if (fstat(fd, &status) != 0 || result < 0 || (result & F_SEAL_SHRINK) == 0 ||
      uint64_t(status.st_size) < header_bytes) {
    f.set(PLAIT_VALUE_ERROR, "shared memory: the descriptor that arrived is not an arena of plait");
    return failed(fd, MAP_FAILED, 0);
  }
  const auto size = uint64_t(status.st_size);
  void *base = mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, fd, 0);
  if (base == MAP_FAILED) {
    describe_errno(f, "mmap", size);
    return failed(fd, base, size);
  }
  const auto *header = static_cast<const ArenaHeader *>(base);
  if (header->magic != arena_magic || header->size != size) {
    f.set(PLAIT_VALUE_ERROR,
          "shared memory: an arena of another version of plait-multiprocessing arrived");
    return failed(fd, base, size);
  }
  Arena *a = over(fd, base, size, status, f);
  if (!a) return nullptr;
  a->pid = header->pid;
  a->id[0] = header->id[0];
  a->id[1] = header->id[1];
  return a;
}

void unmap_arena(Arena *a) {
  munmap(a->base, a->size);
  close(a->fd);
  delete a;
}

bool commit(Arena *a, uint64_t from, uint64_t to, Failure &f) {
  const uint64_t bytes = to - from;
  uint64_t limit = 0;
  if (!own_limit(limit, f)) return false;
  if (limit != unlimited && taken.load() + bytes > limit) {
    f.set(PLAIT_MEMORY_ERROR,
          "shared memory: %llu bytes more are required, this process has taken %llu of the %llu "
          "that PLAIT_SHARED_MEMORY_LIMIT allows",
          static_cast<unsigned long long>(bytes), static_cast<unsigned long long>(taken.load()),
          static_cast<unsigned long long>(limit));
    return false;
  }
  const uint64_t left = bytes > header_bytes ? available() : unlimited;
  if (bytes > left) {
    f.set(PLAIT_MEMORY_ERROR,
          "shared memory: %llu bytes more are required, the machine or its memory cgroup has %llu "
          "left; share less, or drop tensors that other processes hold",
          static_cast<unsigned long long>(bytes), static_cast<unsigned long long>(left));
    return false;
  }
  int s = 0;
  do {
    s = posix_fallocate(a->fd, off_t(from), off_t(bytes));
  } while (s == EINTR);
  if (s != 0) {
    errno = s;
    describe_errno(f, "fallocate", bytes);
    return false;
  }
  taken += bytes;
  return true;
}

void punch(Arena *a, uint64_t from, uint64_t to) {
  const auto page = uint64_t(sysconf(_SC_PAGESIZE));
  const uint64_t low = (from + page - 1) / page * page, high = to / page * page;
  if (low < high && fallocate(a->fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, off_t(low),
                              off_t(high - low)) == 0)
    taken -= high - low;
}

}  // namespace plait::multiprocessing
