// How an expected failure travels: an Error with one of a fixed set of codes, or a Result<T> that holds a value
// or an Error. The codes are the same in C++, in logs and in replies; each says what the caller should do.
#pragma once

#include <cassert>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>

namespace pantheon {

enum class Code {
    invalid_argument,     // change the request
    not_found,            // the thing named does not exist
    permission_denied,    // not yours
    failed_precondition,  // fix the state first
    resource_exhausted,   // retry later
    unavailable,          // retry later
    deadline_exceeded,
    cancelled,
    data_loss,      // a file or message is damaged
    unimplemented,  // understood, cannot be done
    internal,       // a bug of ours
};

/// The code as it stands in logs and replies, for example "invalid_argument".
std::string_view code_name(Code code);
/// The inverse; empty for an unknown name.
std::optional<Code> code_from_name(std::string_view name);

class [[nodiscard]] Error {
  public:
    Error(Code code, std::string message) : code_(code), message_(std::move(message)) {}

    Code code() const { return code_; }
    const std::string& message() const { return message_; }
    /// Prepends what only this layer knows: "layer 7: " + message.
    Error with_context(std::string_view context) && {
        message_.insert(0, ": ").insert(0, context);
        return std::move(*this);
    }
    Error with_context(std::string_view context) const& { return Error(*this).with_context(context); }
    /// "data_loss: layer 7: ..."
    std::string to_string() const;

  private:
    Code code_;
    std::string message_;
};

template <class T>
class [[nodiscard]] Result {
  public:
    Result(T value) : v_(std::in_place_index<0>, std::move(value)) {}
    Result(Error error) : v_(std::in_place_index<1>, std::move(error)) {}

    bool has_value() const { return v_.index() == 0; }
    explicit operator bool() const { return has_value(); }

    T& value() & { assert(has_value()); return *std::get_if<0>(&v_); }
    const T& value() const& { assert(has_value()); return *std::get_if<0>(&v_); }
    T&& value() && { assert(has_value()); return std::move(*std::get_if<0>(&v_)); }
    T& operator*() & { return value(); }
    const T& operator*() const& { return value(); }
    T&& operator*() && { return std::move(*this).value(); }
    T* operator->() { return &value(); }
    const T* operator->() const { return &value(); }

    const Error& error() const& { assert(!has_value()); return *std::get_if<1>(&v_); }
    Error&& error() && { assert(!has_value()); return std::move(*std::get_if<1>(&v_)); }

  private:
    std::variant<T, Error> v_;
};

template <>
class [[nodiscard]] Result<void> {
  public:
    Result() = default;
    Result(Error error) : error_(std::move(error)) {}

    bool has_value() const { return !error_; }
    explicit operator bool() const { return has_value(); }
    const Error& error() const& { assert(error_); return *error_; }
    Error&& error() && { assert(error_); return std::move(*error_); }

  private:
    std::optional<Error> error_;
};

using Status = Result<void>;

}  // namespace pantheon
