#include "interface.hpp"

#include <arpa/inet.h>
#include <ifaddrs.h>
#include <netinet/in.h>

#include <memory>

namespace plait::ucx {
namespace {

std::string ip_of(const sockaddr *a) {
  char text[INET6_ADDRSTRLEN] = "";
  if (a->sa_family == AF_INET)
    inet_ntop(AF_INET, &reinterpret_cast<const sockaddr_in *>(a)->sin_addr, text, sizeof text);
  if (a->sa_family == AF_INET6)
    inet_ntop(AF_INET6, &reinterpret_cast<const sockaddr_in6 *>(a)->sin6_addr, text, sizeof text);
  return text;
}

}  // namespace

std::string interface_of(const std::string &ip) {
  ifaddrs *all = nullptr;
  if (ip.empty() || getifaddrs(&all) != 0) return {};
  const std::unique_ptr<ifaddrs, decltype(&freeifaddrs)> keep(all, freeifaddrs);
  for (const ifaddrs *each = all; each; each = each->ifa_next)
    if (each->ifa_addr && ip_of(each->ifa_addr) == ip) return each->ifa_name;
  return {};
}

}  // namespace plait::ucx
