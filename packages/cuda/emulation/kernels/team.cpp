#include "emulation/kernels/team.h"

#include <sys/mman.h>

#include <cstdlib>

extern "C" void plait_emulation_switch(void **from, void *to);

#if defined(__SANITIZE_ADDRESS__)
#define PLAIT_ASAN 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define PLAIT_ASAN 1
#endif
#endif
#ifdef PLAIT_ASAN
#include <pthread.h>
#include <sanitizer/common_interface_defs.h>
#endif

namespace plait::cuda::emulation {
namespace {

thread_local Team *running = nullptr;

void leave(Team &team);

// The sanitizer of addresses is told of each stack that is entered.
#ifdef PLAIT_ASAN
void jump(void **from, void *to, const void *bottom, size_t size) {
  void *left = nullptr;
  __sanitizer_start_switch_fiber(&left, bottom, size);
  plait_emulation_switch(from, to);
  __sanitizer_finish_switch_fiber(left, nullptr, nullptr);
}
void find_host_stack(Team &team) {
  pthread_attr_t attributes;
  pthread_getattr_np(pthread_self(), &attributes);
  pthread_attr_getstack(&attributes, &team.host_stack, &team.host_stack_size);
  pthread_attr_destroy(&attributes);
}
void enter() { __sanitizer_finish_switch_fiber(nullptr, nullptr, nullptr); }
#else
void jump(void **from, void *to, const void *, size_t) { plait_emulation_switch(from, to); }
void find_host_stack(Team &) {}
void enter() {}
#endif

void jump_to_fibre(Team &team, void **from, int to) {
  team.current = to;
  jump(from, team.fibre[to].stack_pointer, team.stacks + size_t(to) * (kStack + kGuard) + kGuard,
       kStack);
}

// The first frame of a fibre.
void begin() {
  enter();
  Team &team = *running;
  const int thread = team.current;
  try {
    team.state->launch->entry->run(*team.state, thread, thread + 1, team.state->launch->args);
  } catch (const Trapped &trapped) {
    *team.trap = trapped.trap;
    team.stopped = true;
  }
  Warp &warp = team.warp[thread / kWarp];
  const uint32_t bit = 1u << (thread % kWarp);
  warp.done |= bit;
  warp.ready &= ~bit;
  team.live--;
  leave(team);
  abort();  // nobody continues a fibre that is done
}

// 0 as its return address ends the stack for debuggers.
void prepare(Team &team, int thread) {
  char *top = team.stacks + size_t(thread + 1) * (kStack + kGuard);
  void **p = reinterpret_cast<void **>(top);
#if defined(__x86_64__)
  *--p = nullptr;  // the return address of begin(); the stack is aligned as after a call
  *--p = reinterpret_cast<void *>(&begin);
  for (int i = 0; i < 6; i++) *--p = nullptr;
#else
  p -= 20;
  for (int i = 0; i < 20; i++) p[i] = nullptr;
  p[11] = reinterpret_cast<void *>(&begin);  // x30
#endif
  team.fibre[thread].stack_pointer = p;
}

void reserve_stacks(Team &team) {
  if (team.stacks_count >= team.threads) return;
  const size_t each = kStack + kGuard;
  if (team.stacks) munmap(team.stacks, size_t(team.stacks_count) * each);
  team.stacks_count = 0;
  void *all = mmap(nullptr, size_t(team.threads) * each, PROT_READ | PROT_WRITE,
                   MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_STACK, -1, 0);
  if (all == MAP_FAILED) {
    team.stacks = nullptr;
    throw std::bad_alloc();
  }
  team.stacks = static_cast<char *>(all);
  team.stacks_count = team.threads;
  for (int i = 0; i < team.threads; i++)
    mprotect(team.stacks + size_t(i) * each, kGuard, PROT_NONE);
}

void reserve_shared(Team &team, size_t bytes) {
  const size_t words = (bytes + 3) / 4;
  if (team.words.size() < words) {
    team.words.resize(words);
    team.bytes.resize(words * 4);
    team.split.resize(words);
    team.shared.resize(words / 2 + 3);
  }
  const auto first = reinterpret_cast<uintptr_t>(team.shared.data());
  team.shared_data = reinterpret_cast<char *>((first + 15) / 16 * 16);
}

// Continues with another lane of the warp that can run, or else with the host's stack.
void leave(Team &team) {
  const int from = team.current;
  const Warp &warp = team.warp[from / kWarp];
  if (warp.ready && !team.stopped) {
    jump_to_fibre(team, &team.fibre[from].stack_pointer,
                  from / kWarp * kWarp + __builtin_ctz(warp.ready));
  } else {
    jump(&team.fibre[from].stack_pointer, team.host_stack_pointer, team.host_stack,
         team.host_stack_size);
  }
}

const char *name_of(Meeting kind) {
  static const char *const names[] = {"barrier", "warp barrier", "shuffle", "ballot"};
  return names[kind];
}

void start(Team &team, BlockState &state, Trap *out) {
  const Launch &launch = *state.launch;
  team.threads = team.live = int(launch.threads);
  team.warps = (team.threads + kWarp - 1) / kWarp;
  team.at_barrier = 0;
  team.first_epoch = ++team.epoch;
  team.stopped = false;
  team.trap = out;
  team.state = &state;
  state.team = &team;
  reserve_shared(team, launch.shared);
  reserve_stacks(team);
  if (!team.host_stack) find_host_stack(team);
  for (int w = 0; w < team.warps; w++) {
    const int lanes = team.threads - w * kWarp < kWarp ? team.threads - w * kWarp : kWarp;
    Warp &warp = team.warp[w];
    warp.all = warp.ready = lanes == kWarp ? ~0u : (1u << lanes) - 1;
    warp.done = warp.at_barrier = warp.arrived = warp.turn = 0;
    warp.phase = 0;
    // what a lane gets from one that does not exist
    if (lanes < kWarp) memset(warp.slots, 0xff, sizeof warp.slots);
  }
  for (int i = 0; i < team.threads; i++) prepare(team, i);
}

// No thread can run, and not all have returned: says which meeting lacks threads.
void explain(Team &team) {
  int thread = 0;
  try {
    for (int w = 0; w < team.warps; w++) {
      const Warp &warp = team.warp[w];
      if (!warp.arrived) continue;
      thread = w * kWarp + __builtin_ctz(warp.arrived);
      trap(*team.state, thread, warp.site, driver::kLaunchFailed,
           "%d of %d lanes of warp %d reached the %s at %s:%d; %d had returned",
           __builtin_popcount(warp.arrived), __builtin_popcount(warp.all), w, name_of(warp.kind),
           stem(warp.site.file), warp.site.line, __builtin_popcount(warp.done));
    }
    for (int w = team.warps; w-- > 0;)
      if (team.warp[w].at_barrier) thread = w * kWarp + __builtin_ctz(team.warp[w].at_barrier);
    trap(*team.state, thread, team.barrier_site, driver::kLaunchFailed,
         "%d of %d threads reached the barrier at %s:%d; %d had returned", team.at_barrier,
         team.threads, stem(team.barrier_site.file), team.barrier_site.line,
         team.threads - team.live);
  } catch (const Trapped &trapped) {
    *team.trap = trapped.trap;
    team.stopped = true;
  }
}

}  // namespace

Team::~Team() {
  if (stacks) munmap(stacks, size_t(stacks_count) * (kStack + kGuard));
}

bool run_team(Team &team, BlockState &state, Trap *out) {
  start(team, state, out);
  Team *const before = running;
  running = &team;
  // Which warp is first differs from block to block, so that no kernel relies on it.
  const int first = int((state.x * 7u + state.y * 3u + state.z) % unsigned(team.warps));
  while (team.live && !team.stopped) {
    bool any = false;
    for (int i = 0; i < team.warps && !team.stopped; i++) {
      const int w = (first + i) % team.warps;
      if (!team.warp[w].ready) continue;
      any = true;
      jump_to_fibre(team, &team.host_stack_pointer, w * kWarp + __builtin_ctz(team.warp[w].ready));
    }
    if (!any) explain(team);
  }
  running = before;
  return !team.stopped;
}

void meet_block(BlockState &state, int thread, Site site) {
  Team &team = *state.team;
  if (team.at_barrier == 0) {
    team.barrier_site = site;
  } else if (team.barrier_site.line != site.line || strcmp(team.barrier_site.file, site.file)) {
    trap(state, thread, site, driver::kLaunchFailed,
         "%d of %d threads reached the barrier at %s:%d, and thread %d the one at %s:%d",
         team.at_barrier, team.threads, stem(team.barrier_site.file), team.barrier_site.line,
         thread, stem(site.file), site.line);
  }
  Warp &warp = team.warp[thread / kWarp];
  const uint32_t bit = 1u << (thread % kWarp);
  warp.ready &= ~bit;
  warp.at_barrier |= bit;
  if (++team.at_barrier < team.threads) {
    leave(team);
    return;
  }
  team.at_barrier = 0;
  team.epoch++;
  for (int w = 0; w < team.warps; w++) {
    team.warp[w].ready = team.warp[w].all;
    team.warp[w].at_barrier = 0;
  }
}

Slots meet_warp(BlockState &state, int thread, Meeting kind, const void *value, int size,
                Site site) {
  Team &team = *state.team;
  Warp &warp = team.warp[thread / kWarp];
  const int lane = thread % kWarp;
  const uint32_t bit = 1u << lane;
  if (!warp.arrived) {
    warp.kind = kind;
    warp.site = site;
  } else if (warp.kind != kind || warp.site.line != site.line ||
             strcmp(warp.site.file, site.file)) {
    trap(state, thread, site, driver::kLaunchFailed,
         "%d of %d lanes of warp %d reached the %s at %s:%d, and lane %d the %s at %s:%d",
         __builtin_popcount(warp.arrived), __builtin_popcount(warp.all), thread / kWarp,
         name_of(warp.kind), stem(warp.site.file), warp.site.line, lane, name_of(kind),
         stem(site.file), site.line);
  }
  const int turn = (warp.turn & bit) != 0;
  warp.turn ^= bit;
  if (size) memcpy(warp.slots[turn][lane], value, size_t(size));
  warp.arrived |= bit;
  warp.ready &= ~bit;
  if (warp.arrived != warp.all) {
    leave(team);
  } else {
    warp.arrived = 0;
    warp.ready = warp.all;
    if (kind == kWarpBarrier) warp.phase++;
  }
  return {warp.slots[turn], __builtin_popcount(warp.all)};
}

}  // namespace plait::cuda::emulation
