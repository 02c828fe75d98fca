#include "place.hpp"

#include <arpa/inet.h>
#include <dirent.h>
#include <ifaddrs.h>
#include <netdb.h>
#include <netinet/in.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <memory>
#include <vector>

#include "authentication.hpp"

namespace plait::ucx {
namespace {

using Found = std::unique_ptr<addrinfo, decltype(&freeaddrinfo)>;

Found resolve(const Place &p, std::string &why) {
  addrinfo hints{}, *found = nullptr;
  hints.ai_socktype = SOCK_STREAM;
  const int failed = getaddrinfo(p.host.c_str(), p.port.c_str(), &hints, &found);
  if (failed) {
    why = "the host " + p.host + " is not known: " + gai_strerror(failed);
    found = nullptr;
  }
  return {found, freeaddrinfo};
}

bool is_loopback(const sockaddr *a) {
  if (a->sa_family == AF_INET)
    return ntohl(reinterpret_cast<const sockaddr_in *>(a)->sin_addr.s_addr) >> 24 == 127;
  return a->sa_family == AF_INET6 &&
         IN6_IS_ADDR_LOOPBACK(&reinterpret_cast<const sockaddr_in6 *>(a)->sin6_addr);
}

bool is_any(const sockaddr *a) {
  if (a->sa_family == AF_INET)
    return reinterpret_cast<const sockaddr_in *>(a)->sin_addr.s_addr == INADDR_ANY;
  return a->sa_family == AF_INET6 &&
         IN6_IS_ADDR_UNSPECIFIED(&reinterpret_cast<const sockaddr_in6 *>(a)->sin6_addr);
}

bool same_host(const sockaddr *a, const sockaddr *b) {
  if (a->sa_family != b->sa_family) return false;
  if (a->sa_family == AF_INET)
    return reinterpret_cast<const sockaddr_in *>(a)->sin_addr.s_addr ==
           reinterpret_cast<const sockaddr_in *>(b)->sin_addr.s_addr;
  return a->sa_family == AF_INET6 &&
         std::memcmp(&reinterpret_cast<const sockaddr_in6 *>(a)->sin6_addr,
                     &reinterpret_cast<const sockaddr_in6 *>(b)->sin6_addr, 16) == 0;
}

// The interface of this host that has the address; empty if none has.
std::string interface_of(const sockaddr *address) {
  ifaddrs *all = nullptr;
  if (getifaddrs(&all) != 0) return {};
  const std::unique_ptr<ifaddrs, decltype(&freeifaddrs)> keep(all, freeifaddrs);
  for (const ifaddrs *each = all; each; each = each->ifa_next)
    if (each->ifa_addr && same_host(each->ifa_addr, address)) return each->ifa_name;
  return {};
}

// The interface whose address packets to the place have; a datagram socket that connects sends
// nothing.
std::string interface_towards(const Place &p) {
  std::string why;
  Address there;
  if (!find_address(p, false, there, why)) return {};
  const int fd = socket(there.storage.ss_family, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  if (fd < 0) return {};
  Address here;
  here.length = sizeof here.storage;
  const bool known =
      connect(fd, there.get(), there.length) == 0 &&
      getsockname(fd, reinterpret_cast<sockaddr *>(&here.storage), &here.length) == 0;
  ::close(fd);
  if (!known) return {};
  // packets to an own address go through the loopback, but others reach it through its interface
  return interface_of(here.get());
}

std::vector<std::string> names_in(const std::string &folder) {
  struct Closes {
    void operator()(DIR *d) const { closedir(d); }
  };
  std::vector<std::string> found;
  const std::unique_ptr<DIR, Closes> open(opendir(folder.c_str()));
  while (open) {
    const dirent *entry = readdir(open.get());
    if (!entry) break;
    if (entry->d_name[0] != '.') found.emplace_back(entry->d_name);
  }
  std::sort(found.begin(), found.end());
  return found;
}

}  // namespace

bool parse_place(const char *where, Place &p, std::string &why) {
  const std::string given = where ? where : "";
  why = "`where` must be \"tcp://HOST:PORT/NAME\" or \"local:NAME\", got \"" + given + "\"";
  if (given.rfind("local:", 0) == 0) {
    p.name = given.substr(6);
    p.text = "local:" + p.name;
    p.local = true;
    return !p.name.empty();
  }
  if (given.rfind("tcp://", 0) != 0) return false;
  const size_t slash = given.find('/', 6);
  const std::string base = given.substr(6, slash == std::string::npos ? slash : slash - 6);
  const size_t colon = base.rfind(':');
  if (colon == std::string::npos || colon == 0) return false;
  p.text = "tcp://" + base;
  p.host = base.substr(0, colon);
  p.port = base.substr(colon + 1);
  p.name = slash == std::string::npos ? "" : given.substr(slash + 1);
  if (p.host.size() > 2 && p.host[0] == '[') p.host = p.host.substr(1, p.host.size() - 2);
  const bool digits = !p.port.empty() && p.port.size() <= 5 &&
                      p.port.find_first_not_of("0123456789") == std::string::npos;
  if (!digits || std::stoi(p.port) < 1 || std::stoi(p.port) > 65535) return false;
  const Found found = resolve(p, why);
  if (!found) return false;
  p.local = true;
  for (const addrinfo *each = found.get(); each; each = each->ai_next) {
    if (is_any(each->ai_addr)) {
      why = "`where` must have an address of one interface, got \"" + given + "\"";
      return false;
    }
    p.local = p.local && is_loopback(each->ai_addr);
  }
  return true;
}

bool find_address(const Place &p, bool own, Address &out, std::string &why) {
  if (p.local) {
    auto *a = reinterpret_cast<sockaddr_un *>(&out.storage);
    a->sun_family = AF_UNIX;
    // of fixed length, whatever the place is called
    std::string name = "plait-ucx/" + std::to_string(getuid()) + "/";
    for (const uint8_t byte : sha256(p.text)) {
      name += "0123456789abcdef"[byte >> 4];
      name += "0123456789abcdef"[byte & 15];
    }
    std::memcpy(a->sun_path + 1, name.data(), name.size());
    out.length = socklen_t(offsetof(sockaddr_un, sun_path) + 1 + name.size());
    return true;
  }
  const Found found = resolve(p, why);
  for (const addrinfo *each = found.get(); each; each = each->ai_next) {
    if (own && interface_of(each->ai_addr).empty()) continue;
    std::memcpy(&out.storage, each->ai_addr, each->ai_addrlen);
    out.length = each->ai_addrlen;
    return true;
  }
  if (found) why = p.host + " is not an address of this host";
  return false;
}

std::string devices_towards(const Place &p) {
  if (p.local) return "lo";
  std::string found = interface_towards(p);
  for (const std::string &adapter : names_in("/sys/class/infiniband"))
    for (const std::string &port : names_in("/sys/class/infiniband/" + adapter + "/ports"))
      found += (found.empty() ? "" : ",") + adapter + ":" + port;
  return found;
}

}  // namespace plait::ucx
