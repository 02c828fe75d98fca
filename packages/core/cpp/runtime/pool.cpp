// Role "executor": one thread pool for the whole process.
//
// A parallel call opens a job and wakes workers. Each thread has a range of the indices, the same
// part in every job: what one operator wrote is in the cache, and on the memory node, of the thread
// that reads it in the next one. A thread that has reached the end of its range goes on with those
// of others, so a thread that lost its core claims fewer. Workers wait a few microseconds before
// they sleep. Nested calls, calls while another thread's job is running, and calls on workers run
// serially in their caller.
#include <linux/futex.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <climits>
#include <cstdlib>

#include "core.hpp"
#include "lock.hpp"

namespace plait::core {
namespace {

constexpr uint32_t kMaxThreads = 256;
constexpr uint32_t kOpen = 1u << 31;  // gate: a job is open; the low bits count the workers inside
constexpr int64_t kLinger = 25000;  // ns that a worker waits for the next job before it sleeps
constexpr int64_t kGap = 200000;  // the same, while jobs follow each other within so many ns
constexpr int64_t kPatience = 20000;  // ns that a caller waits for the last worker before it sleeps

using Task = void (*)(void *, uint64_t);

// Clang and gcc make thread-local variables of a library loaded later slow to reach; this model is
// a single load.
__attribute__((tls_model("initial-exec"))) thread_local bool inside = false;

int64_t now() {
  timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return int64_t(t.tv_sec) * 1000000000 + t.tv_nsec;
}

void sleep_on(uint32_t *word, uint32_t seen) {
  syscall(SYS_futex, word, FUTEX_WAIT_PRIVATE, seen, nullptr, nullptr, 0);
}
void wake(uint32_t *word, int count) {
  syscall(SYS_futex, word, FUTEX_WAKE_PRIVATE, count, nullptr, nullptr, 0);
}

// Waits until *word differs from `seen`, spinning for `patience` ns at most. False: the time is up.
bool changed(const uint32_t *word, uint32_t seen, int64_t patience) {
  const int64_t end = now() + patience;
  do {
    for (int i = 0; i < 64; i++) {
      if (__atomic_load_n(word, __ATOMIC_ACQUIRE) != seen) return true;
      pause();
    }
  } while (now() < end);
  return false;
}

uint32_t default_width() {
  if (const char *text = std::getenv("PLAIT_NUM_THREADS")) {
    char *end = nullptr;
    const long n = std::strtol(text, &end, 10);
    if (*text && !*end && n >= 1) return n < long(kMaxThreads) ? uint32_t(n) : kMaxThreads;
  }
  cpu_set_t set;
  CPU_ZERO(&set);
  if (sched_getaffinity(0, sizeof set, &set) != 0) return 1;
  const int n = CPU_COUNT(&set);
  return n < 1 ? 1 : n < int(kMaxThreads) ? uint32_t(n) : kMaxThreads;
}

class Pool {
 public:
  uint32_t width() const { return inside ? 1 : limit(); }
  void set_width(uint32_t n);
  void parallel(uint64_t n, Task fn, void *arg);
  void stop();
  void after_fork();

 private:
  uint32_t limit() const { return __atomic_load_n(&limit_, __ATOMIC_RELAXED); }
  void launch(uint32_t workers);
  void work(uint32_t id);
  void open(uint64_t n, Task fn, void *arg);
  void close();
  void claim(uint32_t own);
  static void *main(void *arg);

  // The words that both callers and workers write to are on cache lines of their own.
  struct alignas(64) Range {
    uint64_t next, end;  // the next index to claim, and where the range ends
  };
  Range ranges_[kMaxThreads];  // of the job; the caller's is the first
  alignas(64) uint32_t gate_ = 0;
  alignas(64) uint32_t epoch_ = 0;  // grows with every job: what workers sleep on
  uint32_t sleepers_ = 0;
  alignas(64) uint32_t busy_ = 0;  // a caller owns the pool
  uint32_t limit_ = 0;
  uint32_t launched_ = 0;  // workers that exist; guarded by busy_
  uint32_t quit_ = 0;
  uint32_t parts_ = 1;  // the job: written before the gate opens, as the ranges are
  Task fn_ = nullptr;
  void *arg_ = nullptr;
  pthread_t threads_[kMaxThreads];
};

Pool pool;

void Pool::claim(uint32_t own) {
  const uint32_t parts = parts_;
  const Task fn = fn_;
  void *const arg = arg_;
  for (uint32_t k = 0; k < parts; k++) {
    Range &r = ranges_[(own + k) % parts];
    if (__atomic_load_n(&r.next, __ATOMIC_RELAXED) >= r.end) continue;
    for (uint64_t i; (i = __atomic_fetch_add(&r.next, 1, __ATOMIC_RELAXED)) < r.end;) fn(arg, i);
  }
}

void *Pool::main(void *arg) {
  inside = true;
  pool.work(uint32_t(reinterpret_cast<uintptr_t>(arg)));
  return nullptr;
}

void Pool::work(uint32_t id) {
  uint32_t seen = 0;
  int64_t waiting = 0, linger = kLinger;  // since when it waits for a job, and for how long awake
  while (!__atomic_load_n(&quit_, __ATOMIC_ACQUIRE)) {
    if (id + 1 < limit()) {
      if (__atomic_fetch_add(&gate_, 1, __ATOMIC_ACQUIRE) & kOpen) claim(id + 1);
      // the last worker to leave a closed gate wakes the caller, which may sleep
      if (__atomic_sub_fetch(&gate_, 1, __ATOMIC_RELEASE) == 0) wake(&gate_, 1);
    }
    const uint32_t epoch = __atomic_load_n(&epoch_, __ATOMIC_ACQUIRE);
    if (epoch != seen) {
      if (waiting) linger = now() - waiting < kGap ? kGap : kLinger;
      waiting = 0;
      seen = epoch;
      continue;
    }
    if (!waiting) waiting = now();
    if (id + 1 < limit() && changed(&epoch_, seen, linger)) continue;
    __atomic_fetch_add(&sleepers_, 1, __ATOMIC_SEQ_CST);
    sleep_on(&epoch_, seen);
    __atomic_fetch_sub(&sleepers_, 1, __ATOMIC_SEQ_CST);
  }
}

void Pool::launch(uint32_t workers) {
  sigset_t all, old;
  sigfillset(&all);  // signals belong to the program's own threads
  pthread_sigmask(SIG_SETMASK, &all, &old);
  while (launched_ < workers) {
    void *id = reinterpret_cast<void *>(uintptr_t(launched_));
    if (pthread_create(&threads_[launched_], nullptr, main, id) != 0)
      break;  // fewer threads, the same results
    launched_++;
  }
  pthread_sigmask(SIG_SETMASK, &old, nullptr);
}

void Pool::open(uint64_t n, Task fn, void *arg) {
  fn_ = fn;
  arg_ = arg;
  parts_ = uint32_t(n < launched_ + 1 ? n : launched_ + 1);
  if (parts_ > limit()) parts_ = limit();
  uint64_t begin = 0;
  for (uint32_t i = 0; i < parts_; i++) {
    const uint64_t end = begin + n / parts_ + (i < n % parts_);
    __atomic_store_n(&ranges_[i].next, begin, __ATOMIC_RELAXED);
    ranges_[i].end = end;
    begin = end;
  }
  __atomic_fetch_or(&gate_, kOpen, __ATOMIC_RELEASE);
  __atomic_fetch_add(&epoch_, 1, __ATOMIC_SEQ_CST);
  if (__atomic_load_n(&sleepers_, __ATOMIC_SEQ_CST)) {
    const uint32_t required = n - 1 < launched_ ? uint32_t(n - 1) : launched_;
    wake(&epoch_, launched_ + 1 > limit() ? INT_MAX : int(required));
  }
}

void Pool::close() {
  uint32_t left = __atomic_and_fetch(&gate_, ~kOpen, __ATOMIC_ACQ_REL);
  while (left) {
    if (!changed(&gate_, left, kPatience)) sleep_on(&gate_, left);
    left = __atomic_load_n(&gate_, __ATOMIC_ACQUIRE);
  }
}

void Pool::parallel(uint64_t n, Task fn, void *arg) {
  const uint32_t width = limit();
  if (n <= 1 || width <= 1 || inside || __atomic_exchange_n(&busy_, 1, __ATOMIC_ACQUIRE)) {
    for (uint64_t i = 0; i < n; i++) fn(arg, i);
    return;
  }
  if (launched_ + 1 < width && !quit_) launch(width - 1);
  inside = true;
  open(n, fn, arg);
  claim(0);
  close();
  inside = false;
  __atomic_store_n(&busy_, 0, __ATOMIC_RELEASE);
}

void Pool::set_width(uint32_t n) {
  __atomic_store_n(&limit_, n < 1 ? 1 : n < kMaxThreads ? n : kMaxThreads, __ATOMIC_RELAXED);
}

void Pool::stop() {
  if (inside) return;  // exit was called inside a job: the workers end with the process
  while (__atomic_exchange_n(&busy_, 1, __ATOMIC_ACQUIRE)) sched_yield();
  __atomic_store_n(&quit_, 1, __ATOMIC_RELEASE);
  __atomic_fetch_add(&epoch_, 1, __ATOMIC_SEQ_CST);
  wake(&epoch_, INT_MAX);
  for (uint32_t i = 0; i < launched_; i++) pthread_join(threads_[i], nullptr);
  launched_ = 0;
  set_width(1);
  __atomic_store_n(&busy_, 0, __ATOMIC_RELEASE);
}

// A child has the forking thread only: the workers are dropped, and the next parallel call makes
// new ones.
void Pool::after_fork() {
  launched_ = gate_ = sleepers_ = busy_ = epoch_ = 0;
  inside = false;
}

uint32_t pool_width(void *) { return pool.width(); }
void pool_parallel(void *, uint64_t n, Task fn, void *arg) { pool.parallel(n, fn, arg); }
void pool_set_width(void *, uint32_t n) { pool.set_width(n); }

const plait_executor kTable = {PLAIT_HEADER(plait_executor),
                               "plait_core.pool",
                               nullptr,
                               pool_width,
                               pool_parallel,
                               pool_set_width};

}  // namespace

const plait_executor *thread_pool() {
  static const int once = (pool.set_width(default_width()),
                           pthread_atfork(nullptr, nullptr, [] { pool.after_fork(); }));
  (void)once;
  return &kTable;
}

void stop_thread_pool() { pool.stop(); }

}  // namespace plait::core
