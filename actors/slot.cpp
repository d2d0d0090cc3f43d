#include "actors/slot.h"

#include <algorithm>

namespace pantheon::actors {
namespace {

constexpr std::string_view kParkedNote = "parked";
constexpr std::string_view kQ4_0Note = "kv_q4_0";
constexpr const char* kFromF16Note = "cached_f16";

std::string_view kind_name(model::OutputKind kind) {
    switch (kind) {
        case model::OutputKind::reasoning:
            return "reasoning";
        case model::OutputKind::tool_call:
            return "tool_call";
        case model::OutputKind::content:
            break;
    }
    return "content";
}

double milliseconds_between(Clock::time_point from, Clock::time_point to) {
    return std::chrono::duration<double, std::milli>(to - from).count();
}

std::vector<TokenLogprobEntry> to_entries(const std::vector<model::TokenLogprob>& top) {
    std::vector<TokenLogprobEntry> entries;
    for (const model::TokenLogprob& t : top) entries.push_back({t.token, t.logprob});
    return entries;
}

}  // namespace

bool needs_verdict(const Prepared& prepared) {
    return !prepared.parser.stop.empty();
}

SlotState::Sequence::Sequence(JobPtr job_, Clock::time_point bound_)
    : job(std::move(job_)), bound(bound_), parser(job->prepared->parser) {
    usage.prompt_tokens = static_cast<std::int64_t>(job->prepared->prompt.size());
    if (job->prepared->kind == Prepared::Kind::score) {
        logprobs.push_back(nullptr);  // nothing comes before the first token
        top.push_back(Json::array());
    }
}

bool SlotState::Sequence::has_note(std::string_view text) const {
    return std::find(notes.begin(), notes.end(), text) != notes.end();
}

void SlotState::Sequence::note(std::string_view text) {
    if (!has_note(text)) notes.emplace_back(text);
}

void SlotState::Sequence::accept(const AcceptedToken& message, const model::Tokenizer& tokenizer) {
    if (!first_token) first_token = Clock::now();
    generated.push_back(message.token);
    ++usage.completion_tokens;
    if (parser.in_reasoning()) ++usage.reasoning_tokens;
    if (message.is_end_of_generation) return;
    const std::string text = detokenizer.push(tokenizer.piece(message.token, /*special=*/false));
    send_pieces(parser.push(text), &message);
}

void SlotState::Sequence::send_pieces(std::vector<model::OutputPiece> pieces, const AcceptedToken* message) {
    if (!job->prepared->stream) return;
    // One event carries the token; what the same token completes in another kind follows without one.
    if (pieces.empty() && message)
        pieces.push_back(
            {parser.in_reasoning() ? model::OutputKind::reasoning : model::OutputKind::content, ""});
    bool is_first = message != nullptr;
    for (model::OutputPiece& piece : pieces) {
        TokenEvent event;
        event.i = std::max<std::int64_t>(static_cast<std::int64_t>(generated.size()) - 1, 0);
        event.text = std::move(piece.text);
        event.kind = kind_name(piece.kind);
        if (is_first) {
            event.token = message->token;
            if (job->prepared->n_top >= 0 && !message->is_forced) {
                event.logprob = message->logprob;
                if (job->prepared->n_top > 0) event.top = to_entries(message->top);
            }
        }
        is_first = false;
        job->reply.send(std::move(event));
    }
}

DoneEvent SlotState::Sequence::done_event(const std::string& finish,
                                          const std::optional<Error>& error) const {
    const Clock::time_point now = Clock::now();
    DoneEvent done;
    done.finish = finish;
    done.error = error;
    done.text = parser.content();
    done.reasoning = parser.reasoning();
    for (const model::ToolCall& call : parser.tool_calls()) {
        Json arguments = Json::parse(call.arguments_json, nullptr, /*allow_exceptions=*/false);
        done.tool_calls.push_back({call.name,
                                   arguments.is_discarded() ? Json::object() : std::move(arguments),
                                   call.is_incomplete});
    }
    done.stop_match = parser.stop_match();
    done.usage = usage;
    done.notes = notes;
    if (is_from_f16) done.notes.emplace_back(kFromF16Note);
    if (memory_rung > 0) done.notes.push_back("memory_rung_" + std::to_string(memory_rung));
    done.timings.queue_ms = milliseconds_between(job->received, bound);
    done.timings.prefill_ms = milliseconds_between(bound, first_token.value_or(now));
    if (first_token) {
        done.timings.first_token_ms = milliseconds_between(job->received, *first_token);
        done.timings.decode_ms = milliseconds_between(*first_token, now);
    }
    return done;
}

void SlotState::Sequence::finish(const std::string& finish, const std::optional<Error>& error) {
    if (job->prepared->kind == Prepared::Kind::score) {
        if (error || finish != "stop") {
            job->reply.send(
                ErrorEvent{error.value_or(Error(Code::cancelled, "the request was cancelled")), {}});
            return;
        }
        Json result = Json::object();
        result["logprobs"] = std::move(logprobs);
        if (job->prepared->n_top > 0) result["top"] = std::move(top);
        job->reply.send(ResultEvent{std::move(result)});
        return;
    }
    if (!parser.stop_match()) {
        std::vector<model::OutputPiece> rest = parser.push(detokenizer.flush());
        for (model::OutputPiece& piece : parser.finish()) rest.push_back(std::move(piece));
        send_pieces(std::move(rest), nullptr);
    }
    job->reply.send(done_event(finish, error));
}

SlotActor::behavior_type slot(SlotActor::stateful_pointer<SlotState> self, SeatId id, SettingsPtr settings) {
    install_handlers(self);
    self->state.settings = std::move(settings);
    self->state.id = id;

    // Ends the sequence and reports the slot free, in this order and in one handler: whoever sees the slot
    // die before it was reported free knows that the client has not been answered.
    const auto finish = [self](const std::string& reason, const std::optional<Error>& error) {
        SlotState& state = self->state;
        const TicketId ticket = state.sequence->job->ticket;
        // Before the client hears of it: it may use the id again at once.
        if (state.wiring) self->send(state.wiring->gateway, TicketFinished{ticket, reason});
        state.sequence->finish(reason, error);
        state.sequence.reset();
        if (auto up = state.scheduler.lock()) self->send(up, SlotFreed{state.id, ticket});
    };
    const auto is_current = [self](TicketId ticket) {
        return self->state.sequence && self->state.sequence->job->ticket == ticket;
    };

    return {
        [self](const BeginSequence& message) {
            self->state.scheduler = UpHandle<SchedulerActor>(self->current_sender());
            self->state.sequence.emplace(message.job, Clock::now());
        },
        [self, is_current](const PromptCached& message) {
            if (!is_current(message.ticket)) return;
            SlotState& state = self->state;
            state.sequence->usage.cached_tokens = message.n;
            state.sequence->is_from_f16 =
                message.n > 0 && state.settings->engine.image_format == model::ImageFormat::f16;
        },
        [self, is_current](const SequenceParked& message) {
            if (!is_current(message.ticket)) return;
            self->state.sequence->note(kParkedNote);
        },
        [self, is_current](const SequenceInQ4_0& message) {
            if (is_current(message.ticket)) self->state.sequence->note(kQ4_0Note);
        },
        [self, finish, is_current](const AcceptedToken& message) {
            if (!is_current(message.ticket)) return;
            SlotState& state = self->state;
            SlotState::Sequence& sequence = *state.sequence;
            sequence.accept(message, *state.settings->text.tokenizer);
            if (sequence.parser.stop_match() || message.is_end_of_generation) {
                finish("stop", std::nullopt);
            } else if (message.is_last) {
                finish("length", std::nullopt);
            } else {
                const Prepared& prepared = *sequence.job->prepared;
                SlotVerdict verdict{state.id, message.ticket, needs_verdict(prepared) ? 1 : 0, {}};
                if (prepared.thinking_budget == static_cast<std::int64_t>(sequence.generated.size())) {
                    sequence.is_reasoning_open = sequence.parser.in_reasoning();
                    verdict.is_reasoning_open = sequence.is_reasoning_open;
                }
                sequence.n_verdicts += verdict.n;
                if (verdict.n == 0 && !verdict.is_reasoning_open) return;
                if (auto up = state.scheduler.lock()) self->send(up, verdict);
            }
        },
        [self, finish, is_current](const ScoredTokens& message) {
            if (!is_current(message.ticket)) return;
            SlotState::Sequence& sequence = *self->state.sequence;
            for (std::size_t i = 0; i < message.logprobs.size(); ++i) {
                sequence.logprobs.push_back(message.logprobs[i]);
                Json entries = Json::array();
                for (const model::TokenLogprob& t : message.top[i])
                    entries.push_back(Json::array({t.token, t.logprob}));
                sequence.top.push_back(std::move(entries));
                ++sequence.n_scored;
            }
            if (message.is_last) finish("stop", std::nullopt);
        },
        [finish, is_current](const EndSequence& message) {
            if (is_current(message.ticket)) finish(message.finish, message.error);
        },
        [self](const ReportSlot&) {
            SlotState& state = self->state;
            state.scheduler = UpHandle<SchedulerActor>(self->current_sender());
            SlotReport report;
            report.seat = state.id;
            if (state.sequence) {
                report.job = state.sequence->job;
                report.generated = state.sequence->generated;
                report.n_scored = state.sequence->n_scored;
                report.n_verdicts = state.sequence->n_verdicts;
                report.is_reasoning_open = state.sequence->is_reasoning_open;
                report.is_q4_0 = state.sequence->has_note(kQ4_0Note);
            }
            if (auto up = state.scheduler.lock()) self->send(up, std::move(report));
        },
        [self, is_current](const MemoryRung& message) {
            if (!is_current(message.ticket)) return;
            int& rung = self->state.sequence->memory_rung;
            rung = std::max(rung, message.rung);
        },
        [self](const WiringPtr& wiring) { self->state.wiring = wiring; },
    };
}

}  // namespace pantheon::actors
