// The actor that owns one sequence's text side: detokeniser, parser, stop matcher, its client.
#pragma once

#include <optional>

#include "actors/messages.h"
#include "model/chat/output_parser.h"
#include "model/tokenizer/stream_detokenizer.h"

namespace pantheon::actors {

/// True when the slot must see a token before the next one may be computed: something in the text can end the
/// reply.
bool needs_verdict(const Prepared& prepared);

struct SlotState {
    static inline const char* name = "slot";

    /// Everything that lives as long as one request.
    struct Sequence {
        explicit Sequence(JobPtr job_, Clock::time_point bound_);

        JobPtr job;
        Clock::time_point bound;
        std::optional<Clock::time_point> first_token;
        std::vector<TokenId> generated;
        model::StreamDetokenizer detokenizer;
        model::OutputParser parser;
        Usage usage;
        std::vector<std::string> notes;
        std::int64_t n_verdicts = 0;
        std::optional<bool> is_reasoning_open;  // when the thinking budget had been used
        Json logprobs = Json::array();          // score
        Json top = Json::array();               // score
        std::int64_t n_scored = 0;
        bool is_from_f16 = false;  // it goes on from a state that was kept in f16
        int memory_rung = 0;       // the highest of the memory ladder while it ran

        /// Something that the client is told at the end, once.
        void note(std::string_view text);
        bool has_note(std::string_view text) const;
        /// Feeds one accepted token and sends its event.
        void accept(const AcceptedToken& message, const model::Tokenizer& tokenizer);
        /// Sends the held-back text and the done event.
        void finish(const std::string& finish, const std::optional<Error>& error);

      private:
        void send_pieces(std::vector<model::OutputPiece> pieces, const AcceptedToken* message);
        DoneEvent done_event(const std::string& finish, const std::optional<Error>& error) const;
    };

    SettingsPtr settings;
    SeatId id;
    std::optional<Sequence> sequence;
    UpHandle<SchedulerActor> scheduler;  // who speaks to us last
    WiringPtr wiring;
};

SlotActor::behavior_type slot(SlotActor::stateful_pointer<SlotState> self, SeatId id, SettingsPtr settings);

}  // namespace pantheon::actors
