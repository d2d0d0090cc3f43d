// What the service manager is told. Outside of systemd (no $NOTIFY_SOCKET) every call does nothing.
#pragma once

#include <chrono>
#include <condition_variable>
#include <mutex>
#include <string>
#include <thread>

namespace pantheon::daemon {

/// Thread-safe; no call blocks longer than a datagram takes.
class Notifier {
  public:
    Notifier();
    ~Notifier();
    Notifier(const Notifier&) = delete;
    Notifier& operator=(const Notifier&) = delete;

    /// From here until ready() the time allowed for starting is extended for as long as this process gets on:
    /// a load that hangs is ended by the service manager.
    void loading(const std::string& what);
    void ready(const std::string& status);
    void status(const std::string& text);
    void reloading();
    void reloaded();
    /// The service manager waits for `drain` before it kills.
    void stopping(std::chrono::milliseconds drain);
    void failed(int exit_code, const std::string& why);
    void alive();

    /// How often alive() is wanted: half of what the service manager waits; zero when it does not.
    std::chrono::milliseconds alive_interval() const { return alive_interval_; }

  private:
    void extend_start();
    void end_loading();

    const bool is_wanted_;
    std::chrono::milliseconds alive_interval_{0};
    std::mutex mutex_;
    std::condition_variable over_;
    bool is_loading_ = false;
    std::string last_status_;
    std::thread extender_;
};

}  // namespace pantheon::daemon
