#include "runtime/config/schema.h"

#include "runtime/config/key_checks.h"

namespace pantheon::config {
namespace {

template <auto Section, auto Member>
auto& at(Config& config, std::size_t) {
    return config.*Section.*Member;
}
template <auto Member>
auto& of_engine(Config& config, std::size_t engine) {
    return config.engines[engine].*Member;
}

/// "auto" that is left open: who uses the value decides.
template <auto Section, auto Member>
Status leave_open(Config& config, std::size_t, const HostDefaults&) {
    (config.*Section.*Member).reset();
    return {};
}

Status leave_split_open(Config& config, std::size_t engine, const HostDefaults&) {
    config.engines[engine].split.reset();
    return {};
}

constexpr Choice kKvFormats[] = {{"f32"}, {"f16"}, {"q8_0"}, {"q4_0"}};                  // model::KvFormat
constexpr Choice kOverflows[] = {{"stop"}, {"slide"}};                                   // model::KvOverflow
constexpr Choice kLogLevels[] = {{"debug"}, {"info"}, {"warning"}, {"error"}, {"off"}};  // LogLevel
static_assert(static_cast<int>(model::KvFormat::f32) == 0 && static_cast<int>(model::KvFormat::f16) == 1 &&
              static_cast<int>(model::KvFormat::q8_0) == 2 && static_cast<int>(model::KvFormat::q4_0) == 3);
static_assert(static_cast<int>(model::KvOverflow::stop) == 0 &&
              static_cast<int>(model::KvOverflow::slide) == 1);
static_assert(static_cast<int>(LogLevel::debug) == 0 && static_cast<int>(LogLevel::off) == 4);

template <auto Section, auto Member>
ChoiceField choice(std::span<const Choice> choices) {
    return {choices,
            [](Config& config, std::size_t index) {
                auto& value = config.*Section.*Member;
                value = static_cast<std::remove_reference_t<decltype(value)>>(index);
            },
            [](const Config& config) { return static_cast<std::size_t>(config.*Section.*Member); }};
}

constexpr double kMaxBytes = 9007199254740992.0;  // 2^53: exact in a double

const KeyRow kRows[] = {
    {.path = "model.path",
     .field = at<&Config::model, &ModelSection::path>,
     .fallback = "\"auto\"",
     .help = "the GGUF file to serve; any shard's path opens a split set; a relative path starts where the "
             "daemon was started",
     .auto_meaning = "the embedded model, share/pantheon/model.gguf below the install prefix",
     .apply_auto = auto_model_path,
     .check = check_model_path},

    {.path = "ipc.endpoint",
     .field = at<&Config::ipc, &IpcSection::endpoint>,
     .fallback = "\"auto\"",
     .help = "where clients connect",
     .auto_meaning = "ipc://$XDG_RUNTIME_DIR/pantheond.sock when a user starts it, else "
                     "ipc:///run/pantheon/pantheond.sock",
     .apply_auto = auto_endpoint,
     .check = check_endpoint},
    {.path = "ipc.max_unread",
     .field = at<&Config::ipc, &IpcSection::max_unread>,
     .fallback = "1024",
     .range = Range{1, 1000000},
     .unit = "events",
     .help = "events that may wait in the daemon for a client that does not read"},
    {.path = "ipc.stall_ms",
     .field = at<&Config::ipc, &IpcSection::stall>,
     .fallback = "30000",
     .range = Range{1, 3600000},
     .unit = "ms",
     .reload = Reload::live,
     .help = "how long a stream may stay unread before it is cancelled"},
    {.path = "ipc.admins",
     .field = at<&Config::ipc, &IpcSection::admins>,
     .fallback = "[]",
     .reload = Reload::live,
     .help = "users, by name or number, who may reload and drain, besides root and the daemon's own",
     .check = check_admins},

    {.path = "engine.name",
     .field = of_engine<&EngineSection::name>,
     .fallback = "\"main\"",
     .help = "what status and logs call the engine",
     .check = check_engine_name},
    {.path = "engine.dies",
     .field = of_engine<&EngineSection::dies>,
     .fallback = "[\"cpu\"]",
     .help =
         "the devices that run the model: \"cpu\" is the host; \"ref\" is the host with the exact and slow "
         "reference kernels",
     .check = check_dies},
    {.path = "engine.slots",
     .field = of_engine<&EngineSection::slots>,
     .fallback = "16",
     .range = Range{1, 16},
     .unit = "slots",
     .help = "sequences that may run at once"},
    {.path = "engine.split",
     .field = of_engine<&EngineSection::split>,
     .fallback = "\"auto\"",
     .range = Range{1, 1024},
     .unit = "layers",
     .help = "layers on the first of two dies",
     .auto_meaning = "half of them",
     .apply_auto = leave_split_open,
     .awaits = "an engine of two dies"},
    {.path = "engine.multiplex",
     .field = of_engine<&EngineSection::multiplex>,
     .fallback = "\"off\"",
     .help = "\"exclusive\": only one die can be reached at a time",
     .awaits = "an engine of two dies"},
    {.path = "placement.split",
     .field = of_engine<&EngineSection::split>,
     .fallback = "\"auto\"",
     .range = Range{1, 1024},
     .unit = "layers",
     .help = "the same as engine.split, for a configuration with one engine",
     .auto_meaning = "half of them",
     .apply_auto = leave_split_open,
     .awaits = "an engine of two dies",
     .alias_of = "engine.split"},

    {.path = "cpu.threads",
     .field = at<&Config::cpu, &CpuSection::threads>,
     .fallback = "\"auto\"",
     .range = Range{1, 1024},
     .unit = "threads",
     .help = "compute threads of a host die",
     .auto_meaning = "the physical cores that affinity and cgroup allow",
     .apply_auto = [](Config& config, std::size_t, const HostDefaults& host) -> Status {
         config.cpu.threads = host.n_cores;
         return {};
     }},
    {.path = "cpu.repack",
     .field = at<&Config::cpu, &CpuSection::repack>,
     .fallback = "true",
     .help = "keep a second copy of weights in a faster layout where it fits into memory, the routed experts "
             "last"},

    {.path = "kv.n_ctx",
     .field = at<&Config::kv, &KvSection::n_ctx>,
     .fallback = "4096",
     .range = Range{16, 262144},
     .unit = "tokens",
     .help = "KV rows a slot may hold: prompt and answer together"},
    {.path = "kv.format",
     .field = choice<&Config::kv, &KvSection::format>(kKvFormats),
     .fallback = "\"q4_0\"",
     .help = "how keys and values are stored; q8_0 and q4_0 are blocks of 32 values with a scale"},
    {.path = "kv.sink",
     .field = at<&Config::kv, &KvSection::sink>,
     .fallback = "16",
     .range = Range{0, 262144},
     .unit = "tokens",
     .help = "first rows that q4_0 keeps in f16 as well and sliding never hides"},
    {.path = "kv.window",
     .field = at<&Config::kv, &KvSection::window>,
     .fallback = "128",
     .range = Range{0, 262144},
     .unit = "tokens",
     .help = "last rows that q4_0 keeps in f16 as well"},
    {.path = "kv.overflow",
     .field = choice<&Config::kv, &KvSection::overflow>(kOverflows),
     .fallback = "\"stop\"",
     .help = "at n_ctx: end with finish \"length\", or go on with the first kv.sink and the last rows, n_ctx "
             "together",
     .check = check_overflow},
    {.path = "kv.pool_bytes",
     .field = at<&Config::kv, &KvSection::pool_bytes>,
     .fallback = "\"auto\"",
     .range = Range{1, kMaxBytes},
     .unit = "bytes",
     .help = "memory for keys and values of all slots together; the newest sequence of the lowest priority "
             "waits where more is needed; one of n_ctx tokens must fit",
     .auto_meaning =
         "enough for slots × n_ctx rows, half of the memory that was free when the daemon started "
         "at most",
     .apply_auto = leave_open<&Config::kv, &KvSection::pool_bytes>},

    {.path = "die.hang_ms",
     .field = at<&Config::die, &DieSection::hang>,
     .fallback = "10000",
     .range = Range{1, 3600000},
     .unit = "ms",
     .reload = Reload::live,
     .help = "a step that takes longer: the die is fenced, and the process restarts if it does not answer"},

    {.path = "scheduler.max_gap_ms",
     .field = at<&Config::scheduler, &SchedulerSection::max_gap>,
     .fallback = "200",
     .range = Range{1, 60000},
     .unit = "ms",
     .reload = Reload::live,
     .help = "longest pause that a running stream should see while another prompt is read"},
    {.path = "scheduler.queue",
     .field = at<&Config::scheduler, &SchedulerSection::queue>,
     .fallback = "64",
     .range = Range{1, 100000},
     .unit = "requests",
     .reload = Reload::live,
     .help = "requests that may wait; one more is answered resource_exhausted"},

    {.path = "sessions.every",
     .field = at<&Config::sessions, &SessionsSection::every>,
     .fallback = "1024",
     .range = Range{0, 262144},
     .unit = "tokens",
     .reload = Reload::live,
     .help = "distance of the state checkpoints that do not depend on messages; 0: none of these"},
    {.path = "sessions.bytes",
     .field = at<&Config::sessions, &SessionsSection::bytes>,
     .fallback = "\"auto\"",
     .range = Range{0, kMaxBytes},
     .unit = "bytes",
     .reload = Reload::live,
     .help = "memory for the prefix cache, everything included; 0: no cache",
     .auto_meaning = "a tenth of the memory that was free when the daemon started",
     .apply_auto = [](Config& config, std::size_t, const HostDefaults& host) -> Status {
         config.sessions.bytes = host.free_bytes / 10;
         return {};
     }},
    {.path = "sessions.f16",
     .field = at<&Config::sessions, &SessionsSection::f16>,
     .fallback = "false",
     .help =
         "keep the recurrent states of the prefix cache in f16, in memory and in files, so that each takes "
         "half the bytes; the cost: a reply that goes on from a cached state is no longer the same, bit for "
         "bit, as without a cache, and files written with the other setting are not used"},
    {.path = "sessions.dir",
     .field = at<&Config::sessions, &SessionsSection::dir>,
     .fallback = "\"auto\"",
     .help = "where sessions are saved and the prefix cache spills to; empty: nowhere",
     .auto_meaning = "$STATE_DIRECTORY, which systemd sets; else nowhere",
     .apply_auto = [](Config& config, std::size_t, const HostDefaults& host) -> Status {
         config.sessions.dir = host.state_directory;
         return {};
     },
     .check = check_sessions_dir},
    {.path = "sessions.disk_bytes",
     .field = at<&Config::sessions, &SessionsSection::disk_bytes>,
     .fallback = "\"auto\"",
     .range = Range{0, kMaxBytes},
     .unit = "bytes",
     .reload = Reload::live,
     .help = "space in sessions.dir for what the prefix cache has no memory for, and for what it held when "
             "the daemon was stopped, besides saved sessions; 0: none",
     .auto_meaning = "a tenth of what was free there when the daemon started",
     .apply_auto = auto_disk_bytes},

    {.path = "memory.ladder",
     .field = at<&Config::memory, &MemorySection::ladder>,
     .fallback = "true",
     .reload = Reload::live,
     .help = "give way step by step when the host or a control group runs short of memory"},
    {.path = "memory.readings_dir",
     .field = at<&Config::memory, &MemorySection::readings_dir>,
     .fallback = "\"\"",
     .help = "a folder that stands for / when proc/meminfo, proc/pressure/memory, proc/self/cgroup and "
             "sys/fs/cgroup are read, to try the ladder out; empty: the host's own",
     .check = check_readings_dir},
    {.path = "memory.tight_free_bytes",
     .field = at<&Config::memory, &MemorySection::tight_free_bytes>,
     .fallback = "\"auto\"",
     .range = Range{0, kMaxBytes},
     .unit = "bytes",
     .reload = Reload::live,
     .help = "memory is TIGHT when less than this is free of the host's or of a control group's limit",
     .auto_meaning = "a tenth of the limit, 2 GiB at most",
     .apply_auto = leave_open<&Config::memory, &MemorySection::tight_free_bytes>},
    {.path = "memory.critical_free_bytes",
     .field = at<&Config::memory, &MemorySection::critical_free_bytes>,
     .fallback = "\"auto\"",
     .range = Range{0, kMaxBytes},
     .unit = "bytes",
     .reload = Reload::live,
     .help = "the same for CRITICAL",
     .auto_meaning = "a twenty-fifth of the limit, 512 MiB at most",
     .apply_auto = leave_open<&Config::memory, &MemorySection::critical_free_bytes>},
    {.path = "memory.tight_pressure",
     .field = at<&Config::memory, &MemorySection::tight_pressure>,
     .fallback = "20",
     .range = Range{1, 100},
     .unit = "percent",
     .reload = Reload::live,
     .help = "memory is TIGHT when some tasks wait for it this much of the last ten seconds"},
    {.path = "memory.critical_pressure",
     .field = at<&Config::memory, &MemorySection::critical_pressure>,
     .fallback = "20",
     .range = Range{1, 100},
     .unit = "percent",
     .reload = Reload::live,
     .help = "memory is CRITICAL when all tasks wait for it this much of the last ten seconds"},
    {.path = "memory.dwell_ms",
     .field = at<&Config::memory, &MemorySection::dwell>,
     .fallback = "10000",
     .range = Range{0, 3600000},
     .unit = "ms",
     .reload = Reload::live,
     .help = "how long readings must be better before the level falls by one"},
    {.path = "memory.step_ms",
     .field = at<&Config::memory, &MemorySection::step>,
     .fallback = "2000",
     .range = Range{0, 3600000},
     .unit = "ms",
     .reload = Reload::live,
     .help = "time between two rungs, up while memory stays TIGHT and down afterwards"},
    {.path = "memory.slots_tight",
     .field = at<&Config::memory, &MemorySection::slots_tight>,
     .fallback = "8",
     .range = Range{1, 16},
     .unit = "slots",
     .reload = Reload::live,
     .help = "sequences that may run at once from rung 2 on"},
    {.path = "memory.slots_critical",
     .field = at<&Config::memory, &MemorySection::slots_critical>,
     .fallback = "1",
     .range = Range{1, 16},
     .unit = "slots",
     .reload = Reload::live,
     .help = "the same while memory is CRITICAL"},
    {.path = "memory.cache_keep",
     .field = at<&Config::memory, &MemorySection::cache_keep>,
     .fallback = "50",
     .range = Range{0, 100},
     .unit = "percent",
     .reload = Reload::live,
     .help = "how much of the prefix cache rung 1 leaves; CRITICAL leaves named sessions only"},

    {.path = "limits.max_tokens",
     .field = at<&Config::limits, &LimitsSection::max_tokens>,
     .fallback = "4096",
     .range = Range{1, 262144},
     .unit = "tokens",
     .reload = Reload::live,
     .help = "the longest answer, and the length for a request that names none"},

    {.path = "sampling.temperature",
     .field = at<&Config::sampling, &SamplingSection::temperature>,
     .fallback = "\"auto\"",
     .range = Range{0, 100},
     .reload = Reload::live,
     .help = "divides the logits; 0 takes the most likely token",
     .auto_meaning = "the model file's general.sampling.temp, else 1.0",
     .apply_auto = leave_open<&Config::sampling, &SamplingSection::temperature>},
    {.path = "sampling.top_k",
     .field = at<&Config::sampling, &SamplingSection::top_k>,
     .fallback = "\"auto\"",
     .range = Range{0, 2147483647},
     .unit = "tokens",
     .reload = Reload::live,
     .help = "only the k most likely tokens; 0 is off",
     .auto_meaning = "the model file's general.sampling.top_k, else 20",
     .apply_auto = leave_open<&Config::sampling, &SamplingSection::top_k>},
    {.path = "sampling.top_p",
     .field = at<&Config::sampling, &SamplingSection::top_p>,
     .fallback = "\"auto\"",
     .range = Range{0, 1},
     .reload = Reload::live,
     .help = "only the most likely tokens that together have this probability; 1 is off",
     .auto_meaning = "the model file's general.sampling.top_p, else 0.95",
     .apply_auto = leave_open<&Config::sampling, &SamplingSection::top_p>},
    {.path = "sampling.min_p",
     .field = at<&Config::sampling, &SamplingSection::min_p>,
     .fallback = "\"auto\"",
     .range = Range{0, 1},
     .reload = Reload::live,
     .help = "only tokens at least this likely relative to the most likely one; 0 is off",
     .auto_meaning = "the model file's general.sampling.min_p, else 0",
     .apply_auto = leave_open<&Config::sampling, &SamplingSection::min_p>},
    {.path = "sampling.repeat_penalty",
     .field = at<&Config::sampling, &SamplingSection::repeat_penalty>,
     .fallback = "\"auto\"",
     .range = Range{0.01, 100},
     .reload = Reload::live,
     .help = "divides positive and multiplies negative logits of the last 64 tokens; 1 is off",
     .auto_meaning = "1",
     .apply_auto = leave_open<&Config::sampling, &SamplingSection::repeat_penalty>},
    {.path = "sampling.presence_penalty",
     .field = at<&Config::sampling, &SamplingSection::presence_penalty>,
     .fallback = "\"auto\"",
     .range = Range{-100, 100},
     .reload = Reload::live,
     .help = "subtracted from the logits of tokens among the last 64; 0 is off",
     .auto_meaning = "0",
     .apply_auto = leave_open<&Config::sampling, &SamplingSection::presence_penalty>},
    {.path = "sampling.frequency_penalty",
     .field = at<&Config::sampling, &SamplingSection::frequency_penalty>,
     .fallback = "\"auto\"",
     .range = Range{-100, 100},
     .reload = Reload::live,
     .help = "subtracted once for each time a token stands among the last 64; 0 is off",
     .auto_meaning = "0",
     .apply_auto = leave_open<&Config::sampling, &SamplingSection::frequency_penalty>},

    {.path = "metrics.listen",
     .field = at<&Config::metrics, &MetricsSection::listen>,
     .fallback = "\"off\"",
     .help = "address of the Prometheus page",
     .awaits = "the metrics page"},

    {.path = "daemon.drain_s",
     .field = at<&Config::daemon, &DaemonSection::drain>,
     .fallback = "30",
     .range = Range{0, 86400},
     .unit = "s",
     .reload = Reload::live,
     .help = "how long running requests may take to finish when the daemon is told to stop"},
    {.path = "daemon.watch",
     .field = at<&Config::daemon, &DaemonSection::watch>,
     .fallback = "false",
     .reload = Reload::live,
     .help = "reload when the configuration file changes",
     .awaits = "a watch on the file"},

    {.path = "log.level",
     .field = choice<&Config::log, &LogSection::level>(kLogLevels),
     .fallback = "\"info\"",
     .reload = Reload::live,
     .help = "the least important lines that are written"},
};

}  // namespace

std::span<const KeyRow> schema() {
    return kRows;
}

const KeyRow* find_row(std::string_view path) {
    for (const KeyRow& row : kRows)
        if (row.path == path) return &row;
    return nullptr;
}

}  // namespace pantheon::config
