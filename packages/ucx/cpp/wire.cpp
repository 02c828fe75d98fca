#include "wire.hpp"

#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <utility>

namespace plait::ucx {
namespace {

constexpr int pause = 20;  // milliseconds between looks at signals

// The bytes of each call of `move` until all have moved.
template <class F>
Moved move_all(int fd, short events, size_t bytes, const Limit &limit, F &&move) {
  for (size_t at = 0; at < bytes;) {
    const ssize_t n = move(at);
    if (n > 0) {
      at += size_t(n);
      continue;
    }
    if (n == 0 || (errno != EAGAIN && errno != EINTR)) return Moved::ended;
    if (limit.interrupted()) return Moved::interrupted;
    const double left = limit.deadline - now();
    if (left <= 0) return Moved::timed_out;
    pollfd p{fd, events, 0};
    poll(&p, 1, std::min(pause, int(left * 1e3) + 1));
  }
  return Moved::all;
}

}  // namespace

double now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

Socket &Socket::operator=(Socket &&other) noexcept {
  if (this != &other) {
    close();
    fd_ = other.release();
  }
  return *this;
}
void Socket::close() {
  if (fd_ >= 0) ::close(fd_);
  fd_ = -1;
}
int Socket::release() { return std::exchange(fd_, -1); }

Moved read_exactly(int fd, size_t bytes, std::string &to, const Limit &limit) {
  to.resize(bytes);
  return move_all(fd, POLLIN, bytes, limit, [&](size_t at) {
    return recv(fd, &to[at], bytes - at, MSG_DONTWAIT);
  });
}

Moved write_all(int fd, const std::string &data, const Limit &limit) {
  return move_all(fd, POLLOUT, data.size(), limit, [&](size_t at) {
    return send(fd, data.data() + at, data.size() - at, MSG_DONTWAIT | MSG_NOSIGNAL);
  });
}

void wait_readable(int fd, int milliseconds) {
  pollfd p{fd, POLLIN, 0};
  poll(&p, 1, milliseconds);
}

bool is_own_user(int fd) {
  ucred other{};
  socklen_t length = sizeof other;
  return getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &other, &length) == 0 && other.uid == getuid();
}

void put32(std::string &to, uint32_t x) {
  for (int i = 0; i < 4; i++) to += char(x >> (8 * i));
}
uint32_t get32(const char *at) {
  uint32_t x = 0;
  for (int i = 0; i < 4; i++) x |= uint32_t(uint8_t(at[i])) << (8 * i);
  return x;
}

}  // namespace plait::ucx
