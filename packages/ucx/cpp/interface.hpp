// Which of this host's interfaces has an address.
#pragma once
#include <string>

namespace plait::ucx {

// `ip`: an IPv4 or IPv6 address as text. Empty if no interface has it.
std::string interface_of(const std::string &ip);

}  // namespace plait::ucx
