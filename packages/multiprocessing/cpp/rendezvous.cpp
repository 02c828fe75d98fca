#include "rendezvous.hpp"

#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstdio>
#include <cstring>
#include <list>

#include "table.hpp"

namespace plait::multiprocessing {
namespace {

constexpr uint64_t hello_magic = 0x32306f6c6c656870;
constexpr uint64_t chunk_bytes = 256 << 10;
constexpr int pause_ms = 5;
constexpr size_t most_silent = 64;       // connections on which nothing has come
constexpr double longest_silence = 1;    // seconds that they have
constexpr double second_rank_0 = 2;  // seconds for another rank 0 to come after one died

struct Hello {
  uint64_t magic;
  uint32_t rank, size;
};
struct Answer {
  plait_block_name block;
  uint32_t accepted;
  char text[256];  // why not
  LostRank lost;       // because of this process; its pid is 0 otherwise
  FailureKind kind;
};

class Socket {
 public:
  explicit Socket(int fd = -1) : fd_(fd) {}
  Socket(const Socket &) = delete;
  Socket(Socket &&other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  ~Socket() { close(); }
  void close() {
    if (fd_ >= 0) ::close(fd_);
    fd_ = -1;
  }
  int fd() const { return fd_; }

 private:
  int fd_;
};

// An address in no file system, with the user's number: other users' names are others.
socklen_t address_of(const std::string &name, sockaddr_un &address) {
  address = {};
  address.sun_family = AF_UNIX;
  const int n = std::snprintf(address.sun_path + 1, sizeof address.sun_path - 1, "plait/%u/%s",
                              unsigned(getuid()), name.c_str());
  return socklen_t(offsetof(sockaddr_un, sun_path) + 1 + size_t(n));
}

// The process at the other end; 0 if it is of another user.
int64_t process_of_this_user(int fd) {
  ucred caller{};
  socklen_t size = sizeof caller;
  if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &caller, &size) != 0 || caller.uid != getuid())
    return 0;
  return caller.pid;
}
bool is_of_this_user(int fd) { return process_of_this_user(fd) > 0; }

bool arrives(int fd, int ms) {
  pollfd p{fd, POLLIN, 0};
  return poll(&p, 1, ms) > 0;
}

bool send_answer(int fd, const Answer &answer, int descriptor) {
  iovec bytes{const_cast<Answer *>(&answer), sizeof answer};
  alignas(cmsghdr) char room[CMSG_SPACE(sizeof(int))] = {};
  msghdr message{};
  message.msg_iov = &bytes;
  message.msg_iovlen = 1;
  if (descriptor >= 0) {
    message.msg_control = room;
    message.msg_controllen = sizeof room;
    cmsghdr *c = CMSG_FIRSTHDR(&message);
    c->cmsg_level = SOL_SOCKET;
    c->cmsg_type = SCM_RIGHTS;
    c->cmsg_len = CMSG_LEN(sizeof(int));
    std::memcpy(CMSG_DATA(c), &descriptor, sizeof descriptor);
  }
  return sendmsg(fd, &message, MSG_NOSIGNAL) == ssize_t(sizeof answer);
}

bool receive_answer(int fd, Answer &answer, int &descriptor) {
  iovec bytes{&answer, sizeof answer};
  alignas(cmsghdr) char room[CMSG_SPACE(sizeof(int))] = {};
  msghdr message{};
  message.msg_iov = &bytes;
  message.msg_iovlen = 1;
  message.msg_control = room;
  message.msg_controllen = sizeof room;
  descriptor = -1;
  const ssize_t n = recvmsg(fd, &message, MSG_CMSG_CLOEXEC);
  const cmsghdr *c = n > 0 ? CMSG_FIRSTHDR(&message) : nullptr;
  if (c && c->cmsg_level == SOL_SOCKET && c->cmsg_type == SCM_RIGHTS)
    std::memcpy(&descriptor, CMSG_DATA(c), sizeof descriptor);
  answer.text[sizeof answer.text - 1] = 0;
  return n == ssize_t(sizeof answer);
}

// One process that comes to a meeting.
class Comer {
 public:
  Comer(plait_thread *thread, const Meeting &m, double timeout)
      : thread_(thread), meeting_(m), timeout_(timeout), deadline_(now() + m.patience.timeout) {}

  std::unique_ptr<Group> come(Outcome &o, Explanation &explanation, plait_status &status) {
    std::unique_ptr<Group> group;
    if (meeting_.rank == 0)
      o = make(group, explanation);
    else
      o = find(group, explanation);
    if (o == Outcome::done) o = group->meet(meeting_.patience, explanation);
    // so that missing members get the name of the lost rank, not of one that ends because of it
    for (uint32_t r = 0; o == Outcome::broken && r < meeting_.size; r++)
      if (r != meeting_.rank && is_lost(r, explanation)) break;
    status = status_;
    if (group && o != Outcome::done) {
      group->leave();
      group.reset();
    }
    return group;
  }

 private:
  bool late() const { return now() > deadline_; }
  bool is_lost(uint32_t r, Explanation &explanation) const {
    return meeting_.lost && meeting_.lost(r, explanation);
  }
  std::string waited() const { return "waited " + seconds(meeting_.patience.timeout) + " s "; }
  Outcome failed(const char *subject, Explanation &explanation) const {
    explanation = std::string(subject) + " failed: " + std::strerror(errno);
    return Outcome::broken;
  }
  bool pause() const {  // false: it is interrupted
    const timespec t{0, pause_ms * 1000000};
    nanosleep(&t, nullptr);
    return !meeting_.patience.ended();
  }

  Outcome enter(std::unique_ptr<Group> &group, plait_storage *s, Explanation &explanation) const {
    group = std::make_unique<Group>(s, meeting_.rank);
    if (group->take(explanation)) return Outcome::done;
    group.reset();
    return Outcome::broken;
  }

  // Rank 0.

  Outcome make(std::unique_ptr<Group> &group, Explanation &explanation) {
    Socket listening(socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
    if (listening.fd() < 0) return failed("socket", explanation);
    Outcome o = meeting_.size > 1 ? bind_to_name(listening.fd(), explanation) : Outcome::done;
    if (o != Outcome::done) return o;
    Ref<plait_storage> s;
    status_ = plait_shared_create(thread_, group_bytes(meeting_.size, chunk_bytes), s.out());
    if (status_ < 0) return Outcome::broken;
    format_group(s->data, meeting_.size, chunk_bytes, timeout_);
    o = enter(group, s.get(), explanation);
    if (o != Outcome::done || meeting_.size == 1) return o;
    o = serve(listening.fd(), s.get(), *group, explanation);
    if (o != Outcome::done) refuse_all(listening.fd(), explanation);
    return o;
  }

  // tells connecting processes that the group is not created
  static void refuse_all(int fd, const Explanation &explanation) {
    Answer answer{};
    std::snprintf(answer.text, sizeof answer.text, "%s", explanation.c_str());
    if (!explanation.lost.empty()) answer.lost = explanation.lost[0];
    answer.kind = explanation.kind;
    for (;;) {
      const Socket end(accept4(fd, nullptr, nullptr, SOCK_CLOEXEC));
      if (end.fd() < 0) return;
      if (is_of_this_user(end.fd())) send_answer(end.fd(), answer, -1);
    }
  }

  Outcome bind_to_name(int fd, Explanation &explanation) const {
    sockaddr_un address;
    const socklen_t size = address_of(meeting_.name, address);
    while (bind(fd, reinterpret_cast<const sockaddr *>(&address), size) != 0) {
      if (errno != EADDRINUSE) return failed("bind", explanation);
      if (late()) {
        explanation = waited() + "for another rank 0, which waits for members under the same name";
        return Outcome::timed_out;
      }
      if (!pause()) return interrupted(explanation);
    }
    return listen(fd, int(meeting_.size)) == 0 ? Outcome::done : failed("listen", explanation);
  }

  Outcome interrupted(Explanation &explanation) const {
    explanation = "interrupted";
    return Outcome::interrupted;
  }

  // Until all have joined; a member that has come and ends is an error.
  Outcome serve(int fd, const plait_storage *s, Group &group, Explanation &explanation) {
    for (;;) {
      uint32_t first = 0, count = 0;
      std::string missing;
      for (uint32_t r = 0; r < group.size(); r++) {
        const uint32_t state = group.slot(r).state.load(std::memory_order_acquire);
        if (state == SLOT_JOINED || state == SLOT_LEFT) {
          const Outcome o = r ? group.check(r, [] { return false; }, explanation) : Outcome::done;
          if (o != Outcome::done) return o;
          continue;
        }
        if (is_lost(r, explanation)) {
          group.abort(explanation, CAUSE_TOLD);  // tells those who have come
          return Outcome::broken;
        }
        if (!count++) first = r;
        missing += (missing.empty() ? "" : ", ") + group.name(r);
      }
      if (!count) return Outcome::done;
      if (late()) {
        const double waited = meeting_.patience.timeout;
        return group.give_up(Outcome::timed_out, {0, first, CAUSE_TIMED_OUT}, waited, explanation,
                             "waited " + seconds(waited) + " s for " + missing);
      }
      if (meeting_.patience.ended())
        return group.give_up(Outcome::interrupted, {0, first, CAUSE_INTERRUPTED}, 0, explanation,
                             "interrupted");
      accept_all(fd);
      if (answer_all(s, group, explanation)) continue;
      group.abort(explanation, CAUSE_TOLD);  // tells those who have come
      return Outcome::broken;
    }
  }

  // Waits for connections for a moment. Silent connections are limited in number, so others can
  // connect.
  void accept_all(int fd) {
    if (!arrives(fd, pause_ms)) return;
    for (size_t i = 0; i < most_silent; i++) {
      Socket end(accept4(fd, nullptr, nullptr, SOCK_CLOEXEC));
      const bool failed = end.fd() < 0;
      if (failed && errno == EAGAIN) return;
      if (!failed && is_of_this_user(end.fd())) silent_.push_back({std::move(end), now()});
      const bool full = failed || silent_.size() > most_silent;  // or no descriptors are left
      if (full && silent_.empty()) {
        pause();
        return;
      }
      if (full) silent_.pop_front();
    }
  }
  // false: the group cannot become complete
  bool answer_all(const plait_storage *s, const Group &group, Explanation &explanation) {
    for (auto it = silent_.begin(); it != silent_.end();) {
      const bool speaks = arrives(it->end.fd(), 0);
      if (speaks && !answer(it->end.fd(), s, group, explanation)) return false;
      it = speaks || now() - it->since > longest_silence ? silent_.erase(it) : std::next(it);
    }
    return true;
  }

  // false: the group cannot become complete
  bool answer(int fd, const plait_storage *s, const Group &group, Explanation &explanation) const {
    Hello hello{};
    if (recv(fd, &hello, sizeof hello, MSG_DONTWAIT) != ssize_t(sizeof hello)) return true;
    Answer answer{};
    const bool known = hello.magic == hello_magic;
    const bool agrees = hello.size == group.size() && hello.rank < hello.size;
    if (!known)
      std::snprintf(answer.text, sizeof answer.text,
                    "the same version of plait_multiprocessing in all members is required");
    else if (!agrees)
      std::snprintf(answer.text, sizeof answer.text,
                    "one `size` is required: rank 0 opens a group of %u, rank %u one of %u",
                    group.size(), hello.rank, hello.size);
    else if (group.slot(hello.rank).state.load() != SLOT_FREE)
      std::snprintf(answer.text, sizeof answer.text, "the rank must be free; %s has it",
                    group.name(hello.rank).c_str());
    if (answer.text[0] || plait_shared_send(thread_, s, &answer.block) < 0) {
      thread_->runtime->clear(thread_);
      send_answer(fd, answer, -1);
      if (known && !agrees) explanation = answer.text;
      return !known || agrees;
    }
    answer.accepted = 1;
    void *pin = plait_shared_pin(s);
    if (!send_answer(fd, answer, plait_shared_descriptor(pin))) plait_shared_cancel(&answer.block);
    plait_shared_unpin(pin);
    return true;
  }

  // The other ranks.

  Outcome find(std::unique_ptr<Group> &group, Explanation &explanation) {
    sockaddr_un address;
    const socklen_t size = address_of(meeting_.name, address);
    for (;;) {
      Socket end(socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
      if (end.fd() < 0) return failed("socket", explanation);
      Answer answer{};
      int descriptor = -1;
      if (connect(end.fd(), reinterpret_cast<const sockaddr *>(&address), size) == 0 &&
          is_rank_0(end.fd()) && ask(end.fd()) && !meeting_.patience.ended() &&
          receive_answer(end.fd(), answer, descriptor))
        return adopt(group, answer, descriptor, explanation);
      // rank 0 has not come yet, or it is that of an earlier group, which is complete
      if (descriptor >= 0) close(descriptor);
      if (is_anyone_lost(explanation) || is_rank_0_lost(explanation)) return Outcome::broken;
      if (late()) {
        explanation = waited() + "for rank 0 to open the group";
        return Outcome::timed_out;
      }
      end.close();
      if (!pause()) return interrupted(explanation);
    }
  }

  // Looks at rank 0 and, in turns, at some of the others.
  bool is_anyone_lost(Explanation &explanation) {
    constexpr uint32_t at_once = 8;
    if (!meeting_.lost) return false;
    if (is_lost(0, explanation)) return true;
    for (uint32_t i = 0; i < std::min(at_once, meeting_.size); i++) {
      looked_at_ = (looked_at_ + 1) % meeting_.size;
      if (looked_at_ != meeting_.rank && is_lost(looked_at_, explanation)) return true;
    }
    return false;
  }

  bool is_rank_0(int fd) {
    const int64_t pid = process_of_this_user(fd);
    if (pid == 0) return false;
    if (pid != rank_0_) died_at_ = 0;
    rank_0_ = pid;
    char state = 0;
    process_stat(pid, state, rank_0_started_);
    return true;
  }
  // Whether the rank 0 that listened has died, and no other one came in its place.
  bool is_rank_0_lost(Explanation &explanation) {
    char state = 0;
    uint64_t started = 0;
    if (!rank_0_ || !rank_0_started_) return false;
    if (process_stat(rank_0_, state, started) && state != 'Z' && state != 'X' &&
        started == rank_0_started_)
      return false;
    if (died_at_ == 0) died_at_ = now();
    if (now() - died_at_ < second_rank_0) return false;
    explanation = {"rank 0 (pid " + std::to_string(rank_0_) + ") died while the members met",
                   {{0, -1, rank_0_}}};
    return true;
  }

  // introduces itself, and waits for an answer
  bool ask(int fd) {
    const Hello hello{hello_magic, meeting_.rank, meeting_.size};
    if (send(fd, &hello, sizeof hello, MSG_NOSIGNAL) != ssize_t(sizeof hello)) return false;
    Explanation explanation;  // the caller tries again
    while (!arrives(fd, pause_ms))
      if (late() || meeting_.patience.ended() || is_anyone_lost(explanation)) return false;
    return true;
  }

  Outcome adopt(std::unique_ptr<Group> &group, const Answer &answer, int descriptor,
                Explanation &explanation) {
    if (!answer.accepted || descriptor < 0) {
      if (descriptor >= 0) close(descriptor);
      explanation = answer.text[0] ? answer.text : "rank 0 could not share the group's memory";
      if (answer.lost.pid) explanation.lost = {answer.lost};
      explanation.kind = answer.kind;
      return Outcome::broken;
    }
    void *pin = nullptr;
    status_ = plait_shared_adopt(thread_, descriptor, &pin);
    if (status_ < 0) return Outcome::broken;
    Ref<plait_storage> s;
    status_ = plait_shared_receive(thread_, &answer.block, s.out());
    plait_shared_unpin(pin);
    if (status_ < 0) return Outcome::broken;
    if (!is_group(s.get())) {
      explanation = "the same version of plait_multiprocessing in all members is required";
      return Outcome::broken;
    }
    return enter(group, s.get(), explanation);
  }

  plait_thread *thread_;
  const Meeting &meeting_;
  double timeout_, deadline_;
  plait_status status_ = PLAIT_OK;
  struct Silent {  // a connection on which nothing has come
    Socket end;
    double since;
  };
  std::list<Silent> silent_;
  uint32_t looked_at_ = 0;
  int64_t rank_0_ = 0;  // the process that listened at last
  uint64_t rank_0_started_ = 0;
  double died_at_ = 0;
};

}  // namespace

std::unique_ptr<Group> meet_by_name(plait_thread *thread, const Meeting &meeting, double timeout,
                                    Outcome &o, Explanation &reason, plait_status &status) {
  return Comer(thread, meeting, timeout).come(o, reason, status);
}

}  // namespace plait::multiprocessing
