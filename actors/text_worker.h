// The actor that turns requests into tokens, so that no long prompt holds up the gateway or the scheduler.
#pragma once

#include "actors/messages.h"

namespace pantheon::actors {

struct TextWorkerState {
    static inline const char* name = "text";
    TextActor::pointer self = nullptr;
    SettingsPtr settings;
    WiringPtr wiring;

    void prepare(const JobPtr& job);

  private:
    void refuse(const Job& job, const Error& error);
    void answer(const Job& job, const Result<Json>& result);
};

TextActor::behavior_type text_worker(TextActor::stateful_pointer<TextWorkerState> self, SettingsPtr settings);

}  // namespace pantheon::actors
