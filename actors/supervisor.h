// The root of the spawn tree: starts every actor, replaces what dies, and ends the daemon when that does not
// help.
#pragma once

#include <deque>
#include <functional>
#include <map>

#include "actors/messages.h"

namespace pantheon::actors {

/// Called on actor threads; must not block.
struct SupervisorEvents {
    std::function<void()> on_reloading;  // a reload begins; only once the engine can serve
    /// It is over, whatever came of it.
    std::function<void(const DaemonSettings& in_force)> on_reloaded;
    /// Every alive_interval, as long as the scheduler answers and no step takes longer than die.hang_ms.
    std::function<void(const EngineSnapshot&)> on_alive;
    std::chrono::milliseconds alive_interval{0};      // 0: never
    std::function<void()> on_ready;                   // the engine can serve
    std::function<void(const Error&)> on_failed;      // cannot go on; everything has been stopped
    std::function<void()> on_stopped;                 // after Shutdown or a finished drain
    std::function<void(const WiringPtr&)> on_wiring;  // whenever a child was spawned or replaced
};

/// How often a child may be replaced before the daemon gives up.
class RestartBudget {
  public:
    static constexpr std::size_t kMost = 5;
    static constexpr std::chrono::seconds kWindow{60};
    /// Records a death; false when it was one too many.
    bool allow(Clock::time_point now);

  private:
    std::deque<Clock::time_point> deaths_;
};

struct SupervisorState {
    static inline const char* name = "supervisor";

    SupervisorActor::pointer self = nullptr;
    SettingsPtr settings;
    std::shared_ptr<ClientPort> port;
    SupervisorEvents events;
    Clock::time_point started;

    Wiring children;  // what is alive now; published as an immutable copy
    ConfigActor config;
    DieActor starting_die;  // spawned, has not said that it is ready
    std::map<std::string, RestartBudget> budgets;
    bool is_ready = false;
    bool is_draining = false;
    std::optional<Clock::time_point> drain_end;
    bool is_stopping = false;
    std::optional<Error> failure;
    std::size_t n_alive = 0;

    void start();
    void on_die_ready(const DieReady& message, const caf::actor_addr& sender);
    void on_down(const caf::down_msg& down);
    void begin_drain(std::optional<std::chrono::milliseconds> timeout);
    void alive_tick();
    caf::result<ReloadOutcomePtr> reload(const ReloadConfig& message);
    void drain_tick();
    void spill_and_stop();
    void stop();

  private:
    template <class F, class... Args>
    auto spawn_child(F behavior, Args&&... args);
    void spawn_gateway(bool is_restart);
    void spawn_scheduler(bool is_restart);
    void spawn_slot(std::size_t index);
    void spawn_die();
    void spawn_config();
    void spawn_store();
    void spawn_memory_ladder(bool is_restart);
    void adopt(const SettingsPtr& next);
    void publish();
    void fail(Error error);
    void finish_if_all_gone();
};

SupervisorActor::behavior_type supervisor(SupervisorActor::stateful_pointer<SupervisorState> self,
                                          SettingsPtr settings, std::shared_ptr<ClientPort> port,
                                          SupervisorEvents events);

}  // namespace pantheon::actors
