// What moves bytes between processes, as far as the collectives need to know it. MPI and UCX are
// transports; the collectives of world.hpp run over any.
#ifndef PLAIT_COLLECTIVES_TRANSPORT_HPP
#define PLAIT_COLLECTIVES_TRANSPORT_HPP
#include <cstddef>
#include <cstdint>
#include <string>

namespace plait::collectives {

// The most bytes of a letter.
constexpr size_t most_letter = (96 << 10) + 256;
// Channels are numbers below it.
constexpr uint32_t most_channels = (1 << 15) - 16;
// The most bytes of one transfer.
constexpr uint64_t most_transfer = uint64_t(1) << 30;

// Bytes of this process on their way to a peer, or those of a peer on their way here. Whoever
// begins the transfer owns the object and its memory, and leaves both alone until `ended`.
struct Transfer {
  void *data = nullptr;
  uint64_t bytes = 0;
  void *handle = nullptr;  // the transport's own
  virtual ~Transfer() = default;
  // Called once, by `progress` alone: all bytes are there, or the buffer may be written again; or
  // not, as the peer was lost or the transfer was cancelled.
  virtual void ended(bool whole) = 0;
};

class Listener {  // whom a transport tells, from `progress` alone
 public:
  virtual ~Listener() = default;
  // The bytes stay where they are until this returns.
  virtual void letter(uint32_t peer, const char *data, size_t bytes) = 0;
  // No more comes from the peer, and nothing reaches it: once for each peer.
  virtual void lost(uint32_t peer, const std::string &reason) = 0;
};

// Processes that reach each other, numbered from 0. All functions but `wake` are called by one
// thread, without the interpreter's lock. None waits, apart from `wait`; none throws but
// std::bad_alloc. Errors are reported as `lost`.
//
// Letters are short and come unasked. Transfers are of any size, and both sides have begun them:
// the collectives agree on them by letters before. So a transport needs no buffers for transfers.
class Transport {
 public:
  virtual ~Transport() = default;
  virtual uint32_t rank() const = 0;
  virtual uint32_t size() const = 0;

  // Sends a letter of at most most_letter bytes, which are copied before it returns. Letters of
  // one sender to one receiver arrive in order. Those to a lost peer are dropped. Never to itself.
  virtual void post(uint32_t peer, const void *data, size_t bytes) = 0;

  // Begins to send, or to receive, the bytes of a transfer. The n-th send to a peer under a channel
  // meets the n-th receive from there under the channel, of exactly as many bytes; either may begin
  // first. `ended` may not be called before these return. A transfer of a lost peer ends soon.
  virtual void send(uint32_t peer, uint32_t channel, Transfer *) = 0;
  virtual void receive(uint32_t peer, uint32_t channel, Transfer *) = 0;
  // Asks that a transfer end soon; it ends as any other does, whole or not. It may take as long as
  // the peer does not move if bytes are on their way already. The channel is not used afterwards.
  virtual void cancel(Transfer *) = 0;

  // Whether all posted letters have left this process, so that they arrive though it ends.
  virtual bool has_sent() const { return true; }

  // Makes progress with running transfers; true if anything happened.
  virtual bool progress(Listener &) = 0;
  // Waits until there may be something for `progress`, or somebody calls `wake`, at most this
  // long. `busy`: letters or transfers are expected, so that it must be woken by them soon (some
  // tens of microseconds); otherwise milliseconds later will do. It does not use the processor.
  virtual void wait(double seconds, bool busy) = 0;
  // Ends a `wait`, the running or the next one. From any thread.
  virtual void wake() = 0;

  // The peer counts as lost from now on, as it was silent for too long or another peer told so;
  // `lost` need not be called for it.
  virtual void give_up(uint32_t peer) = 0;
  // Sends what was posted, at most this long, and closes connections; then it is destroyed.
  // Peers that are told `lost` behind this may not be: they are told by a letter before.
  virtual void close(double seconds) = 0;

  // What the thread is in, or was last: a function of the library beneath. From any thread, for the
  // error when it does not return.
  virtual const char *call() const { return "a call of its library"; }
};

}  // namespace plait::collectives
#endif  // PLAIT_COLLECTIVES_TRANSPORT_HPP
