// The letters that processes write to each other.
#ifndef PLAIT_COLLECTIVES_LETTERS_HPP
#define PLAIT_COLLECTIVES_LETTERS_HPP
#include <cstring>
#include <string>
#include <type_traits>
#include <vector>

#include "call.hpp"
#include "transport.hpp"

namespace plait::collectives {

enum LetterKind : uint32_t {
  // of processes
  LETTER_HELLO = 0x706c7401,  // the first one: the sender's identity
  LETTER_BYE,                 // this process ends as it should
  LETTER_BEAT,                // it lives
  LETTER_LOST,                // a process does not
  LETTER_ANNOUNCE,            // it wants to join a group
  LETTER_WITHDRAW,            // not any more
  LETTER_LIVING,              // whom it counts as lost
  // of groups
  LETTER_CALL,      // a collective that a member begins
  LETTER_CALLS,     // those of several members, handed on
  LETTER_HERE,      // a member has begun a collective, and waits
  LETTER_STAGE,     // the part of the memory that the members of a host share
  LETTER_BREAK,     // the group is broken
  LETTER_LEFT,      // a member has left
  LETTER_OFFER,     // a message
  LETTER_ACCEPT,    // it is wanted
  LETTER_REFUSE,    // another one is wanted
  LETTER_TAKE_BACK  // it is not offered any more
};

// All structures are sent as they are: the processes of a job have one byte order and layout.
struct LetterHead {
  uint32_t kind;
  uint32_t from;   // of groups: the sender's rank
  uint64_t group;  // of groups: its number in the receiver
};

struct NameDigest {  // of a group's name
  uint64_t a = 0, b = 0;
  explicit NameDigest(const std::string &name)
      : a(mix(name, 0xcbf29ce484222325)), b(mix(name, a)) {}
  NameDigest() = default;
  bool operator<(const NameDigest &o) const { return a < o.a || (a == o.a && b < o.b); }
  bool operator==(const NameDigest &o) const { return a == o.a && b == o.b; }

 private:
  static uint64_t mix(const std::string &s, uint64_t h) {  // FNV-1a with a finish
    for (const char c : s) h = (h ^ uint8_t(c)) * 0x100000001b3;
    h = (h ^ (h >> 33)) * 0xff51afd7ed558ccd;
    return h ^ (h >> 33);
  }
};

struct Hello {
  int64_t pid;
  char host[64];
  NameDigest place;  // the same in processes that may share memory
};
struct Lost {
  uint32_t peer;
};
struct Announce {
  NameDigest name;
  uint64_t group;  // number of the group in the sender, which has it once
  int64_t pid;
  uint32_t rank, size, channel;
};
struct Withdraw {
  NameDigest name;
  uint64_t group;
};
struct Calling {
  uint64_t number;  // of the collectives of the group
  Call call;
  uint64_t shares;  // whether the member has all shared memory of its host
};
// Calls that are handed on: those of the sender and of the ranks behind it, as far as it knows
// them. Behind it are runs of equal calls, and the bytes if all are equal.
struct Calls {
  uint64_t number;
  uint32_t round, runs;
  uint64_t shares;  // whether all of these members have it
};
constexpr uint32_t most_members = 4096;  // of a group
struct CallRun {
  uint64_t count;  // of members
  Call call;
};
static_assert(sizeof(LetterHead) + sizeof(Calls) + most_members / 2 * sizeof(CallRun) <=
                  most_letter,
              "a letter has half of the members' calls, all of them different");

enum Cause : uint32_t {
  CAUSE_LEFT = 1,
  CAUSE_DIED,
  CAUSE_TIMED_OUT,
  CAUSE_INTERRUPTED,
  CAUSE_ABORTED
};
struct Reason {  // why a group is broken
  uint32_t by, of;  // the rank that noticed, and the rank that is missing
  Cause cause;
  uint32_t unused = 0;
  double waited = 0;
};

struct Offer {
  uint64_t id;
  int64_t tag;
  uint64_t elements;
  uint32_t dtype, whole;  // `whole`: the bytes are in the letter
};
struct Reply {  // to an offer
  uint64_t id, elements;
  uint32_t dtype, whole;
};

class Letter {
 public:
  explicit Letter(uint32_t kind, uint32_t from = 0, uint64_t group = 0) {
    add(LetterHead{kind, from, group});
  }
  template <class T>
  Letter &add(const T &x) {
    static_assert(std::is_trivially_copyable_v<T>);
    return add(&x, sizeof x);
  }
  Letter &add(const void *data, size_t n) {
    if (n) std::memcpy(room(n), data, n);
    return *this;
  }
  char *room(size_t n) {
    bytes_.resize(bytes_.size() + n);
    return bytes_.data() + bytes_.size() - n;
  }
  void send(Transport &t, uint32_t peer) const { t.post(peer, bytes_.data(), bytes_.size()); }

 private:
  std::vector<char> bytes_;
};

class Reading {  // of a letter
 public:
  Reading(const char *data, size_t bytes) : at_(data), left_(bytes) {}
  template <class T>
  bool take(T &x) {
    if (left_ < sizeof x) return false;
    std::memcpy(&x, at_, sizeof x);
    at_ += sizeof x;
    left_ -= sizeof x;
    return true;
  }
  void skip(size_t n) {
    at_ += n;
    left_ -= n;
  }
  const char *data() const { return at_; }
  size_t left() const { return left_; }
  std::string text() const { return std::string(at_, left_); }

 private:
  const char *at_;
  size_t left_;
};

}  // namespace plait::collectives
#endif  // PLAIT_COLLECTIVES_LETTERS_HPP
