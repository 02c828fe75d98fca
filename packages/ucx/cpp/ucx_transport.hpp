// A transport of the collectives over UCX, which chooses TCP or RDMA.
#pragma once
#include <plait/collectives/transport.hpp>

#include <deque>
#include <memory>
#include <string>
#include <vector>

#include "ucx_library.hpp"

namespace plait::ucx {

class UcxTransport : public collectives::Transport {
 public:
  // Opens UCX on the devices of these names; NULL with a text if it cannot.
  static std::unique_ptr<UcxTransport> open(const std::string &devices, std::string &explanation);
  ~UcxTransport() override;
  // How many there are in this process, also while they are destroyed.
  static size_t alive();
  const std::string &address() const { return address_; }  // what the others need
  void join(uint32_t rank, const std::vector<std::string> &addresses);

  uint32_t rank() const override { return rank_; }
  uint32_t size() const override { return uint32_t(peers_.size()); }
  void post(uint32_t peer, const void *data, size_t bytes) override;
  void send(uint32_t peer, uint32_t channel, collectives::Transfer *) override;
  void receive(uint32_t peer, uint32_t channel, collectives::Transfer *) override;
  void cancel(collectives::Transfer *) override;
  bool has_sent() const override { return leaving_.empty(); }
  bool progress(collectives::Listener &) override;
  void wait(double seconds, bool busy) override;
  void wake() override;
  const char *call() const override { return "a call of UCX"; }
  void give_up(uint32_t peer) override;
  void close(double seconds) override;

 private:
  struct Letter {  // on its way to or from a peer
    std::unique_ptr<char[]> data;
    size_t bytes = 0;
    void *request = nullptr;
  };
  struct Peer {
    UcxTransport *owner = nullptr;
    uint32_t rank = 0;
    std::string address;
    void *endpoint = nullptr;
    bool lost = false, failed = false;  // failed: UCX reported it, and it was not passed on yet
    std::string explanation;
    std::deque<Letter> arriving;
  };
  struct Active {  // a transfer that UCX has; Transfer::handle
    collectives::Transfer *transfer;
    void *request;
    uint32_t peer;
    bool sends;
    Status status;  // once the request is done
  };

  explicit UcxTransport(const Functions &);
  bool start(const std::string &devices, std::string &explanation);
  static void on_error(void *peer, void *endpoint, Status);
  void *endpoint_of(Peer &);
  void fail(Peer &, const std::string &explanation);
  void lose(Peer &);
  void begin(uint32_t peer, collectives::Transfer *, bool sends, void *result);
  bool take_letters(collectives::Listener &);
  bool deliver(Peer &, collectives::Listener &);
  bool finish_letters();
  bool finish_transfers();
  bool tell_losses(collectives::Listener &);
  bool finish_closing();
  bool is_done(void *&request, Status &) const;

  const Functions &ucp_;
  void *context_ = nullptr, *worker_ = nullptr;
  int events_ = -1, wake_ = -1;
  uint32_t rank_ = 0;
  std::string address_;
  std::deque<Peer> peers_;  // UCX has their places
  std::vector<uint32_t> arriving_;  // peers with letters that are not whole yet
  std::deque<Letter> leaving_;
  std::vector<std::unique_ptr<Active>> active_;
  std::vector<void *> closing_;  // requests
  bool any_failed_ = false;
};

}  // namespace plait::ucx
