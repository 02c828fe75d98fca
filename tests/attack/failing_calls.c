/* A library for LD_PRELOAD that lets the n-th call of a system function fail.
 *
 * fail_arm says which: from its next call on calls of `name` are counted, in all threads, and those
 * with the numbers first ... first + times - 1 fail with `error`; SHORT_TRANSFER lets reads and
 * writes move half of what was asked. "allocation" stands for malloc, new and mmap called by
 * plait's own libraries. Processes that are forked are not armed. fail_disarm returns how many
 * calls were seen; fewer than `first` means that none failed.
 *
 *   cc -std=c11 -O2 -shared -fPIC failing_calls.c -o failing_calls.so -ldl -lpthread */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <poll.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <unistd.h>

enum { SHORT_TRANSFER = -1, RANGES = 64 };
#define SHOWN __attribute__((visibility("default")))

static char target[64];
static long seen, begin, end;
static int armed, code;
static struct {
  uintptr_t low, high;
} ours[RANGES];
static int ranges;

static int note_range(struct dl_phdr_info *info, size_t size, void *data) {
  (void)size, (void)data;
  if (!info->dlpi_name || !strstr(info->dlpi_name, "/plait_")) return 0;
  for (int i = 0; i < info->dlpi_phnum && ranges < RANGES; i++) {
    const ElfW(Phdr) *part = &info->dlpi_phdr[i];
    if (part->p_type != PT_LOAD || !(part->p_flags & PF_X)) continue;
    ours[ranges].low = info->dlpi_addr + part->p_vaddr;
    ours[ranges++].high = info->dlpi_addr + part->p_vaddr + part->p_memsz;
  }
  return 0;
}

static void disarm(void) { armed = 0; }

SHOWN void fail_arm(const char *name, long first, long times, int error) {
  static int once;
  if (!once) pthread_atfork(NULL, NULL, disarm), once = 1;
  __atomic_store_n(&armed, 0, __ATOMIC_SEQ_CST);
  ranges = 0;
  dl_iterate_phdr(note_range, NULL);
  strncpy(target, name, sizeof target - 1);
  seen = 0, begin = first, end = first + times, code = error;
  __atomic_store_n(&armed, 1, __ATOMIC_SEQ_CST);
}

SHOWN long fail_disarm(void) {
  __atomic_store_n(&armed, 0, __ATOMIC_SEQ_CST);
  return __atomic_load_n(&seen, __ATOMIC_SEQ_CST);
}

/* Counts one call; whether it is to fail. */
static int failing(const char *name) {
  if (__builtin_expect(!__atomic_load_n(&armed, __ATOMIC_RELAXED), 1)) return 0;
  if (strcmp(name, target) != 0) return 0;
  const long number = __atomic_add_fetch(&seen, 1, __ATOMIC_SEQ_CST);
  if (number < begin || number >= end) return 0;
  if (code > 0) errno = code;
  return 1;
}

static int failing_allocation(void *caller) {
  if (__builtin_expect(!__atomic_load_n(&armed, __ATOMIC_RELAXED), 1)) return 0;
  for (int i = 0; i < ranges; i++)
    if ((uintptr_t)caller >= ours[i].low && (uintptr_t)caller < ours[i].high)
      return failing("allocation");
  return 0;
}
#define CALLER __builtin_return_address(0)

#define REAL(result, name, ...)       \
  static result (*real)(__VA_ARGS__); \
  if (!real) *(void **)&real = dlsym(RTLD_NEXT, #name)

/* ---- memory ---- */
extern void *__libc_malloc(size_t), *__libc_calloc(size_t, size_t), *__libc_realloc(void *, size_t);
extern void *__libc_memalign(size_t, size_t);

SHOWN void *malloc(size_t n) { return failing_allocation(CALLER) ? NULL : __libc_malloc(n); }
SHOWN void *calloc(size_t n, size_t size) {
  return failing_allocation(CALLER) ? NULL : __libc_calloc(n, size);
}
SHOWN void *realloc(void *p, size_t n) {
  return failing_allocation(CALLER) ? NULL : __libc_realloc(p, n);
}
SHOWN void *aligned_alloc(size_t align, size_t n) {
  return failing_allocation(CALLER) ? NULL : __libc_memalign(align, n);
}
SHOWN int posix_memalign(void **p, size_t align, size_t n) {
  void *result = failing_allocation(CALLER) ? NULL : __libc_memalign(align, n);
  if (!result) return ENOMEM;
  *p = result;
  return 0;
}

/* new of C++: the throwing ones fail by std::bad_alloc */
static void *new_or_throw(void *caller, size_t n) {
  void *p = failing_allocation(caller) ? NULL : __libc_malloc(n ? n : 1);
  if (p) return p;
  void *library = dlopen("libstdc++.so.6", RTLD_LAZY | RTLD_NOLOAD);
  void (*raise_bad_alloc)(void);
  *(void **)&raise_bad_alloc = library ? dlsym(library, "_ZSt17__throw_bad_allocv") : NULL;
  if (!raise_bad_alloc) abort();
  raise_bad_alloc();
  return NULL;
}
SHOWN void *_Znwm(size_t n) { return new_or_throw(CALLER, n); }
SHOWN void *_Znam(size_t n) { return new_or_throw(CALLER, n); }
SHOWN void *_ZnwmRKSt9nothrow_t(size_t n, const void *tag) {
  (void)tag;
  return failing_allocation(CALLER) ? NULL : __libc_malloc(n ? n : 1);
}

#define MMAP(name, offset)                                                                 \
  SHOWN void *name(void *at, size_t n, int protection, int flags, int file, offset from) { \
    REAL(void *, name, void *, size_t, int, int, int, offset);                             \
    if (failing_allocation(CALLER) || failing("mmap")) return (void *)-1;                  \
    return real(at, n, protection, flags, file, from);                                     \
  }
MMAP(mmap, off_t)
MMAP(mmap64, off64_t)

/* ---- reads and writes ---- */
#define TRANSFER(result, name, label, types, parameters, full, half) \
  SHOWN result name parameters {                                     \
    REAL(result, name, types);                                       \
    if (!failing(label)) return real full;                           \
    return code == SHORT_TRANSFER ? real half : -1;                  \
  }
#define LIST(...) __VA_ARGS__
TRANSFER(ssize_t, read, "read", LIST(int, void *, size_t), (int f, void *p, size_t n), (f, p, n),
         (f, p, (n + 1) / 2))
TRANSFER(ssize_t, write, "write", LIST(int, const void *, size_t), (int f, const void *p, size_t n),
         (f, p, n), (f, p, (n + 1) / 2))
TRANSFER(ssize_t, pread, "pread", LIST(int, void *, size_t, off_t),
         (int f, void *p, size_t n, off_t at), (f, p, n, at), (f, p, (n + 1) / 2, at))
TRANSFER(ssize_t, pread64, "pread", LIST(int, void *, size_t, off64_t),
         (int f, void *p, size_t n, off64_t at), (f, p, n, at), (f, p, (n + 1) / 2, at))
TRANSFER(ssize_t, pwrite, "pwrite", LIST(int, const void *, size_t, off_t),
         (int f, const void *p, size_t n, off_t at), (f, p, n, at), (f, p, (n + 1) / 2, at))
TRANSFER(ssize_t, pwrite64, "pwrite", LIST(int, const void *, size_t, off64_t),
         (int f, const void *p, size_t n, off64_t at), (f, p, n, at), (f, p, (n + 1) / 2, at))

/* ---- the rest: fails with -1 and errno ---- */
#define SIMPLE(result, name, label, types, parameters, values) \
  SHOWN result name parameters {                               \
    REAL(result, name, types);                                 \
    return failing(label) ? (result) - 1 : real values;        \
  }
SIMPLE(ssize_t, writev, "writev", LIST(int, const struct iovec *, int),
       (int f, const struct iovec *v, int n), (f, v, n))
SIMPLE(ssize_t, readv, "readv", LIST(int, const struct iovec *, int),
       (int f, const struct iovec *v, int n), (f, v, n))
SIMPLE(int, fsync, "fsync", LIST(int), (int f), (f))
SIMPLE(int, fdatasync, "fsync", LIST(int), (int f), (f))
SIMPLE(int, rename, "rename", LIST(const char *, const char *), (const char *a, const char *b),
       (a, b))
SIMPLE(int, renameat, "rename", LIST(int, const char *, int, const char *),
       (int f, const char *a, int g, const char *b), (f, a, g, b))
SIMPLE(int, unlink, "unlink", LIST(const char *), (const char *a), (a))
SIMPLE(int, ftruncate, "ftruncate", LIST(int, off_t), (int f, off_t n), (f, n))
SIMPLE(int, ftruncate64, "ftruncate", LIST(int, off64_t), (int f, off64_t n), (f, n))
SIMPLE(int, fallocate, "fallocate", LIST(int, int, off_t, off_t), (int f, int m, off_t a, off_t n),
       (f, m, a, n))
SIMPLE(int, memfd_create, "memfd_create", LIST(const char *, unsigned), (const char *s, unsigned f),
       (s, f))
SIMPLE(int, socketpair, "socketpair", LIST(int, int, int, int *), (int d, int t, int p, int v[2]),
       (d, t, p, v))
SIMPLE(ssize_t, sendmsg, "sendmsg", LIST(int, const struct msghdr *, int),
       (int f, const struct msghdr *m, int o), (f, m, o))
SIMPLE(ssize_t, recvmsg, "recvmsg", LIST(int, struct msghdr *, int),
       (int f, struct msghdr *m, int o), (f, m, o))
SIMPLE(ssize_t, send, "send", LIST(int, const void *, size_t, int),
       (int f, const void *p, size_t n, int o), (f, p, n, o))
SIMPLE(ssize_t, recv, "recv", LIST(int, void *, size_t, int), (int f, void *p, size_t n, int o),
       (f, p, n, o))
SIMPLE(int, pipe, "pipe", LIST(int *), (int v[2]), (v))
SIMPLE(int, pipe2, "pipe", LIST(int *, int), (int v[2], int o), (v, o))
SIMPLE(int, eventfd, "eventfd", LIST(unsigned, int), (unsigned n, int o), (n, o))
SIMPLE(int, poll, "poll", LIST(struct pollfd *, nfds_t, int), (struct pollfd * p, nfds_t n, int t),
       (p, n, t))
SIMPLE(pid_t, fork, "fork", LIST(void), (void), ())

SHOWN pid_t vfork(void) { return fork(); } /* a wrapper cannot return twice on one stack */

SHOWN int posix_fallocate(int f, off_t a, off_t n) {
  REAL(int, posix_fallocate, int, off_t, off_t);
  return failing("fallocate") ? code : real(f, a, n);
}

/* As Linux does it: only files have a close that fails, and the descriptor is gone all the same. */
SHOWN int close(int f) {
  REAL(int, close, int);
  struct stat status;
  const int before = errno, is_file = fstat(f, &status) == 0 && S_ISREG(status.st_mode);
  errno = before;
  const int fails = is_file && failing("close"), result = real(f);
  if (!fails) return result;
  errno = code;
  return -1;
}

SHOWN int pthread_create(pthread_t *thread, const pthread_attr_t *attributes, void *(*run)(void *),
                         void *argument) {
  REAL(int, pthread_create, pthread_t *, const pthread_attr_t *, void *(*)(void *), void *);
  return failing("pthread_create") ? code : real(thread, attributes, run, argument);
}

#define OPEN(name)                                         \
  SHOWN int name(const char *path, int flags, ...) {       \
    REAL(int, name, const char *, int, ...);               \
    va_list more;                                          \
    va_start(more, flags);                                 \
    const mode_t mode = va_arg(more, mode_t);              \
    va_end(more);                                          \
    return failing("open") ? -1 : real(path, flags, mode); \
  }
OPEN(open)
OPEN(open64)

SHOWN long syscall(long number, ...) {
  REAL(long, syscall, long, ...);
  va_list more;
  va_start(more, number);
  long a[6];
  for (int i = 0; i < 6; i++) a[i] = va_arg(more, long);
  va_end(more);
#ifdef SYS_pidfd_open
  if (number == SYS_pidfd_open && failing("pidfd_open")) return -1;
#endif
  return real(number, a[0], a[1], a[2], a[3], a[4], a[5]);
}
