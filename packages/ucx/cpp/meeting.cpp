#include "meeting.hpp"

#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <list>

#include "authentication.hpp"
#include "wire.hpp"

// What goes over a connection, in this order (numbers are little-endian):
//   rank 0: greeting, a nonce        guest: a nonce, HMAC(secret, "guest" both nonces)
//   rank 0: HMAC(secret, "host" both nonces)
//   guest: a request of fixed size and its HMAC, then what it brings and its HMAC
//   rank 0: an answer of fixed size and its HMAC, then what all brought, or a text, and its HMAC
// Before a guest has proved that it knows the secret, rank 0 reads 64 bytes from it and no more.
// The later HMACs have a key of the connection, made from the secret and both nonces.

namespace plait::ucx {
namespace {

constexpr size_t digest = 32;
const std::string greeting = "PLAITUX1";
constexpr size_t proof_bytes = 2 * digest, request_bytes = digest + 12, answer_bytes = 8;
constexpr double handshake = 10;     // seconds that a guest has to prove the secret
constexpr size_t most_strangers = 256;  // guests that have not yet; all of a job may come together
constexpr double safe = 0.25;  // seconds in which a guest is not sent away for others
constexpr double rate = 256;  // strangers a second that are: if many are here, all have longer
constexpr double pause = 0.1;  // seconds without new guests when there are no descriptors
constexpr int attempts = 6;  // of a guest, who may be sent away if there are many strangers
constexpr uint32_t most_answer = most_ranks * (most_brought + 4);

enum Code : uint32_t { code_all, code_failed, code_timed_out };

std::string proof(const std::string &secret, const char *who, const std::string &nonces) {
  return text_of(hmac_sha256(secret, who + nonces));
}
// What is sent, with its HMAC; each label is used once for a key.
std::string sealed(const std::string &key, const char *label, const std::string &data) {
  return data + text_of(hmac_sha256(key, label + data));
}
// Takes the HMAC off; false if it is wrong.
bool unseal(const std::string &key, const char *label, std::string &data) {
  const std::string mac = data.substr(data.size() - digest);
  data.resize(data.size() - digest);
  return equal(hmac_sha256(key, label + data), reinterpret_cast<const uint8_t *>(mac.data()));
}
std::string name_digest(const Place &p) { return text_of(sha256(p.text + "/" + p.name)); }

std::string seconds(double s) {
  char text[32];
  std::snprintf(text, sizeof text, "%g s", s);
  return text;
}

std::string ranks_text(const std::vector<uint32_t> &ranks) {
  std::string found;
  for (size_t i = 0; i < ranks.size() && i < 16; i++)
    found += (i ? ", rank " : "rank ") + std::to_string(ranks[i]);
  if (ranks.size() > 16) found += " and " + std::to_string(ranks.size() - 16) + " more";
  return found;
}

std::string packed(const std::vector<std::string> &all) {
  std::string found;
  for (const std::string &each : all) {
    put32(found, uint32_t(each.size()));
    found += each;
  }
  return found;
}
bool unpack(const std::string &from, uint32_t count, std::vector<std::string> &all) {
  size_t at = 0;
  for (uint32_t i = 0; i < count; i++) {
    if (from.size() - at < 4) return false;
    const uint32_t n = get32(&from[at]);
    at += 4;
    if (from.size() - at < n) return false;
    all.push_back(from.substr(at, n));
    at += n;
  }
  return at == from.size();
}

// ---- rank 0 ----------------------------------------------------------------------------------

struct Connection {
  enum Stage { proving, asking, bringing, waiting };
  Socket socket;
  Stage stage = proving;
  std::string nonce, key, data;  // data: what has come of the next part
  double deadline = 0;
  uint32_t rank = 0;
  size_t wanted = proof_bytes;
};

class Host {
 public:
  Host(const Place &place, const Guest &self, double timeout,
       const std::function<bool()> &interrupted)
      : place_(place), self_(self), timeout_(timeout), limit_{now() + timeout, interrupted} {}

  Met run(std::vector<std::string> &all, std::string &why) {
    if (!listen(why)) return Met::failed;
    brought_.resize(self_.size);
    came_.resize(self_.size);
    brought_[0] = self_.brought;
    came_[0] = true;
    Met met = gather(why);
    if (met == Met::all) {
      all = brought_;
      tell(code_all, packed(all));
    } else if (met != Met::interrupted) {
      tell(met == Met::timed_out ? code_timed_out : code_failed, why);
    } else {
      tell(code_failed, "rank 0 was interrupted while the processes met");
    }
    return met;
  }

 private:
  bool listen(std::string &why) {
    Address address;
    if (!find_address(place_, true, address, why)) return false;
    listening_ =
        Socket(socket(address.storage.ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
    const int yes = 1;
    if (!place_.local) setsockopt(listening_.fd(), SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
    // a meeting that has just ended may not have closed its socket yet
    const double until = std::min(limit_.deadline, now() + 2);
    while (bind(listening_.fd(), address.get(), address.length) != 0) {
      if (errno != EADDRINUSE || now() > until || limit_.interrupted()) {
        why = "rank 0 cannot listen at " + place_.text + ": " + std::strerror(errno);
        return false;
      }
      wait_readable(-1, 20);
    }
    if (::listen(listening_.fd(), 1024) == 0) return true;
    why = "rank 0 cannot listen at " + place_.text + ": " + std::strerror(errno);
    return false;
  }

  Met gather(std::string &why) {
    for (;;) {
      std::vector<uint32_t> missing;
      for (uint32_t r = 0; r < self_.size; r++)
        if (!came_[r]) missing.push_back(r);
      if (missing.empty()) return Met::all;
      if (!why.empty()) return Met::failed;
      if (limit_.interrupted()) {
        why = "interrupted";
        return Met::interrupted;
      }
      if (now() > limit_.deadline) {
        why = "waited " + seconds(timeout_) + " for " + ranks_text(missing) + " at " + place_.text;
        return Met::timed_out;
      }
      poll_all();
      accept_all();
      for (auto c = connections_.begin(); c != connections_.end();)
        c = read(*c, why) ? std::next(c) : connections_.erase(c);
    }
  }

  void poll_all() {
    std::vector<pollfd> fds;
    if (now() >= paused_until_) fds.push_back({listening_.fd(), POLLIN, 0});
    for (const Connection &c : connections_) fds.push_back({c.socket.fd(), POLLIN, 0});
    poll(fds.data(), fds.size(), 20);
  }

  // Ends the connection of the oldest stranger; false, and no new connections for a while, if it
  // is too new.
  bool make_room(size_t strangers) {
    const auto oldest =
        std::find_if(connections_.begin(), connections_.end(),
                     [](const Connection &c) { return c.stage == Connection::proving; });
    const double longer = std::max(safe, double(strangers) / rate);
    paused_until_ =
        oldest == connections_.end() ? now() + pause : oldest->deadline - handshake + longer;
    if (now() < paused_until_) return false;
    connections_.erase(oldest);
    return true;
  }

  void accept_all() {
    for (size_t i = 0; i < most_strangers && now() >= paused_until_; i++) {
      const auto strangers =
          size_t(std::count_if(connections_.begin(), connections_.end(),
                               [](const Connection &c) { return c.stage == Connection::proving; }));
      if (strangers >= most_strangers && !make_room(strangers)) return;
      Connection c;
      c.socket = Socket(accept4(listening_.fd(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
      if (!c.socket.is_open()) {
        const bool no_room =
            errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM;
        if (errno == EAGAIN || (no_room && !make_room(strangers))) return;
        continue;  // or it has gone already
      }
      if (place_.local && !is_own_user(c.socket.fd())) continue;
      c.nonce = text_of(random_digest());
      c.deadline = now() + handshake;
      if (post(c, greeting + c.nonce)) connections_.push_back(std::move(c));
    }
  }

  // a short message on a connection on which none is under way
  static bool post(const Connection &c, const std::string &data) {
    return send(c.socket.fd(), data.data(), data.size(), MSG_DONTWAIT | MSG_NOSIGNAL) ==
           ssize_t(data.size());
  }

  // Whether the connection stays; `why`: what ends the meeting.
  bool read(Connection &c, std::string &why) {
    for (;;) {
      char part[4096];
      const size_t room = c.stage == Connection::waiting ? 1 : c.wanted - c.data.size();
      const ssize_t n = recv(c.socket.fd(), part, std::min(room, sizeof part), MSG_DONTWAIT);
      if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return c.stage != Connection::proving || now() < c.deadline;
      if (n <= 0 || c.stage == Connection::waiting) {
        if (c.stage == Connection::waiting || c.stage == Connection::bringing)
          why = name_of(c) + " ended while the processes met at " + place_.text;
        return false;
      }
      c.data.append(part, size_t(n));
      if (c.data.size() == c.wanted && !take(c, why)) return false;
    }
  }

  static std::string name_of(const Connection &c) { return "rank " + std::to_string(c.rank); }

  bool take(Connection &c, std::string &why) {
    switch (c.stage) {
      case Connection::proving: return take_proof(c);
      case Connection::asking: return take_request(c, why);
      default: return take_brought(c, why);
    }
  }

  bool take_proof(Connection &c) {
    const std::string nonces = c.nonce + c.data.substr(0, digest);
    const Digest right = hmac_sha256(self_.secret, "guest" + nonces);
    if (!equal(right, reinterpret_cast<const uint8_t *>(&c.data[digest]))) return false;
    c.key = proof(self_.secret, "key", nonces);
    next(c, Connection::asking, request_bytes + digest);
    return post(c, proof(self_.secret, "host", nonces));
  }

  bool take_request(Connection &c, std::string &why) {
    if (!unseal(c.key, "request", c.data)) return false;
    c.rank = get32(&c.data[digest]);
    const uint32_t size = get32(&c.data[digest + 4]), bytes = get32(&c.data[digest + 8]);
    std::string wrong;
    if (c.data.substr(0, digest) != name_digest(place_))
      wrong = "another group than \"" + place_.name + "\" meets at " + place_.text;
    else if (size != self_.size)
      wrong = name_of(c) + " says that the group has " + std::to_string(size) +
              " members, rank 0 says " + std::to_string(self_.size);
    else if (c.rank >= size || came_[c.rank])
      wrong = name_of(c) + " is there already";
    else if (bytes > most_brought)
      wrong = name_of(c) + " brings too much";
    if (!wrong.empty()) {
      refuse(c, wrong);
      // who belongs to another group does not end this one's meeting
      if (c.data.substr(0, digest) == name_digest(place_)) why = wrong;
      return false;
    }
    next(c, Connection::bringing, bytes + digest);
    return true;
  }

  bool take_brought(Connection &c, std::string &why) {
    if (!unseal(c.key, "brought", c.data)) return false;
    if (came_[c.rank]) {
      why = name_of(c) + " is there already";
      refuse(c, why);
      return false;
    }
    brought_[c.rank] = c.data;
    came_[c.rank] = true;
    next(c, Connection::waiting, 1);
    return true;
  }

  static void next(Connection &c, Connection::Stage stage, size_t wanted) {
    c.stage = stage;
    c.wanted = wanted;
    c.data.clear();
  }

  static std::string answer(const Connection &c, Code code, const std::string &data) {
    std::string head;
    put32(head, code);
    put32(head, uint32_t(data.size()));
    return sealed(c.key, "answer", head) + sealed(c.key, "told", data);
  }
  static void refuse(const Connection &c, const std::string &text) {
    post(c, answer(c, code_failed, text));
  }

  void tell(Code code, const std::string &data) {
    const std::function<bool()> never = [] { return false; };
    const Limit limit{now() + handshake, never};
    for (const Connection &c : connections_)
      if (c.stage != Connection::proving) write_all(c.socket.fd(), answer(c, code, data), limit);
  }

  const Place &place_;
  const Guest &self_;
  const double timeout_;
  const Limit limit_;
  Socket listening_;
  std::list<Connection> connections_;
  double paused_until_ = 0;  // no connections are accepted
  std::vector<std::string> brought_;
  std::vector<bool> came_;
};

// ---- the others ------------------------------------------------------------------------------

class Visitor {
 public:
  Visitor(const Place &place, const Guest &self, double timeout,
          const std::function<bool()> &interrupted)
      : place_(place), self_(self), timeout_(timeout), limit_{now() + timeout, interrupted} {}

  Met run(std::vector<std::string> &all, std::string &why) {
    Met met = Met::failed;
    for (int i = 0; i < attempts && met == Met::failed; i++) {
      const int milliseconds = i ? 50 << i : 0;
      if (now() + milliseconds * 1e-3 >= limit_.deadline) break;  // the reason is what is told
      if (i) wait_readable(-1, milliseconds);
      met = connect(why);
      if (met == Met::all) met = prove(why);
    }
    if (met == Met::all) met = ask(why);
    return met == Met::all ? take(all, why) : met;
  }

 private:
  Met connect(std::string &why) {
    std::string last;
    for (;;) {
      Address address;
      if (find_address(place_, false, address, last) && try_address(address, last)) return Met::all;
      if (limit_.interrupted()) {
        why = "interrupted";
        return Met::interrupted;
      }
      if (now() > limit_.deadline) {
        why = "waited " + seconds(timeout_) + " for rank 0 at " + place_.text + ": " + last;
        return Met::timed_out;
      }
      wait_readable(-1, 20);
    }
  }

  bool try_address(const Address &address, std::string &last) {
    socket_ =
        Socket(socket(address.storage.ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
    const int failed = ::connect(socket_.fd(), address.get(), address.length);
    int error = failed ? errno : 0;
    const double until = std::min(limit_.deadline, now() + 5);
    while (error == EINPROGRESS && now() < until && !limit_.interrupted()) {
      pollfd p{socket_.fd(), POLLOUT, 0};
      if (poll(&p, 1, 20) <= 0) continue;
      socklen_t length = sizeof error;
      getsockopt(socket_.fd(), SOL_SOCKET, SO_ERROR, &error, &length);
    }
    if (error) last = std::strerror(error);
    if (!error && place_.local && !is_own_user(socket_.fd())) {
      last = "a process of another user listens there";
      return false;
    }
    return error == 0;
  }

  Met failed(Moved moved, const std::string &what, std::string &why) const {
    if (moved == Moved::interrupted) {
      why = "interrupted";
      return Met::interrupted;
    }
    if (moved == Moved::timed_out) {
      why = "waited " + seconds(timeout_) + " for rank 0 at " + place_.text;
      return Met::timed_out;
    }
    why = what;
    return Met::failed;
  }

  Met prove(std::string &why) {
    const std::string other = "who listens at " + place_.text + " is not a process of this job";
    std::string got;
    Moved moved = read_exactly(socket_.fd(), greeting.size() + digest, got, limit_);
    if (moved != Moved::all) return failed(moved, other, why);
    if (got.compare(0, greeting.size(), greeting) != 0) return failed(Moved::ended, other, why);
    const std::string mine = text_of(random_digest());
    const std::string nonces = got.substr(greeting.size()) + mine;
    moved = write_all(socket_.fd(), mine + proof(self_.secret, "guest", nonces), limit_);
    if (moved == Moved::all) moved = read_exactly(socket_.fd(), digest, got, limit_);
    const std::string secret =
        other + ", or has another secret: PLAIT_JOB_SECRET must be the same in all processes";
    if (moved != Moved::all) return failed(moved, secret, why);
    const Digest right = hmac_sha256(self_.secret, "host" + nonces);
    if (!equal(right, reinterpret_cast<const uint8_t *>(got.data())))
      return failed(Moved::ended, secret, why);
    key_ = proof(self_.secret, "key", nonces);
    return Met::all;
  }

  Met ask(std::string &why) {
    std::string request = name_digest(place_);
    put32(request, self_.rank);
    put32(request, self_.size);
    put32(request, uint32_t(self_.brought.size()));
    const std::string data =
        sealed(key_, "request", request) + sealed(key_, "brought", self_.brought);
    const Moved moved = write_all(socket_.fd(), data, limit_);
    // who is refused is told why
    if (moved == Moved::all || moved == Moved::ended) return Met::all;
    return failed(moved, "", why);
  }

  Met take(std::vector<std::string> &all, std::string &why) {
    const std::string gone = "rank 0 ended while the processes met at " + place_.text;
    // rank 0 knows who is missing, and tells it when its time is over
    const Limit longer{limit_.deadline + 2, limit_.interrupted};
    std::string got;
    Moved moved = read_exactly(socket_.fd(), answer_bytes + digest, got, longer);
    if (moved != Moved::all) return failed(moved, gone, why);
    if (!unseal(key_, "answer", got)) return failed(Moved::ended, gone, why);
    const uint32_t code = get32(&got[0]), bytes = get32(&got[4]);
    if (bytes > most_answer) return failed(Moved::ended, gone, why);
    moved = read_exactly(socket_.fd(), bytes + digest, got, longer);
    if (moved != Moved::all) return failed(moved, gone, why);
    if (!unseal(key_, "told", got)) return failed(Moved::ended, gone, why);
    if (code == code_all && unpack(got, self_.size, all)) return Met::all;
    why = got;
    return code == code_timed_out ? Met::timed_out : Met::failed;
  }

  const Place &place_;
  const Guest &self_;
  const double timeout_;
  const Limit limit_;
  Socket socket_;
  std::string key_;
};

}  // namespace

Met meet(const Place &place, const Guest &self, double timeout,
         const std::function<bool()> &interrupted, std::vector<std::string> &all,
         std::string &why) {
  why.clear();
  if (!place.local && self.secret.empty() && self.size > 1) {
    why =
        "the processes meet at " + place.text +
        ", which other hosts reach, so PLAIT_JOB_SECRET must be set to a secret text, the same in "
        "all of them, or PLAIT_JOB_SECRET_FILE to the path of a file that has it";
    return Met::failed;
  }
  if (self.size == 1) {
    all = {self.brought};
    return Met::all;
  }
  if (self.rank == 0) return Host(place, self, timeout, interrupted).run(all, why);
  return Visitor(place, self, timeout, interrupted).run(all, why);
}

}  // namespace plait::ucx
