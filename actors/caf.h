// The one place that includes CAF, with what every actor of ours starts from.
#pragma once

#include <caf/actor_system.hpp>
#include <caf/actor_system_config.hpp>
#include <caf/all.hpp>
#include <exception>
#include <string>

#include "runtime/base/log.h"

namespace pantheon::actors {

/// An actor address that points up the spawn tree: it does not keep the actor alive.
template <class Handle>
class UpHandle {
  public:
    UpHandle() = default;
    UpHandle(const Handle& handle) : address_(caf::actor_cast<caf::actor_addr>(handle)) {}
    explicit UpHandle(const caf::strong_actor_ptr& actor)
        : address_(caf::actor_cast<caf::actor_addr>(actor)) {}
    /// Empty when the actor is gone; sending to an empty handle must be avoided.
    Handle lock() const { return caf::actor_cast<Handle>(address_); }
    explicit operator bool() const { return static_cast<bool>(lock()); }

  private:
    caf::actor_addr address_;
};

/// Replaces CAF's default handlers, which print to stdout: an exception ends the actor with a logged reason,
/// unknown messages and stray errors are logged and dropped.
template <class Self>
void install_handlers(Self* self) {
    const std::string name = self->name();
    self->set_exception_handler([name](std::exception_ptr& failure) -> caf::error {
        try {
            std::rethrow_exception(failure);
        } catch (const std::exception& e) {
            log_error(name, std::string("ended by an exception: ") + e.what());
        } catch (...) {
            log_error(name, "ended by an exception of unknown type");
        }
        return caf::sec::runtime_error;
    });
    self->set_default_handler(
        [name](caf::scheduled_actor*, const caf::message_view& message) -> caf::result<caf::message> {
            log_warning(name, "dropped an unexpected message: " + caf::to_string(message.content()));
            return caf::sec::unexpected_message;
        });
    self->set_error_handler(
        [name](caf::error& error) { log_warning(name, "unhandled error: " + caf::to_string(error)); });
    self->set_down_handler([](caf::down_msg&) {});
}

}  // namespace pantheon::actors
