// Messages of known sizes through a stream socket, with a deadline.
#pragma once
#include <functional>
#include <string>

namespace plait::ucx {

double now();  // seconds of a clock that only goes on

class Socket {  // or another file descriptor
 public:
  Socket() = default;
  explicit Socket(int fd) : fd_(fd) {}
  Socket(const Socket &) = delete;
  Socket(Socket &&other) noexcept : fd_(other.release()) {}
  Socket &operator=(Socket &&other) noexcept;
  ~Socket() { close(); }
  int fd() const { return fd_; }
  bool is_open() const { return fd_ >= 0; }
  void close();
  int release();

 private:
  int fd_ = -1;
};

enum class Moved { all, ended, timed_out, interrupted };

// How long is waited, and what ends the waiting.
struct Limit {
  double deadline;
  const std::function<bool()> &interrupted;
};

Moved read_exactly(int fd, size_t bytes, std::string &to, const Limit &);
Moved write_all(int fd, const std::string &, const Limit &);
// Some milliseconds at most, or until something comes.
void wait_readable(int fd, int milliseconds);
bool is_own_user(int fd);  // whether the other end of a local socket is a process of this user

void put32(std::string &, uint32_t);
uint32_t get32(const char *);

}  // namespace plait::ucx
