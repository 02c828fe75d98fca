// Runs the blocks of a launch, in an order that looks random, on threads of the host.
#include <pthread.h>
#include <unistd.h>

#include <atomic>
#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <mutex>

#include "emulation/kernels/shadow.h"
#include "emulation/kernels/team.h"

extern "C" {
// The linker sets these to the ends of the list; a library without kernels has none.
extern const plait::cuda::emulation::Entry __start_plait_device_kernels[] __attribute__((weak));
extern const plait::cuda::emulation::Entry __stop_plait_device_kernels[] __attribute__((weak));
}

namespace plait::cuda::emulation {
namespace {

uint64_t seed() {
  static const uint64_t value = [] {
    const char *text = getenv("PLAIT_CUDA_SEED");
    return text ? strtoull(text, nullptr, 10) : 0;
  }();
  return value;
}
bool checks_races() {
  static const bool value = [] {
    const char *text = getenv("PLAIT_CUDA_CHECK");
    return text && *text && strcmp(text, "0") != 0;
  }();
  return value;
}
uint64_t mixed(uint64_t x) {  // splitmix64
  x += 0x9e3779b97f4a7c15u;
  x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9u;
  x = (x ^ x >> 27) * 0x94d049bb133111ebu;
  return x ^ x >> 31;
}
uint64_t common_divisor(uint64_t a, uint64_t b) { return b ? common_divisor(b, a % b) : a; }

// The blocks of one launch, which several threads take in turns.
struct Job {
  const Launch *launch;
  uint64_t blocks, step, offset;  // block i of the order is number (i * step + offset) % blocks
  std::atomic<uint64_t> next{0};
  std::atomic<bool> stopped{false};
  std::mutex lock;
  Trap *trap;
  Shadow *shadow = nullptr;

  Job(const Launch &of, Trap *out) : launch(&of), trap(out) {
    blocks = uint64_t(of.grid[0]) * of.grid[1] * of.grid[2];
    const uint64_t random = mixed(seed() ^ blocks);
    step = random % blocks | 1;
    while (common_divisor(step, blocks) != 1) step += 2;
    offset = (random >> 20) % blocks;
  }
  void fail(const Trap &why) {
    const std::lock_guard<std::mutex> hold(lock);
    if (!stopped.exchange(true)) *trap = why;
  }
};

void place(BlockState &state, const Launch &launch, uint64_t number) {
  state.x = uint32_t(number % launch.grid[0]);
  state.y = uint32_t(number / launch.grid[0] % launch.grid[1]);
  state.z = uint32_t(number / launch.grid[0] / launch.grid[1]);
}

Team &own_team() {
  static thread_local std::unique_ptr<Team> team;
  if (!team) team = std::make_unique<Team>();
  return *team;
}

void run_blocks(Job &job) {
  const Launch &launch = *job.launch;
  BlockState state = {};
  state.launch = &launch;
  state.shadow = job.shadow;
  try {
    for (uint64_t i; !job.stopped && (i = job.next++) < job.blocks;) {
      // 128 bits: blocks are up to 2^63
      place(state, launch,
            uint64_t((unsigned __int128)(i)*job.step % job.blocks + job.offset) % job.blocks);
      if (launch.entry->has_barriers) {
        Trap trap;
        if (!run_team(own_team(), state, &trap)) return job.fail(trap);
      } else {
        launch.entry->run(state, 0, int(launch.threads), launch.args);
      }
    }
  } catch (const Trapped &trapped) {
    job.fail(trapped.trap);
  } catch (const std::bad_alloc &) {
    Trap trap = {driver::kLaunchOutOfResources, {}};
    snprintf(trap.text, sizeof trap.text, "%s: the host has no memory to run it",
             launch.entry->name);
    job.fail(trap);
  }
}

// Threads that wait for launches with many blocks. They are never ended.
class Pool {
 public:
  // Runs the job on this thread and on those of the pool; on this one alone if they are busy.
  void run(Job &job) {
    std::unique_lock<std::mutex> only(busy_, std::try_to_lock);
    if (!only.owns_lock()) return run_blocks(job);
    {
      const std::lock_guard<std::mutex> hold(lock_);
      const int64_t most = sysconf(_SC_NPROCESSORS_ONLN) - 1;
      for (; started_ < most && started_ < int64_t(job.blocks) - 1; started_++) {
        pthread_t thread;
        if (pthread_create(&thread, nullptr, serve, this)) break;
        pthread_detach(thread);
      }
      job_ = &job;
      round_++;
    }
    changed_.notify_all();
    run_blocks(job);
    std::unique_lock<std::mutex> hold(lock_);
    job_ = nullptr;
    while (running_) finished_.wait(hold);
  }
  int64_t threads() {
    const std::lock_guard<std::mutex> hold(lock_);
    return started_;
  }

 private:
  static void *serve(void *self) {
    static_cast<Pool *>(self)->wait_for_jobs();
    return nullptr;
  }
  void wait_for_jobs() {
    uint64_t last = 0;
    std::unique_lock<std::mutex> hold(lock_);
    for (;;) {
      while (!job_ || round_ == last) changed_.wait(hold);
      last = round_;
      Job *job = job_;
      running_++;
      hold.unlock();
      run_blocks(*job);
      hold.lock();
      if (--running_ == 0) finished_.notify_all();
    }
  }

  std::mutex busy_, lock_;
  std::condition_variable changed_, finished_;
  Job *job_ = nullptr;
  uint64_t round_ = 0;
  int64_t started_ = 0, running_ = 0;
};
Pool &pool() {
  static Pool *one = new Pool;  // never freed: its threads outlive the end of main
  return *one;
}

void run(const Launch &launch, Trap *trap) {
  Job job(launch, trap);
  if (checks_races()) {  // one launch and one block at a time
    static std::mutex one;
    const std::lock_guard<std::mutex> hold(one);
    Shadow shadow;
    job.shadow = &shadow;
    return run_blocks(job);
  }
  const uint64_t threads = job.blocks * launch.threads;
  // waking threads costs more than few blocks do
  if (job.blocks >= 4 && threads >= 16384)
    pool().run(job);
  else
    run_blocks(job);
}

}  // namespace
}  // namespace plait::cuda::emulation

extern "C" __attribute__((visibility("default"))) const plait::cuda::emulation::Library *
plait_cuda_emulated_library() {
  using namespace plait::cuda::emulation;
  static const Library library = {__start_plait_device_kernels, __stop_plait_device_kernels, run,
                                  [] { return pool().threads(); }};
  return &library;
}
