// Where the processes of a job meet, and which of this host's interfaces leads there.
#pragma once
#include <sys/socket.h>

#include <cstdint>
#include <string>

namespace plait::ucx {

// "tcp://HOST:PORT/NAME", or "local:NAME" for processes of one host.
struct Place {
  std::string text;    // without the name
  std::string host, port;
  std::string name;    // which group meets there
  bool local = false;  // reached through a socket that only this host has
};

bool parse_place(const char *where, Place &, std::string &why);

struct Address {  // of a socket
  sockaddr_storage storage{};
  socklen_t length = 0;
  const sockaddr *get() const { return reinterpret_cast<const sockaddr *>(&storage); }
};

// An address of the place: one of this host's own if `own`.
bool find_address(const Place &, bool own, Address &, std::string &why);
// The names of the devices whose network leads to the place, as UCX calls them: the interface, and
// RDMA adapters, which carry data only between peers that exchanged keys.
std::string devices_towards(const Place &);

}  // namespace plait::ucx
