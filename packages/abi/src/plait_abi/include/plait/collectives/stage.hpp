// Memory in which the members of one host show each other what they sum and send. Each member has
// a part, a memfd, which the others open by /proc: it has no name, and ends with its processes.
#ifndef PLAIT_COLLECTIVES_STAGE_HPP
#define PLAIT_COLLECTIVES_STAGE_HPP
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <vector>

namespace plait::collectives {

class Stage {
 public:
  static constexpr uint64_t part_bytes = 16 << 20;  // of each member
  struct Address {  // of a part, for the others
    uint64_t mark[2];  // random: what is opened is the part if it begins with it
    int32_t descriptor;
    uint32_t unused;
  };

  // of `members` on this host, which is the `own`-th
  Stage(uint32_t members, uint32_t own) : parts_(members), own_(own) {}
  Stage(const Stage &) = delete;
  ~Stage() {
    for (char *p : parts_)
      if (p) munmap(p, header_bytes + part_bytes);
    close_descriptor();
  }

  // The own part; false if there is no memory for it.
  bool make() {
    descriptor_ = memfd_create("plait", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    if (descriptor_ < 0) return false;
    int s = 0;
    // all of it is there from the beginning: memory that is missing later would end the process
    do s = posix_fallocate(descriptor_, 0, off_t(header_bytes + part_bytes));
    while (s == EINTR);
    if (s || fcntl(descriptor_, F_ADD_SEALS, seals) != 0 || !map(own_, descriptor_) ||
        getrandom(address_.mark, sizeof address_.mark, 0) != ssize_t(sizeof address_.mark))
      return false;
    address_.descriptor = descriptor_;
    std::memcpy(parts_[own_], address_.mark, sizeof address_.mark);
    return true;
  }
  const Address &address() const { return address_; }

  // Another one's; it stays closed if it is not what the address says.
  void open(uint32_t member, int64_t pid, const Address &a) {
    if (parts_[member]) return;
    char path[64];
    std::snprintf(path, sizeof path, "/proc/%lld/fd/%d", static_cast<long long>(pid),
                  int(a.descriptor));
    const int fd = ::open(path, O_RDWR | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0) return;
    struct stat status{};
    const int sealed = fcntl(fd, F_GET_SEALS);
    if (sealed >= 0 && (sealed & seals) == seals && fstat(fd, &status) == 0 &&
        uint64_t(status.st_size) == header_bytes + part_bytes && map(member, fd) &&
        std::memcmp(parts_[member], a.mark, sizeof a.mark) != 0) {
      munmap(parts_[member], header_bytes + part_bytes);
      parts_[member] = nullptr;
    }
    ::close(fd);
  }
  bool whole() const {
    for (const char *p : parts_)
      if (!p) return false;
    return true;
  }
  // when all have opened it
  void close_descriptor() {
    if (descriptor_ >= 0) ::close(descriptor_);
    descriptor_ = -1;
  }
  // of part_bytes; whoever writes there tells the others by messages
  char *part(uint32_t member) const { return parts_[member] + header_bytes; }

 private:
  static constexpr uint64_t header_bytes = 4096;
  static constexpr int seals = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL;

  bool map(uint32_t member, int fd) {
    void *p = mmap(nullptr, header_bytes + part_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (p == MAP_FAILED) return false;
    parts_[member] = static_cast<char *>(p);
    return true;
  }

  std::vector<char *> parts_;
  const uint32_t own_;
  int descriptor_ = -1;
  Address address_{};
};

}  // namespace plait::collectives
#endif  // PLAIT_COLLECTIVES_STAGE_HPP
