// Messages over AF_UNIX sockets: the framing of multiprocessing.connection, with descriptors with
// the first byte.
#include <arpa/inet.h>
#include <endian.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

#include <cerrno>
#include <vector>

#include "binding.hpp"

namespace plait::multiprocessing::python {
namespace {

constexpr size_t most_descriptors = 250;  // the kernel's limit is 253 for a message
constexpr int patience = 5000;  // milliseconds to wait until descriptors in transit have arrived

unsigned long long open_files() {
  rlimit limit{};
  getrlimit(RLIMIT_NOFILE, &limit);
  return limit.rlim_cur;
}

PyObject *raise_errno() {
  if (errno == ECONNRESET) errno = EPIPE;  // as for a pipe whose reader has ended
  if (errno == ETOOMANYREFS)
    return PyErr_Format(PyExc_OSError,
                        "send: too many messages with tensors are on their way: the limit is that "
                        "of open files (RLIMIT_NOFILE), %llu; receive some, or raise it with "
                        "`ulimit -n`",
                        open_files());
  return PyErr_SetFromErrno(PyExc_OSError);
}

// One sendmsg without the GIL; -1 with errno.
ssize_t send_once(int fd, iovec *parts, size_t n, void *control, size_t control_bytes) {
  msghdr m{};
  m.msg_iov = parts;
  m.msg_iovlen = n;
  m.msg_control = control_bytes ? control : nullptr;
  m.msg_controllen = control_bytes;
  ssize_t sent = 0;
  int error = 0;
  Py_BEGIN_ALLOW_THREADS;
  for (int waited = 0;; waited++) {
    sent = sendmsg(fd, &m, MSG_NOSIGNAL);
    error = errno;
    if (sent >= 0 || error != ETOOMANYREFS || waited == patience) break;
    const timespec t{0, 1'000'000};
    nanosleep(&t, nullptr);
  }
  if (sent < 0 && error == ENOTSOCK && !control_bytes) {
    sent = writev(fd, parts, int(n));
    error = errno;
  }
  Py_END_ALLOW_THREADS;
  errno = error;
  return sent;
}

bool send_all(int fd, iovec *parts, size_t n, const std::vector<int> &descriptors) {
  alignas(cmsghdr) char control[CMSG_SPACE(most_descriptors * sizeof(int))];
  size_t bytes = 0;
  if (!descriptors.empty()) {
    bytes = CMSG_SPACE(descriptors.size() * sizeof(int));
    std::memset(control, 0, bytes);
    auto *c = reinterpret_cast<cmsghdr *>(control);
    c->cmsg_level = SOL_SOCKET;
    c->cmsg_type = SCM_RIGHTS;
    c->cmsg_len = CMSG_LEN(descriptors.size() * sizeof(int));
    std::memcpy(CMSG_DATA(c), descriptors.data(), descriptors.size() * sizeof(int));
  }
  while (n) {
    ssize_t sent = send_once(fd, parts, n, control, bytes);
    if (sent < 0) {
      if (errno != EINTR) return raise_errno(), false;
      if (PyErr_CheckSignals() < 0) return false;
      continue;
    }
    bytes = 0;  // the descriptors went with the first byte
    while (n && size_t(sent) >= parts->iov_len) {
      sent -= ssize_t(parts->iov_len);
      parts++;
      n--;
    }
    if (n) {
      parts->iov_base = static_cast<char *>(parts->iov_base) + sent;
      parts->iov_len -= size_t(sent);
    }
  }
  return true;
}

struct Bytes : Py_buffer {  // released at the end of the scope
  Bytes() : Py_buffer{} {}
  Bytes(const Bytes &) = delete;
  Bytes &operator=(const Bytes &) = delete;
  ~Bytes() { PyBuffer_Release(this); }
};

// send_message(fd, bytes, tickets): settles the tickets itself, as a signal's handler that raises
// may run as soon as it returns
PyObject *send_message(PyObject *, PyObject *args) {
  int fd = -1;
  Bytes data;
  PyObject *tickets = nullptr;
  if (!PyArg_ParseTuple(args, "iy*O!", &fd, &data, &PyTuple_Type, &tickets)) return nullptr;
  std::vector<int> descriptors;
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(tickets); i++)
    if (!add_descriptors(PyTuple_GET_ITEM(tickets, i), descriptors)) return nullptr;
  bool sent = false;
  if (descriptors.size() > most_descriptors) {
    PyErr_Format(PyExc_OSError,
                 "send: tensors that need at most %zu descriptors are required, got %zu; send them "
                 "in several messages",
                 most_descriptors, descriptors.size());
  } else {
    const bool is_long = data.len > 0x7fffffff;
    uint32_t size = htonl(is_long ? 0xffffffffu : uint32_t(data.len));
    uint64_t long_size = htobe64(uint64_t(data.len));
    char header[12];
    std::memcpy(header, &size, 4);
    std::memcpy(header + 4, &long_size, 8);
    iovec parts[] = {{header, is_long ? size_t(12) : size_t(4)}, {data.buf, size_t(data.len)}};
    sent = send_all(fd, parts, data.len ? 2 : 1, descriptors);
  }
  if (!sent) return nullptr;
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(tickets); i++) settle(PyTuple_GET_ITEM(tickets, i));
  Py_RETURN_NONE;
}

// The descriptors of a message; the destructor closes those that were not taken over. It allocates
// no memory, so that arrived descriptors are not lost.
class Descriptors {
 public:
  Descriptors() = default;
  Descriptors(const Descriptors &) = delete;
  Descriptors &operator=(const Descriptors &) = delete;
  ~Descriptors() {
    while (count_) close(descriptors_[--count_]);
  }
  void add(int fd) {
    if (count_ < most_descriptors)
      descriptors_[count_++] = fd;
    else
      close(fd), cut = true;
  }
  size_t count() const { return count_; }
  int take() { return descriptors_[--count_]; }

  bool cut = false;  // some did not fit

 private:
  int descriptors_[most_descriptors];
  size_t count_ = 0;
};

void take_descriptors(msghdr &m, Descriptors &arrived) {
  for (cmsghdr *c = CMSG_FIRSTHDR(&m); c; c = CMSG_NXTHDR(&m, c)) {
    if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS) continue;
    const size_t n = (c->cmsg_len - CMSG_LEN(0)) / sizeof(int);
    for (size_t i = 0; i < n; i++) {
      int fd = -1;
      std::memcpy(&fd, CMSG_DATA(c) + i * sizeof fd, sizeof fd);
      arrived.add(fd);
    }
  }
  arrived.cut |= (m.msg_flags & MSG_CTRUNC) != 0;
}

// Reads exactly n bytes; 1, 0 at the end before the first byte, -1 with an exception. Descriptors
// are received if `arrived` is given.
int read_all(int fd, char *to, size_t n, Descriptors *arrived) {
  alignas(cmsghdr) char control[CMSG_SPACE(most_descriptors * sizeof(int))];
  size_t got = 0;
  while (got < n) {
    iovec part{to + got, n - got};
    msghdr m{};
    m.msg_iov = &part;
    m.msg_iovlen = 1;
    if (arrived) {
      m.msg_control = control;
      m.msg_controllen = sizeof control;
    }
    ssize_t r = 0;
    int error = 0;
    Py_BEGIN_ALLOW_THREADS;
    r = recvmsg(fd, &m, MSG_CMSG_CLOEXEC);
    error = errno;
    if (r < 0 && error == ENOTSOCK) {
      m.msg_controllen = 0;
      r = read(fd, part.iov_base, part.iov_len);
      error = errno;
    }
    Py_END_ALLOW_THREADS;
    if (r > 0) {
      if (arrived) take_descriptors(m, *arrived);
      got += size_t(r);
    } else if (r == 0 || error == ECONNRESET) {
      if (got == 0) return 0;
      PyErr_SetString(PyExc_OSError, "got end of file during message");
      return -1;
    } else if (error != EINTR) {
      errno = error;
      PyErr_SetFromErrno(PyExc_OSError);
      return -1;
    } else if (PyErr_CheckSignals() < 0) {
      return -1;
    }
  }
  return 1;
}

// A tuple with a pin for each received descriptor, or nullptr with an exception.
PyObject *pins_of(Descriptors &arrived) {
  Object pins(PyTuple_New(Py_ssize_t(arrived.count())));
  // after the descriptors are safe, as this may allocate memory
  plait_thread *thread = arrived.count() ? state.runtime->thread() : nullptr;
  while (pins && arrived.count()) {
    void *pin = nullptr;
    const plait_status s = plait_shared_adopt(thread, arrived.take(), &pin);
    PyObject *o = s < 0 ? raise(s) : new_pin(pin);
    if (!o) return nullptr;
    PyTuple_SET_ITEM(pins.get(), Py_ssize_t(arrived.count()), o);
  }
  return pins.release();
}

// Returns the size of a message, -1 if it is longer than `most`, or -2 with an exception.
int64_t read_size(int fd, int64_t most, Descriptors &arrived) {
  uint32_t size = 0;
  uint64_t long_size = 0;
  int got = read_all(fd, reinterpret_cast<char *>(&size), 4, &arrived);
  if (got == 0) PyErr_SetNone(PyExc_EOFError);
  if (got <= 0) return -2;
  size = ntohl(size);
  if (size != 0xffffffffu) return most >= 0 && int64_t(size) > most ? -1 : int64_t(size);
  got = read_all(fd, reinterpret_cast<char *>(&long_size), 8, &arrived);
  if (got == 0) PyErr_SetString(PyExc_OSError, "got end of file during message");
  if (got <= 0) return -2;
  long_size = be64toh(long_size);
  return most >= 0 && long_size > uint64_t(most) ? -1 : int64_t(long_size);
}

// receive_message(fd, most): (bytes, pins), or None for a message longer than `most` (-1: any)
PyObject *receive_message(PyObject *, PyObject *args) {
  int fd = -1;
  long long most = -1;
  if (!PyArg_ParseTuple(args, "iL", &fd, &most)) return nullptr;
  Descriptors arrived;
  const int64_t size = read_size(fd, most, arrived);
  Object data(size >= 0 ? PyBytes_FromStringAndSize(nullptr, Py_ssize_t(size)) : nullptr);
  if (data && size) {
    const int got = read_all(fd, PyBytes_AS_STRING(data.get()), size_t(size), nullptr);
    if (got == 0) PyErr_SetString(PyExc_OSError, "got end of file during message");
  }
  if (PyErr_Occurred()) return nullptr;
  Object pins(pins_of(arrived));
  if (!pins) return nullptr;
  if (arrived.cut)
    return PyErr_Format(PyExc_OSError,
                        "receive: a message brought descriptors of shared memory and there was no "
                        "room for them: the limit of open files (RLIMIT_NOFILE) is %llu; raise it "
                        "with `ulimit -n` or resource.setrlimit",
                        open_files());
  if (!data) Py_RETURN_NONE;
  return PyTuple_Pack(2, data.get(), pins.get());
}

}  // namespace

PyMethodDef channel_functions[] = {
    {"send_message", entry<send_message>, METH_VARARGS, "send_message(fd, bytes, tickets)"},
    {"receive_message", entry<receive_message>, METH_VARARGS, "receive_message(fd, most)"},
    {nullptr, nullptr, 0, nullptr}};

}  // namespace plait::multiprocessing::python
