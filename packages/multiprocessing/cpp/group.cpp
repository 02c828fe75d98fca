#include "group.hpp"

#include "arena.hpp"

#include <linux/futex.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <cerrno>
#include <climits>
#include <cstdio>
#include <cstdlib>
#include <new>

namespace plait::multiprocessing {
namespace {

constexpr uint64_t group_magic = 0x31307072676c7070;
constexpr uint64_t control_bytes = 128;
constexpr int spins = 2000;          // number of spins, some microseconds, before sleeping
constexpr long slice = 50'000'000;   // nanoseconds between checks of the other process
static_assert(sizeof(Control) <= control_bytes);

double now() {
  timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return double(t.tv_sec) + 1e-9 * double(t.tv_nsec);
}

void relax() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

void sleep_on(std::atomic<uint32_t> &word, uint32_t seen) {
  const timespec t{0, slice};
  syscall(SYS_futex, reinterpret_cast<uint32_t *>(&word), FUTEX_WAIT, seen, &t, nullptr, 0);
}
void wake(std::atomic<uint32_t> &word) {
  syscall(SYS_futex, reinterpret_cast<uint32_t *>(&word), FUTEX_WAKE, INT_MAX, nullptr, nullptr, 0);
}

// When the process began and whether it has ended; false if there is none.
bool process_stat(int64_t pid, char &state, uint64_t &started) {
  char path[64], line[1024];
  std::snprintf(path, sizeof path, "/proc/%lld/stat", static_cast<long long>(pid));
  std::FILE *file = std::fopen(path, "re");
  if (!file) return false;
  const size_t n = std::fread(line, 1, sizeof line - 1, file);
  std::fclose(file);
  line[n] = 0;
  const char *p = std::strrchr(line, ')');  // the name before it may contain any character
  if (!p || p[1] != ' ') return false;
  state = p[2];
  p += 2;  // the state is field 3, the start field 22
  for (int field = 3; field < 22; field++) {
    p = std::strchr(p, ' ');
    if (!p) return false;
    p++;
  }
  started = std::strtoull(p, nullptr, 10);
  return true;
}

std::string seconds(double s) {
  char text[32];
  std::snprintf(text, sizeof text, "%g", s);
  return text;
}
const char *kind_name(uint32_t kind) {
  switch (kind) {
    case PLAIT_ALL_REDUCE: return "all_reduce";
    case PLAIT_BROADCAST: return "broadcast";
    case PLAIT_ALL_GATHER: return "all_gather";
    case PLAIT_GATHER: return "gather";
    case PLAIT_REDUCE_SCATTER: return "reduce_scatter";
    case PLAIT_BARRIER: return "barrier";
    default: return "?";
  }
}
const char *reduction_name(uint32_t r) {
  static const char *names[] = {"sum", "mean", "product", "min", "max"};
  return r < 5 ? names[r] : "?";
}
std::string describe(const Call &c) {
  std::string s = kind_name(c.kind);
  if (c.kind == PLAIT_BARRIER) return s;
  s += " of " + std::to_string(c.elements) + " elements of " +
       plait::name(DLDataType{uint8_t(c.dtype >> 8), uint8_t(c.dtype), 1});
  if (c.kind == PLAIT_ALL_REDUCE || c.kind == PLAIT_REDUCE_SCATTER)
    s += std::string(" (") + reduction_name(c.reduction) + ")";
  if (c.kind == PLAIT_BROADCAST || c.kind == PLAIT_GATHER)
    s += " (root " + std::to_string(c.root) + ")";
  return s;
}

}  // namespace

uint64_t group_bytes(uint32_t size, uint64_t chunk) {
  return control_bytes + sizeof(Slot) * size + 2 * chunk * (uint64_t(size) + 1) + 128;
}

void format_group(void *at, uint32_t size, uint64_t chunk, double timeout) {
  std::memset(at, 0, control_bytes + sizeof(Slot) * size + 128);
  auto *control = new (at) Control{};
  control->chunk = chunk;
  control->timeout = timeout;
  control->size = size;
  control->magic = group_magic;
}

bool is_group(const plait_storage *s) {
  const auto *c = static_cast<const Control *>(s->data);
  return s->nbytes >= sizeof(Control) && c->magic == group_magic &&
         s->nbytes >= group_bytes(c->size, c->chunk);
}

Group::Group(plait_storage *s, uint32_t rank) : storage_(s), rank_(rank) {
  plait_retain(s);
  control_ = static_cast<Control *>(s->data);
  const auto begin = reinterpret_cast<uintptr_t>(s->data) + control_bytes;
  slots_ = reinterpret_cast<Slot *>((begin + 127) / 128 * 128);
  data_ = reinterpret_cast<char *>(slots_ + control_->size);
}

char *Group::staging(uint32_t r, uint64_t parity) const {
  return data_ + (2 * uint64_t(r) + (parity & 1)) * chunk();
}
char *Group::result(uint64_t parity) const { return staging(size(), parity); }

std::string Group::name(uint32_t r) const {
  if (slot(r).state.load() == SLOT_FREE)
    return "rank " + std::to_string(r) + ", which has not joined";
  return "rank " + std::to_string(r) + " (pid " + std::to_string(slot(r).pid.load()) + ")";
}

bool Group::take(std::string &why) {
  Slot &mine = slot(rank_);
  uint32_t expected = SLOT_FREE;
  if (!mine.state.compare_exchange_strong(expected, SLOT_TAKEN)) {
    why = "join: a rank that nobody has is required; " + name(rank_) +
          (expected == SLOT_LEFT ? " had it and left" : " has it");
    return false;
  }
  char state = 0;
  mine.pid = getpid();
  process_stat(getpid(), state, mine.started);
  mine.state.store(SLOT_JOINED, std::memory_order_release);
  return true;
}

void Group::leave() {
  if (slot(rank_).pid.load() != getpid()) return;  // a forked child's copy is not a member
  slot(rank_).state.store(SLOT_LEFT, std::memory_order_release);
  wake(slot(rank_).step);
}

void Group::announce(const Call &call) {
  slot(rank_).call[operations & 1] = call;
  doing = kind_name(call.kind);
}

bool Group::agreed(std::string &why) const {
  const Call &mine = slot(rank_).call[operations & 1];
  bool same = true;
  for (uint32_t r = 0; r < size(); r++) same &= slot(r).call[operations & 1] == mine;
  if (same) return true;
  why = std::string(doing) + ": the same call on all ranks is required;";
  for (uint32_t r = 0; r < size(); r++)
    why += (r ? ", rank " : " rank ") + std::to_string(r) + " calls " +
           describe(slot(r).call[operations & 1]);
  return false;
}

plait_outcome Group::give_up(plait_outcome outcome, const Reason &reason, std::string &why,
                             const std::string &text) {
  uint64_t whole = 0;
  control_->broken.compare_exchange_strong(whole, reason.packed());
  for (uint32_t r = 0; r < size(); r++) wake(slot(r).step);
  why = std::string(doing) + ": " + text;
  return outcome;
}

// Whether a rank died or left.
bool Group::is_lost(uint32_t r, Cause &cause) const {
  const Slot &other = slot(r);
  const uint32_t state = other.state.load(std::memory_order_acquire);
  cause = CAUSE_LEFT;
  if (state == SLOT_LEFT) return true;
  if (state != SLOT_JOINED) return false;
  cause = CAUSE_DIED;
  char letter = 0;
  uint64_t started = 0;
  // without /proc the member could not store its start time
  const bool found = process_stat(other.pid, letter, started);
  const bool runs = found && letter != 'Z' && letter != 'X' && started == other.started;
  return other.started ? !runs : !is_alive(other.pid);
}

// The error text, which names the missing rank and not only the one that gave up first.
std::string Group::broken_text() const {
  const Reason reason(control_->broken.load());
  std::string text = "the group is broken: ";
  switch (reason.cause) {
    case CAUSE_LEFT: return text + name(reason.of) + " left it";
    case CAUSE_DIED: return text + name(reason.of) + " died";
    case CAUSE_INTERRUPTED: return text + name(reason.by) + " was interrupted";
    case CAUSE_TIMED_OUT: break;
  }
  return text + name(reason.by) + " waited " + seconds(control_->timeout) + " s for " +
         name(reason.of);
}

std::string Group::missing(uint32_t step, uint32_t &first) const {
  std::string who;
  for (uint32_t r = 0; r < size(); r++) {
    if (int32_t(slot(r).step.load(std::memory_order_acquire) - step) >= 0) continue;
    if (who.empty()) first = r;
    who += (who.empty() ? "" : ", ") + name(r);
  }
  return who;
}

plait_outcome Group::wait_for(uint32_t r, uint32_t step, double deadline, int (*interrupted)(void),
                              std::string &why) {
  std::atomic<uint32_t> &word = slot(r).step;
  const auto came = [&] { return int32_t(word.load(std::memory_order_acquire) - step) >= 0; };
  for (int i = 0;; i++) {
    const uint32_t seen = word.load(std::memory_order_acquire);
    if (int32_t(seen - step) >= 0) return PLAIT_DONE;
    if (i < spins) {
      relax();
      continue;
    }
    sleep_on(word, seen);
    if (word.load(std::memory_order_acquire) != seen) continue;
    Cause cause;
    if (is_lost(r, cause)) {
      if (came()) return PLAIT_DONE;  // the rank made the step before it ended
      return give_up(PLAIT_BROKEN, {rank_, r, cause}, why,
                     name(r) + (cause == CAUSE_LEFT ? " left the group" : " died"));
    }
    if (control_->broken.load()) {
      if (came()) return PLAIT_DONE;
      why = std::string(doing) + ": " + broken_text();
      return PLAIT_BROKEN;
    }
    if (interrupted && interrupted())
      return give_up(PLAIT_INTERRUPTED, {rank_, r, CAUSE_INTERRUPTED}, why, "interrupted");
    if (now() > deadline) {
      uint32_t first = r;
      const std::string who = missing(step, first);
      if (who.empty()) return PLAIT_DONE;  // they have arrived in the meantime
      return give_up(PLAIT_TIMED_OUT, {rank_, first, CAUSE_TIMED_OUT}, why,
                     "waited " + seconds(control_->timeout) + " s for " + who);
    }
  }
}

plait_outcome Group::meet(int (*interrupted)(void), std::string &why) {
  if (control_->broken.load()) {
    why = std::string(doing) + ": " + broken_text();
    return PLAIT_BROKEN;
  }
  std::atomic<uint32_t> &mine = slot(rank_).step;
  const uint32_t step = mine.load(std::memory_order_relaxed) + 1;
  mine.store(step, std::memory_order_release);
  wake(mine);
  const double deadline = now() + control_->timeout;
  for (uint32_t r = 0; r < size(); r++) {
    const plait_outcome o = wait_for(r, step, deadline, interrupted, why);
    if (o != PLAIT_DONE) return o;
  }
  return PLAIT_DONE;
}

}  // namespace plait::multiprocessing
