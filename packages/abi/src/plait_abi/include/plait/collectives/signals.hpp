// What ends the waiting of a thread of the program.
#ifndef PLAIT_COLLECTIVES_SIGNALS_HPP
#define PLAIT_COLLECTIVES_SIGNALS_HPP
#include <chrono>
#include <string>

#include "../plait.hpp"
#include "failure.hpp"

namespace plait::collectives {

// between two questions whether the user wants to stop
constexpr auto pause = std::chrono::milliseconds(20);

enum class Outcome { done, broken, mismatch, timed_out, interrupted };

inline FailureKind kind_of(Outcome o, const Explanation &reason) {
  switch (o) {
    case Outcome::mismatch: return FAILURE_MISMATCH;
    case Outcome::timed_out: return FAILURE_TIMED_OUT;
    case Outcome::interrupted: return FAILURE_INTERRUPTED;
    default: return reason.kind ? reason.kind : FAILURE_BROKEN;
  }
}

// How long a member waits in a step, and what ends its waiting.
struct Patience {
  double timeout;
  bool (*interrupted)(void *);
  void *ctx;
  bool ended() const { return interrupted && interrupted(ctx); }
};

// What a thread that waits asks: whether the user wants it to stop (Ctrl-C).
class Signals {
 public:
  explicit Signals(plait_thread *thread) : host_(role<plait_host>(thread->runtime)) {}
  Patience patience(double timeout) { return {timeout, ask, this}; }
  bool asked() { return ask(this); }

 private:
  static bool ask(void *p) {
    auto *self = static_cast<Signals *>(p);
    self->came_ = self->came_ || (self->host_ && self->host_->interrupted(self->host_->ctx));
    return self->came_;  // the host tells it once
  }
  const plait_host *host_;
  bool came_ = false;
};

// The status of an outcome, with its text as the thread's error.
inline plait_status status_of(plait_thread *thread, const char *caller, Outcome o,
                              const Explanation &reason) {
  if (o == Outcome::done) return PLAIT_OK;
  // the exception of a signal's handler
  if (o == Outcome::interrupted && thread->error && thread->error->host) return PLAIT_HOST_ERROR;
  const plait_status s =
      thread->runtime->raise(thread, o == Outcome::timed_out ? PLAIT_TIMEOUT_ERROR : PLAIT_ERROR,
                             caller, "%s", reason.c_str());
  add_failure(thread, kind_of(o, reason), reason);
  return s;
}

inline plait_status refuse_child(plait_thread *thread, int64_t pid, const char *caller) {
  return thread->runtime->raise(
      thread, PLAIT_ERROR, caller,
      "the communicator is that of the process %lld, of which this one is a forked child; a child "
      "opens or joins one itself",
      static_cast<long long>(pid));
}

}  // namespace plait::collectives
#endif  // PLAIT_COLLECTIVES_SIGNALS_HPP
