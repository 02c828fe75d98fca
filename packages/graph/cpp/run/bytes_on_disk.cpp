#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "run/bytes.hpp"

namespace plait::graph {
namespace {

std::string system_text(int code) { return std::strerror(code); }

constexpr uint64_t kStep = uint64_t(1) << 24;  // bytes of one read or write

class File : public ByteSource {
 public:
  explicit File(const std::string &path) : ByteSource(path) {
    // O_NONBLOCK: to open a pipe does not wait for a writer.
    file_ = open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (file_ < 0) fail("the file cannot be opened (" + system_text(errno) + ")");
    struct stat status{};
    const bool is_readable = !fstat(file_, &status);
    const int code = errno;
    if (is_readable && S_ISREG(status.st_mode)) {
      size_ = uint64_t(status.st_size);
      return;
    }
    close(file_);
    fail(is_readable ? "a regular file is required"
                     : "the file cannot be read (" + system_text(code) + ")");
  }
  File(const File &) = delete;
  File &operator=(const File &) = delete;
  ~File() override { close(file_); }

  uint64_t size() const override { return size_; }
  void read(uint64_t offset, void *data, uint64_t nbytes) const override {
    for (uint64_t done = 0; done < nbytes;) {
      const ssize_t n = pread(file_, static_cast<char *>(data) + done,
                              size_t(std::min(kStep, nbytes - done)), off_t(offset + done));
      if (n < 0 && errno == EINTR) continue;
      if (n < 0) fail("the file cannot be read (" + system_text(errno) + ")");
      if (n == 0) fail("the file was cut while it was read");
      done += uint64_t(n);
    }
  }
  std::shared_ptr<char> map() const override {
    const uint64_t nbytes = size_;
    void *data = mmap(nullptr, size_t(nbytes), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_NORESERVE,
                      file_, 0);
    if (data == MAP_FAILED) fail("the file cannot be mapped (" + system_text(errno) + ")");
    return {static_cast<char *>(data), [nbytes](char *p) { munmap(p, size_t(nbytes)); }};
  }

 private:
  int file_ = -1;
  uint64_t size_ = 0;
};

// A link stays, and the file that it names is replaced.
std::string resolved(const std::string &path) {
  char result[PATH_MAX];
  return realpath(path.c_str(), result) ? result : path;
}

// A file that gets its name when it is complete.
class FileBesidePath : public NewFile {
 public:
  explicit FileBesidePath(const std::string &path)
      : NewFile(resolved(path)), path_(resolved(path)) {
    const size_t slash = path_.rfind('/');
    folder_ = slash == std::string::npos ? "." : path_.substr(0, slash + 1);
    const std::string name = slash == std::string::npos ? path_ : path_.substr(slash + 1);
    struct stat status{};
    const bool exists = !stat(path_.c_str(), &status);
    if (exists && !S_ISREG(status.st_mode)) fail("is not a regular file, and stays as it is");
    const std::string start = folder_ + (folder_ == "." ? "/." : ".") + name + ".";
    for (uint32_t i = 0; file_ < 0; i++) {
      char token[24];
      std::snprintf(token, sizeof token, "%08x", uint32_t(getpid()) * 2654435761u + i);
      temporary_ = start + token + ".partial";
      file_ = open(temporary_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
      if (file_ < 0 && errno != EEXIST)
        fail("cannot be written: no file can be made beside it (" + system_text(errno) + ")");
    }
    if (exists) (void)!fchmod(file_, status.st_mode & 07777);
  }
  FileBesidePath(const FileBesidePath &) = delete;
  FileBesidePath &operator=(const FileBesidePath &) = delete;
  ~FileBesidePath() override {
    if (file_ >= 0) close(file_);
    if (!done_) unlink(temporary_.c_str());
  }

  void write(const void *data, uint64_t nbytes) override {
    for (uint64_t done = 0; done < nbytes;) {
      const ssize_t n = ::write(file_, static_cast<const char *>(data) + done,
                                size_t(std::min(kStep, nbytes - done)));
      if (n < 0 && errno == EINTR) continue;
      if (n < 0)
        fail("cannot be written (" + system_text(errno) + "); what was there is unchanged");
      done += uint64_t(n);
    }
  }

  void finish() override {
    if (fsync(file_) || close(std::exchange(file_, -1)) ||
        rename(temporary_.c_str(), path_.c_str()))
      fail("cannot be written (" + system_text(errno) + "); what was there is unchanged");
    done_ = true;
    const int folder = open(folder_.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (folder < 0) return;  // the name is not durable yet, as on file systems without fsync
    fsync(folder);
    close(folder);
  }

 private:
  std::string path_, folder_, temporary_;
  int file_ = -1;
  bool done_ = false;
};

}  // namespace

std::unique_ptr<ByteSource> open_file(const std::string &path) {
  return std::make_unique<File>(path);
}

std::unique_ptr<NewFile> create_file(const std::string &path) {
  return std::make_unique<FileBesidePath>(path);
}

}  // namespace plait::graph
