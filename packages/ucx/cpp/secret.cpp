#include "secret.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>

#include "wire.hpp"

namespace plait::ucx {
namespace {

constexpr size_t most_secret = 4096;  // bytes

}  // namespace

bool job_secret(std::string &secret, std::string &why) {
  const char *text = std::getenv("PLAIT_JOB_SECRET"), *path = std::getenv("PLAIT_JOB_SECRET_FILE");
  if ((text && *text) || !path || !*path) {
    secret = text ? text : "";
    return true;
  }
  why = std::string("the file ") + path + " that PLAIT_JOB_SECRET_FILE names ";
  const Socket file(::open(path, O_RDONLY | O_CLOEXEC));
  struct stat about {};
  if (!file.is_open() || fstat(file.fd(), &about) != 0) {
    why += std::string("cannot be read: ") + std::strerror(errno);
    return false;
  }
  if (about.st_mode & 077) {
    why += "must be readable by its owner alone (chmod 600)";
    return false;
  }
  secret.resize(most_secret);
  const ssize_t n = ::read(file.fd(), &secret[0], secret.size());
  secret.resize(n > 0 ? size_t(n) : 0);
  secret.erase(secret.find_last_not_of(" \t\r\n") + 1);
  if (secret.empty()) why += "is empty";
  return !secret.empty();
}

}  // namespace plait::ucx
