"""What a request gives when nothing else runs, and a check of the same request among others, event by event."""

WORDS = ("amber", "basalt", "cobalt", "dahlia", "ember", "fennel", "garnet", "hazel",
         "indigo", "jasper", "kelp", "larch", "mallow", "nectar", "onyx", "poplar")  # fmt: skip
STUCK_S = 300
N_TOP = 3  # a lone run asks for this many, the same request among others for as many or fewer


def requests_of(number, n, bias, rng, n_tokens):
    """n requests of client `number`, each with its codeword and a seed of its own: raw prompts and chats, short and
    long ones, with everything that changes a draw."""
    word = WORDS[number % len(WORDS)]
    requests = []
    for i in range(n):
        text = f"The codeword is {word}. Tell me a story about {word} number {i}."
        if rng.random() < 0.5:
            text = f"{word} and {rng.choice(WORDS)}, " * rng.randrange(20, 60) + text
        fields = {
            "seed": rng.getrandbits(64),
            "temperature": rng.choice((0.6, 1.0, 1.6)),
            "max_tokens": rng.randrange(n_tokens // 4, n_tokens + 1),
        }
        if rng.random() < 0.6:
            fields["messages"] = [{"role": "user", "content": text}]
            fields["thinking"] = rng.random() < 0.7
            if fields["thinking"] and rng.random() < 0.4:
                fields["thinking_budget"] = rng.randrange(0, 20)
        else:
            fields["prompt"] = text
        if rng.random() < 0.7:
            fields["logit_bias"] = bias
        if rng.random() < 0.4:
            fields |= {"repeat_penalty": 1.2, "presence_penalty": 0.5, "frequency_penalty": 0.3}
        if rng.random() < 0.3:
            fields |= {"top_k": 0, "top_p": 1.0, "min_p": 0.01}
        if rng.random() < 0.2:
            fields["stop"] = [rng.choice((" the", "a", ". ", word))]
        requests.append(fields)
    return requests


def brief(fields):
    """A request without most of its prompt, which --seed gives again."""
    text = fields["prompt"] if "prompt" in fields else fields["messages"][0]["content"]
    return {"prompt": "…" + text[-60:], **{key: value for key, value in fields.items() if key not in
            ("prompt", "messages", "logit_bias")}}  # fmt: skip


def run_alone(client, fields):
    """The reply to a request while nothing else runs and nothing is cached: (token events, done)."""
    events = client.rest(client.send("generate", **fields, logprobs=N_TOP, cache="off"), STUCK_S)
    if events[-1]["ev"] != "done" or events[-1]["finish"] not in ("stop", "length"):
        raise AssertionError(f"the lone run of {brief(fields)} ended with {events[-1]}")
    return [event for event in events if "token" in event], events[-1]


class Mixed(AssertionError):
    """A reply is not the one that the request has alone."""


class Stream:
    """One request among others, compared with its lone run as its events come.

    may_be_q4_0: the daemon keeps KV in another format than q4_0 and memory may get short. From rung 4 on it then keeps
    q4_0, which makes another reply and is said in the notes of `done`: only there is it known whether a difference
    counts. Such a stream must be whole in itself, and no more.
    """

    def __init__(self, fields, alone, n_top=None, may_be_q4_0=False):
        self.fields = fields
        self._may_be_q4_0 = may_be_q4_0
        self._fault = None  # until it is known whether it counts
        self._tokens, self._done = alone
        self._n_top = n_top
        self.n_events = self.n_events_with_token = self.n_tokens = 0
        self.done = None
        self._content = []

    @property
    def is_over(self):
        return self.done is not None

    def take(self, event):
        if self.is_over:
            raise Mixed(f"after the end of {brief(self.fields)}: {event}")
        self.n_events += 1
        handlers = {"accepted": self._accepted, "token": self._token, "done": self._end, "progress": lambda _: None}
        try:
            handlers[event["ev"]](event)
        except Mixed as fault:
            self._fault = self._fault or fault
        is_open = self._may_be_q4_0 and (not self.is_over or self.is_in_q4_0)
        if self._fault and not is_open:
            raise self._fault

    def _same(self, what, got, want):
        if got != want:
            raise Mixed(f"{what} of token {self.n_tokens}: {got!r}, alone {want!r}; of {brief(self.fields)}")

    def _accepted(self, event):
        self._same("seed", event["seed"], self.fields["seed"])
        self._same("max_tokens", event["max_tokens"], self.fields["max_tokens"])

    def _token(self, event):
        if event["kind"] == "content":
            self._content.append(event["text"])
        if "token" not in event:
            return
        self.n_events_with_token += 1
        if event["i"] != self.n_events_with_token - 1:
            raise AssertionError(f"token {event['i']} is event {self.n_events_with_token} of {brief(self.fields)}")
        if self.n_tokens == len(self._tokens):
            raise Mixed(f"{event} is one more than the {self.n_tokens} of {brief(self.fields)}")
        want = self._tokens[self.n_tokens]
        for key in ("i", "token", "text", "kind"):
            self._same(key, event[key], want[key])
        if self._n_top is not None:
            self._same("logprob", event.get("logprob"), want.get("logprob"))
            if self._n_top > 0:
                self._same("top", event.get("top"), want["top"][: self._n_top] if "top" in want else None)
        self.n_tokens += 1

    def _end(self, event):
        self.done = event
        if "".join(self._content) != event["text"]:
            raise AssertionError(f"the text of {brief(self.fields)} is not that of its events: {event}")
        if not self.is_whole:
            self._same("finish", event["finish"], "cancelled")
            return
        self._same("the number", self.n_tokens, len(self._tokens))
        for key in ("finish", "text", "reasoning", "tool_calls", "stop_match"):
            self._same(key, event.get(key), self._done.get(key))
        for key in ("prompt_tokens", "completion_tokens", "reasoning_tokens"):
            self._same(key, event["usage"][key], self._done["usage"][key])

    @property
    def is_in_q4_0(self):
        return "kv_q4_0" in self.done["notes"]

    @property
    def is_whole(self):
        return self.done["finish"] in ("stop", "length")


class ScoreJob:
    """A `score` among others."""

    def __init__(self, alone):
        self._alone = alone
        self.n_events = self.n_tokens = 0
        self.is_over = False

    def take(self, event):
        if self.is_over or event["ev"] == "error" and event["code"] != "cancelled":
            raise Mixed(f"a score job was answered with {event}")
        self.is_over = True
        if event["ev"] != "error" and any(event[key] != self._alone[key] for key in ("logprobs", "top")):
            raise Mixed(f"a score job gave {event}, alone {self._alone}")


def lone_runs(client, n_clients, n_each, rng, n_tokens):
    """[client][request]: (fields, lone run)."""
    bias = client.without_end()
    return [
        [(fields, run_alone(client, fields)) for fields in requests_of(number, n_each, bias, rng, n_tokens)]
        for number in range(n_clients)
    ]


def lone_scores(client, n, rng):
    """Of `score` jobs: (fields, lone run)."""
    scores = []
    for _ in range(n):
        fields = {"tokens": [rng.randrange(60, 400) for _ in range(rng.randrange(1, 300))], "top": 2}
        scores.append((fields, client.call("score", STUCK_S, **fields)))
    return scores


def finish(client, streams):
    """Takes all that comes for these streams of one connection, {id: Stream}, until each has ended."""
    for request, stream in streams.items():
        while not stream.is_over:
            stream.take(client.next_event(request, STUCK_S))
