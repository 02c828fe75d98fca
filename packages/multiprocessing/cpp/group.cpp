#include "group.hpp"

#include <plait/fork.hpp>

#include "table.hpp"

#include <linux/futex.h>
#include <sys/random.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <cstdio>
#include <cstdlib>
#include <new>
#include <set>

namespace plait::multiprocessing {
namespace {

constexpr uint64_t group_magic = 0x35307072676c7070;
constexpr uint64_t control_bytes = 512;
constexpr int spins = 2000;          // number of spins, some microseconds, before sleeping
constexpr long slice = 50'000'000;   // nanoseconds between checks of the other process
constexpr int slices_to_all = 10;    // after so many, all that have not come are checked
constexpr double longest_look = 1;   // seconds between looks; if there were more, this one slept
constexpr uint64_t most_part = 32 << 10;  // bytes of a message
static_assert(sizeof(Control) <= control_bytes);

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

uint64_t offers_at(uint32_t size) { return control_bytes + sizeof(Slot) * size; }
// Seconds that a process may be stopped, as by SIGSTOP, before it counts as lost.
double stopped_timeout() {
  const char *text = std::getenv("PLAIT_STOPPED_TIMEOUT");
  char *end = nullptr;
  const double seconds = text ? std::strtod(text, &end) : 0;
  return text && end != text && seconds > 0 ? seconds : 4;
}

uint64_t outboxes_at(uint32_t size) {
  return (offers_at(size) + 2 * sizeof(Offer) * size + alignof(Outbox) - 1) / alignof(Outbox) *
         alignof(Outbox);
}
uint64_t lanes_at(uint32_t size) { return outboxes_at(size) + sizeof(Outbox) * size; }
uint64_t part_bytes(uint64_t chunk) { return std::min(chunk, most_part); }
uint64_t staging_at(uint32_t size, uint64_t chunk) {
  return lanes_at(size) + 2 * lanes * part_bytes(chunk) * size;
}

struct Groups {  // of this process
  ForkMutex mutex;
  std::set<Group *> all;
};
Groups &groups() {
  static auto *made = new Groups();  // used until the process ends
  return *made;
}

}  // namespace

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

uint64_t group_bytes(uint32_t size, uint64_t chunk) {
  // the block's bytes begin at a multiple of 64, the structures at one of 128
  return staging_at(size, chunk) + areas * chunk * (uint64_t(size) + 1) + 128;
}

void format_group(void *at, uint32_t size, uint64_t chunk, double timeout) {
  std::memset(at, 0, lanes_at(size) + 128);
  auto *control = new (at) Control{};
  if (getrandom(&control->id, sizeof control->id, 0) != ssize_t(sizeof control->id))
    control->id = uint64_t(getpid()) << 32 ^ uint64_t(now() * 1e9);
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

Group::Group(plait_storage *s, uint32_t rank)
    : storage_(s), rank_(rank), stopped_timeout_(stopped_timeout()) {
  plait_retain(s);
  control_ = static_cast<Control *>(s->data);
  // arenas are mapped at pages: where this is rounded up to depends on the block alone
  const auto at = (reinterpret_cast<uintptr_t>(s->data) + 127) / 128 * 128;
  auto *begin = reinterpret_cast<char *>(at);
  slots_ = reinterpret_cast<Slot *>(begin + control_bytes);
  offers_ = reinterpret_cast<Offer *>(begin + offers_at(size()));
  outboxes_ = reinterpret_cast<Outbox *>(begin + outboxes_at(size()));
  lanes_ = begin + lanes_at(size());
  data_ = begin + staging_at(size(), chunk());
  stops_.resize(size());
  const std::lock_guard<ForkMutex> lock(groups().mutex);
  groups().all.insert(this);
}

Group::~Group() {
  {
    const std::lock_guard<ForkMutex> lock(groups().mutex);
    groups().all.erase(this);
  }
  if (!storage_) return;
  leave();
  give_back_holds_of_dead();
  plait_release(storage_);
}

void leave_groups() {
  const std::lock_guard<ForkMutex> lock(groups().mutex);
  for (Group *group : groups().all) group->leave();
}

char *Group::staging(uint32_t r, uint64_t turn) const {
  return data_ + (areas * uint64_t(r) + turn % areas) * chunk();
}
char *Group::result(uint64_t turn) const { return staging(size(), turn); }
uint64_t Group::part() const { return part_bytes(chunk()); }
char *Group::part_of(uint32_t r, uint32_t lane, uint32_t number) const {
  return lanes_ + ((uint64_t(r) * lanes + lane) * 2 + (number & 1)) * part();
}

std::string Group::name(uint32_t r) const {
  if (slot(r).state.load() == SLOT_FREE)
    return "rank " + std::to_string(r) + ", which has not joined";
  return "rank " + std::to_string(r) + " (pid " + std::to_string(slot(r).pid.load()) + ")";
}

bool Group::take(Explanation &reason) {
  Slot &own = slot(rank_);
  uint32_t expected = SLOT_FREE;
  if (!own.state.compare_exchange_strong(expected, SLOT_TAKEN)) {
    reason = "the rank must be free; " + name(rank_) +
             (expected == SLOT_LEFT ? " had it and left" : " has it");
    return false;
  }
  char state = 0;
  own.pid = getpid();
  process_stat(getpid(), state, own.started);
  own.state.store(SLOT_JOINED, std::memory_order_release);
  return taken_ = true;
}

void Group::leave() {
  // a forked child's copy is not a member
  if (!taken_ || slot(rank_).pid.load() != getpid()) return;
  if (slot(rank_).state.load() != SLOT_JOINED) return;
  note_known_loss();
  slot(rank_).state.store(SLOT_LEFT, std::memory_order_release);
  wake(slot(rank_).step);
  for (uint32_t r = 0; r < size(); r++) ring(r);
}

void Group::abort(const Explanation &text, Cause cause) {
  if (slot(rank_).pid.load() != getpid()) return;
  uint32_t nobody = 0;
  if (control_->broken.load() || !control_->aborting.compare_exchange_strong(nobody, rank_ + 1))
    return;
  std::snprintf(control_->aborted, sizeof control_->aborted, "%s", text.c_str());
  if (!text.lost.empty()) control_->lost = text.lost[0];
  control_->kind = text.kind                ? text.kind
                   : cause == CAUSE_ABORTED ? FAILURE_ABORTED
                                            : FAILURE_BROKEN;
  Explanation reason;
  give_up(Outcome::broken, {rank_, rank_, cause}, 0, reason, "");
}

void Group::ring(uint32_t r) const {
  outbox(r).bell.fetch_add(1, std::memory_order_acq_rel);
  wake(outbox(r).bell);
}

void Group::listen(uint32_t seen) const { sleep_on(outbox(rank_).bell, seen); }

void Group::announce(const Call &call) { slot(rank_).call[operations & 1] = call; }

bool Group::agreed(Explanation &reason) const {
  const Call &own = slot(rank_).call[operations & 1];
  bool same = true;
  for (uint32_t r = 0; r < size(); r++) same &= slot(r).call[operations & 1] == own;
  if (same) return true;
  reason = "the same call on all ranks is required;";
  for (uint32_t r = 0; r < size(); r++)
    reason += (r ? ", rank " : " rank ") + std::to_string(r) + " calls " +
              describe(slot(r).call[operations & 1]);
  return false;
}

Outcome Group::give_up(Outcome outcome, const Reason &reason, double waited,
                       Explanation &explanation, const Explanation &text) {
  slot(rank_).waited = waited;
  uint64_t whole = 0;
  control_->broken.compare_exchange_strong(whole, reason.packed());
  for (uint32_t r = 0; r < size(); r++) {
    wake(slot(r).step);
    ring(r);
  }
  explanation = text;
  return outcome;
}

// Adds up the time for which a rank is seen stopped. Time without checks counts for little:
// if a terminal stops the whole job, its processes do not go on at the same moment.
bool Group::is_stopped_too_long(uint32_t r, bool stopped) {
  const std::lock_guard<std::mutex> lock(stops_mutex_);
  Stop &s = stops_[r];
  const double t = now();
  if (!stopped) {
    s = {};
    return false;
  }
  if (s.seen > 0) s.length += std::min(t - s.seen, longest_look);
  s.seen = t;
  return s.length > stopped_timeout_;
}

// Whether the process of a rank that has joined has ended; its state, if it has not.
bool Group::has_died(uint32_t r, char *state) const {
  const Slot &other = slot(r);
  char letter = 0;
  uint64_t started = 0;
  // without /proc the member could not store its start time
  const bool found = process_stat(other.pid, letter, started);
  const bool runs = found && letter != 'Z' && letter != 'X' && started == other.started;
  if (state) *state = runs ? letter : '?';
  return other.started ? !runs : !is_alive(other.pid);
}

// Whether a rank died, left, or is stopped. One that left because of another's loss says so: the
// loss is that of the other one.
bool Group::is_lost(uint32_t r, Loss &loss) {
  const uint32_t state = slot(r).state.load(std::memory_order_acquire);
  loss = {r, CAUSE_LEFT};
  if (state == SLOT_LEFT) {
    if (const uint32_t known = slot(r).known_loss.load()) loss = Loss::unpacked(known);
    return true;
  }
  if (state != SLOT_JOINED) return false;
  loss.cause = CAUSE_DIED;
  char letter = 0;
  if (has_died(r, &letter)) return true;
  loss.cause = CAUSE_STOPPED;  // by a signal; a process that a debugger holds has the letter t
  return is_stopped_too_long(r, letter == 'T');
}

// Before this rank leaves. A broken group says itself why.
void Group::note_known_loss() {
  Loss loss{};
  for (uint32_t r = 0; r < size() && !control_->broken.load(); r++) {
    if (r == rank_ || !is_lost(r, loss) || loss.cause == CAUSE_LEFT || loss.of == rank_) continue;
    slot(rank_).known_loss = loss.packed();
    return;
  }
}

// A process that was killed holds the block for ever. Whoever ends as it should has left before its
// hold is given back.
void Group::give_back_holds_of_dead() {
  if (!plait_shared_is_block(storage_)) return;
  for (uint32_t r = 0; r < size(); r++) {
    Slot &dead = slot(r);
    if (dead.state.load(std::memory_order_acquire) != SLOT_JOINED || !dead.started) continue;
    // ranks of one process have one hold
    bool first = true;
    for (uint32_t other = 0; other < r; other++)
      first &= slot(other).pid.load() != dead.pid.load() || slot(other).started != dead.started;
    if (first && has_died(r) && !dead.returned.exchange(1))
      step_back(block_of(storage_)->arena, block_of(storage_)->offset);
  }
}

// The error text, which names the missing rank and not only the one that gave up first.
Explanation Group::broken_text() const {
  const Reason reason(control_->broken.load());
  const std::string text = "the group is broken: ";
  switch (reason.cause) {
    case CAUSE_LEFT: return loss_of(reason.of, text + name(reason.of) + " left it");
    case CAUSE_DIED: return loss_of(reason.of, text + name(reason.of) + " died");
    case CAUSE_STOPPED: return loss_of(reason.of, text + name(reason.of) + " is stopped");
    case CAUSE_INTERRUPTED: {
      const bool is_told = control_->aborting.load() == reason.by + 1;
      return loss_of(reason.by, text + name(reason.by) + " was interrupted" +
                                    during(is_told ? control_->aborted : ""));
    }
    case CAUSE_ABORTED:
      return {name(reason.by) + " aborted the group: " + control_->aborted, FAILURE_ABORTED};
    case CAUSE_TOLD: {
      Explanation explanation(control_->aborted, control_->kind);
      if (control_->lost.pid) explanation.lost = {control_->lost};
      return explanation;
    }
    case CAUSE_TIMED_OUT: break;
  }
  return {text + name(reason.by) + " waited " + seconds(slot(reason.by).waited) + " s for " +
              name(reason.of),
          FAILURE_TIMED_OUT};
}

std::string Group::missing(uint32_t step, uint32_t &first) const {
  const auto has_joined = [&](uint32_t r) { return slot(r).state.load() >= SLOT_JOINED; };
  bool meeting = false;  // members that have arrived wait for the others, as this one does
  for (uint32_t r = 0; r < size(); r++) meeting |= !has_joined(r);
  std::string names;
  for (uint32_t r = 0; r < size(); r++) {
    if (int32_t(slot(r).step.load(std::memory_order_acquire) - step) >= 0) continue;
    if (meeting && has_joined(r)) continue;
    if (names.empty()) first = r;
    names += (names.empty() ? "" : ", ") + name(r);
  }
  return names;
}

Outcome Group::check(uint32_t r, const std::function<bool()> &came, Explanation &reason,
                     const std::function<bool()> &ends_alone) {
  Loss loss{};
  const bool lost = is_lost(r, loss);
  // what broke the group comes first: its members leave it then, or end
  const bool broken = control_->broken.load();
  if ((!lost && !broken) || came()) return Outcome::done;  // or the rank did its part before
  reason = broken ? broken_text() : loss_text(loss);
  if (broken || (loss.cause == CAUSE_LEFT && ends_alone())) return Outcome::broken;
  return give_up(Outcome::broken, {rank_, loss.of, loss.cause}, 0, reason, Explanation(reason));
}

Explanation Group::loss_of(uint32_t r, const std::string &text) const {
  const bool joined = slot(r).state.load() != SLOT_FREE;
  return {text, {{r, -1, joined ? slot(r).pid.load() : 0}}};
}

Explanation Group::loss_text(const Loss &loss) const {
  return loss_of(loss.of, name(loss.of) + (loss.cause == CAUSE_LEFT   ? " left the group"
                                           : loss.cause == CAUSE_DIED ? " died"
                                                                      : " is stopped"));
}

bool Group::find_loss(uint32_t r, Explanation &reason) {
  Loss loss{};
  if (!is_lost(r, loss)) return false;
  reason = loss_text(loss);
  return true;
}

// Looks at all who have not made this step: one that computes does not hide the loss of another.
Outcome Group::check_all(uint32_t step, Explanation &reason) {
  for (uint32_t r = 0; r < size(); r++) {
    const auto came = [&] {
      return int32_t(slot(r).step.load(std::memory_order_acquire) - step) >= 0;
    };
    const Outcome o = came() ? Outcome::done : check(r, came, reason);
    if (o != Outcome::done) return o;
  }
  return Outcome::done;
}

Outcome Group::wait_for(uint32_t r, uint32_t step, double deadline, const Patience &patience,
                        Explanation &reason) {
  std::atomic<uint32_t> &word = slot(r).step;
  const auto came = [&] { return int32_t(word.load(std::memory_order_acquire) - step) >= 0; };
  for (int i = 0;; i++) {
    const uint32_t seen = word.load(std::memory_order_acquire);
    if (int32_t(seen - step) >= 0) return Outcome::done;
    if (i < spins) {
      relax();
      continue;
    }
    sleep_on(word, seen);
    if (word.load(std::memory_order_acquire) != seen) continue;
    const bool all = (i - spins + 1) % slices_to_all == 0;
    const Outcome o = all ? check_all(step, reason) : check(r, came, reason);
    if (o != Outcome::done) return o;
    if (came()) return o;
    if (patience.ended())
      return give_up(Outcome::interrupted, {rank_, r, CAUSE_INTERRUPTED}, 0, reason, "interrupted");
    if (now() > deadline) {
      uint32_t first = r;
      const std::string names = missing(step, first);
      if (names.empty()) return Outcome::done;  // they have arrived in the meantime
      return give_up(Outcome::timed_out, {rank_, first, CAUSE_TIMED_OUT}, patience.timeout, reason,
                     "waited " + seconds(patience.timeout) + " s for " + names);
    }
  }
}

Outcome Group::meet(const Patience &patience, Explanation &reason, uint32_t slack) {
  if (control_->broken.load()) {
    reason = broken_text();
    return Outcome::broken;
  }
  std::atomic<uint32_t> &own = slot(rank_).step;
  const uint32_t step = own.load(std::memory_order_relaxed) + 1;
  own.store(step, std::memory_order_release);
  wake(own);
  const double deadline = now() + patience.timeout;
  for (uint32_t r = 0; r < size(); r++) {
    const Outcome o = wait_for(r, step - slack, deadline, patience, reason);
    if (o != Outcome::done) return o;
  }
  return Outcome::done;
}

}  // namespace plait::multiprocessing
