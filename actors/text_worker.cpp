#include "actors/text_worker.h"

#include "actors/prepare.h"

namespace pantheon::actors {

void TextWorkerState::refuse(const Job& job, const Error& error) {
    self->send(wiring->gateway,
               TicketFinished{job.ticket, "refused"});  // first: the id is free once the client reads this
    job.reply.send(ErrorEvent{error, {}});
}

void TextWorkerState::answer(const Job& job, const Result<Json>& result) {
    if (!result) return refuse(job, result.error());
    self->send(wiring->gateway, TicketFinished{job.ticket, {}});
    job.reply.send(ResultEvent{*result});
}

void TextWorkerState::prepare(const JobPtr& job) {
    const TextModel& text = settings->text;
    const Request& request = *job->request;
    if (const auto* tokenize = std::get_if<TokenizeRequest>(&request))
        return answer(*job, run_tokenize(*tokenize, text));
    if (const auto* detokenize = std::get_if<DetokenizeRequest>(&request))
        return answer(*job, run_detokenize(*detokenize, text));
    if (const auto* render = std::get_if<TemplateRequest>(&request))
        return answer(*job, run_template(*render, text));

    Result<Prepared> prepared = Error(Code::internal, "not a request for the text worker");
    if (const auto* generate = std::get_if<GenerateRequest>(&request)) {
        prepared = prepare_generate(*generate, text, settings->limits, job->received);
    } else if (const auto* score = std::get_if<ScoreRequest>(&request)) {
        prepared = prepare_score(*score, text, settings->limits);
    }
    if (!prepared) return refuse(*job, prepared.error());

    auto ready = std::make_shared<Job>(*job);
    ready->request.reset();
    ready->in_flight.reset();
    ready->prepared = std::make_shared<const Prepared>(*std::move(prepared));
    self->send(wiring->scheduler, JobPtr(std::move(ready)));
}

TextActor::behavior_type text_worker(TextActor::stateful_pointer<TextWorkerState> self,
                                     SettingsPtr settings) {
    install_handlers(self);
    self->state.self = self;
    self->state.settings = std::move(settings);
    const auto forward = [self](const auto& message) { self->send(self->state.wiring->scheduler, message); };
    return {
        [self](const JobPtr& job) { self->state.prepare(job); },
        [forward](const CancelTicket& message) { forward(message); },
        [forward](const AddCredit& message) { forward(message); },
        [forward](const PauseTicket& message) { forward(message); },
        [self](const WiringPtr& wiring) { self->state.wiring = wiring; },
        [self](const SettingsPtr& next) { self->state.settings = next; },
    };
}

}  // namespace pantheon::actors
