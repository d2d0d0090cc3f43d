"""A grammar of questions about the facts: what is asked x how it is put x what stands around it x how it is typed.

Frames are shared between all kinds of facts, so that no turn of phrase belongs to one of them and a question is told
apart by what it is about. The number of different wordings decides how well unseen ones are understood.
"""

import re

from facts import expand

# What is asked of a spelt-out subject {s}, whatever kind of thing it is.
IDENTITY = """
(what is|what's|whats|what are) {s}( for| good for| about| used for| there for|)?
what (does|do|would|will|can) {s} (do|mean|stand for|change|control|cause|say)?
(explain|describe|define|clarify) {s}( to me| briefly| in one sentence| in a few words| in short|).
(tell me|say) (about|what you know about|something about|more about|a bit about) {s}.
tell me what {s} (is|does|means|is for).
(meaning|purpose|use|role|explanation|definition|function|description) of {s}
{s}?
{s}: what is (it|that|this)?
{s} (meaning|explanation|help|purpose|info|description)
what is the (meaning|purpose|use|role|point|idea|function|effect|job) of {s}?
(why|when) (would|do|should|might|could) (I|one|somebody|you|people) (use|need|set|want|see|care about|meet) {s}?
I (saw|found|read|came across|noticed|see|stumbled over|met) {s}( in the (log|manual|docs|config|source|output|notes)|), what is (it|that)?
there is {s}( in the (log|manual|docs|config|source|output|notes)|). what (does it do|is it|does that mean|is that for)?
I (do not|don't|never) (understand|understood|know|get|got) {s}.
what (should|must|can) (I|one) know about {s}?
(can|could|would) you (explain|describe|tell me about|say a word about) {s}?
help me (understand|with|make sense of) {s}.
how does {s} work?
what happens (with|when I use|if I set|if I change|when I see|on|at) {s}?
(do you know|can you tell me|could you tell me|I wonder|I would like to know|please tell me|I forgot|remind me|I ask myself|nobody told me|I am not sure) what {s} (is|does|means|is for|is good for)
(is|was) {s} (important|useful|needed)? what (is|does) it( do|)?
(what|anything) about {s}?
(my colleague|somebody|the manual|the log|a friend) (mentions|mentioned|talks about|speaks of) {s}. what is that?
what exactly is {s}?
I am (reading|learning) about {s}. (explain|what is it|tell me more).
give me (a short explanation|the gist|a summary|a definition) of {s}.
what (does|do|can|will|would|must|should) {s} (accept|print|limit|promise|say|report|answer|return|contain|count|show|write|hold|own|keep|decide|need|take|bring|allow|list|check|measure|set|name|apply|give|tell|start|stop|ask for|stand for|expect|offer|use|look like|depend on|refer to|describe|serve|help with)?
(when|where|how|how often|how fast|how long|how soon|why) (does|do|is|are|can|will|would) {s} (happen|come|apply|occur|appear|work|answer|end|start|used|needed|sent|set|useful|stored|found|help|shown|written|read|made|given|defined|changed)?
who (owns|uses|needs|sees|sends|reads|may use|can use|decides about|is affected by|gets|makes|writes|has) {s}?
which (values|fields|numbers|forms|parts|words|kinds|choices|limits) (can|does|may|has|are in|belong to) {s} (take|have|allow|use|)?
how (many|much|big|large|long|far|fast|high) (is|are|does|can be|may be) {s}( be| go| take| have|)?
what (is|was) meant (by|with) {s}?
(can|may|should|must|could) I (use|set|change|trust|ignore|rely on|see|read|send|give|forget|need) {s}?
{s}, what (does it do|is it|is it for|does it mean|happens then|is that about)?
(what is|what about) {s} (in|for|of|on|with) (a request|the daemon|the config|a client|the protocol|the log|the status|the model|a stream|a reply|the design|practice|short)?
what does {s} have to do with {f}?
(is it|is that|is this) {s} that {f}?
{s} and {f}?
{s} - {f}?
""".strip().splitlines()

# The other way round: what {d}, or a piece {f} of the answer, asked of a {k} (the kind's name).
REVERSE = """
(which|what) {k} {d}?
what {d}?
(is there|do you know|do we have|I need|I am looking for|I search|name|give me|tell me) (a|the) {k} that {d}.
(which|what) (is|was) the {k} that {d}?
the {k} that {d}
there (is|must be) a {k} that {d}. which (one|is it)?
""".strip().splitlines()
ECHO = """
(which|what) {k} (has to do with|is about|is for|deals with|mentions|stands for|means): {f}?
{f}?
{f}
{f}: (which|what) {k}?
(something|anything|a {k}) (about|with|like|for) {f}?
(what|how) is it called: {f}?
(what|which) {k} (is it|applies|matters|fits) (when|if|for|with) {f}?
(the manual|somebody|the log) says: {f}. (which|what) {k} is (that|meant)?
(tell me|I ask|I want to know|explain) about {f}.
how about {f}?
(when|how|why|where) {f}?
""".strip().splitlines()

# The default of a key: {x} is its spelling or what else it is called.
DEFAULT = """
(what is|what's|whats) the (default|default value|default setting|standard value|standard setting|preset|initial value) (of|for) {x}?
(default|default value|default setting|standard value|initial value|preset) (of|for) {x}
{x} (default|by default|default value|when unset|if not set|out of the box)
(which|what) (value|setting|number) (has|is used for|is preset for|applies to|is taken for) {x} (by default|if nothing is set|unless changed|initially)?
what is {x} (by default|if I do nothing|without any config|out of the box|when not set|unless I change it|when it is not in the file|at first|normally|on a fresh install)?
how (big|large|high|long|much|many) is {x} (by default|out of the box|normally|without changes)?
what (happens|applies|is used|do I get|is taken|does it use) (if|when) I (leave out|don't set|do not set|omit|forget|never set|leave alone|do not mention) {x}?
what does {x} default to?
what do I get for {x} (without|before) (any |)(changes|config|settings)?
is there a default (for|of) {x}?
how is {x} (preset|set initially|set from the start|configured at first|set by default)?
(do you know|can you tell me|could you tell me|I wonder|I would like to know|please tell me|I forgot|remind me|I am not sure|look up) (what the default of {x} is|what {x} is by default|which default {x} has|the default of {x})
(with|under) default settings, what is {x}?
I (did not|didn't|have not) (set|change|touch|configure) {x}. what (is it|applies|is used|do I have) (now|then|)?
if {x} is (not set|missing|absent|left out|not given), what (then|is used|applies|value is taken)?
which default does {x} have?
what value does {x} (have|start with|take) (by default|when I do not set it|at the start)?
""".strip().splitlines()

# How a key's matter {n} is changed.
SETTING = """
(which|what) (key|setting|option|config key|parameter|knob|entry|line) (sets|controls|governs|determines|changes|is for|decides|is responsible for|affects|stands for|defines) {n}?
(where|how) (do|can|could|would|should|must) (I|one|we|you) (set|change|configure|adjust|control|tune|define|alter|modify|specify) {n}?
I (want|need|would like|have|wish) to (change|set|adjust|configure|tune|modify|alter) {n}.
(name|give me|tell me|show me) the (key|setting|parameter|config key) (for|of|behind) {n}.
{n}: which (key|setting)?
(key|setting|config key|parameter) for {n}
is there a (key|setting|parameter|config key|knob) for {n}?
(where|how) is {n} (set|configured|controlled|changed|decided|determined|defined)?
(can|could|may) I (change|set|configure|adjust|control) {n}?
(do you know|can you tell me|could you tell me|I wonder|I would like to know|please tell me|I forgot|remind me) (which key sets {n}|how to change {n}|where {n} is set|how {n} is configured)
what do I (edit|write|put in the config|set|change) for {n}?
what (is|about) the (key|setting) (of|for) {n}?
I am looking for the (key|setting|parameter) (of|for|that sets) {n}.
{n}
what is {n}?
(tell me|say something) about {n}.
(changing|setting|configuring|adjusting) {n}
to (change|set|configure) {n}, what do I (edit|do|write|need)?
""".strip().splitlines()

# A matter {n} that is no key's.
NOUN = """
(what is|what's|whats) {n}( called|)?
(which|what) (one|thing|word|part|term|name) is {n}?
(tell me|say something|what do you know) about {n}.
{n}?
(explain|describe|name) {n}.
what about {n}?
(how|what) (do|would) you call {n}?
(do you know|can you tell me|could you tell me|I wonder|I would like to know|please tell me|I forgot|remind me) what {n} is
is there (a word|something|a name|a thing) for {n}?
I am looking for {n}.
what (do I|should I|must I) know about {n}?
(which|what) (is|was) {n} again?
""".strip().splitlines()

# Something that somebody wants to do: {g}.
GOAL = """
how (do|can|could|would|should|may|might|must) (I|one|we|you|somebody|people) {g}?
how to {g}?
(what|which command|which option|which key|which setting|which flag) (do I (need|use|want)|should I use|is used|is there|serves|do you recommend|is the right one) to {g}?
(what|which command|which option|which key|which setting|which flag) (lets me|makes me|helps me) {g}?
I (want|need|wish|would like|have|am trying|intend|plan|try|am supposed|am asked|hope) to {g}.
I (want|need|would like|have|am trying|intend|plan) to {g}(.|,) (how|what now|what do I do|what do I type|what do I run|how is that done|which command is it|what is needed)?
is (it possible|there a way|there an option|there a command|there a setting) to {g}?
(can|could|may) (I|one|we|you) {g}?
(my goal|the goal|the aim|the task|my task|the plan|my wish) is to {g}.
(what|which) (command|call|option) (do I type|should I run|should I call|must I run|do I run) to {g}?
{g}, how?
{g}
{g}(.| -|:) (what is the command|how is that done|which one is it|what do I use)?
please {g}
(help me|tell me how to|show me how to|explain how to|I forgot how to|remind me how to|teach me to|I do not know how to|I have no idea how to|I wonder how to|do you know how to|can you tell me how to) {g}
what is the (best|right|proper|easiest|quickest|usual) (way|command|method|option) to {g}?
what (must|should|do|can) I (do|type|run|set|write|use|enter|change) (to|in order to) {g}?
what if I want to {g}?
does (pantheond|the daemon|it|pantheon) (let|help) me {g}?
(any|is there any) (way|chance|command|option|trick) to {g}?
(we|you|people) (have|want|need) to {g}, what now?
(someone|my boss|a colleague|a user) (asked me|wants me|told me) to {g}.
suppose I (want|need|have) to {g}, what do I (use|do|run|set)?
(in a script|on my server|for a test|at work|for a demo|on this machine|today) I (need|want|have) to {g}
where do I {g}?
to {g}, what (do I|should I|must I) (use|do|run|set|type)?
command to {g}
way to {g}
""".strip().splitlines()

# Something that happened: {w}. Of error codes.
HAPPENED = """
what (does the daemon answer|do I get|error comes|code comes|is returned|is the code|will I see|happens|does it say) (when|if|because|in case) {w}?
{w}: which (code|error)?
which (error|code|error code) (means|says|tells me|shows|signals|stands for it) that {w}?
{w}(,|.) (what|which) (error|code|answer) (is|would be|comes|do I get) (then|)?
(which|what) (error|code|error code) (comes|appears|is sent|is used|is given|do I get|should I expect) (when|if|because) {w}?
how (does|will|can) the daemon (tell me|say|report|let me know) that {w}?
(if|when) {w}, what do I (get|see|receive)?
(if|when) {w}, (which|what) (code|error|error code) is (it|that|sent|returned|given)?
(code|error|error code) (when|if) {w}
(code|error|error code) for: {w}
I think {w}. (what|which) (code|error) (is|fits) that?
what should I do (when|if) {w}?
""".strip().splitlines()

# An error code, exit code or finish reason {s} that somebody met.
MET = """
I (got|get|received|see|keep getting|keep seeing|was given|have) {s}( from the daemon| all the time| again| today| now|).
(my request|it|the call|a script|my program|my client|everything|the command) (failed|fails|ended|ends|stopped|stops|answers|returns) with {s}.
what (should|can|do|must) I do (about|with|on|against|after) {s}?
(the daemon|it|pantheond|the server|the client) (answered|says|said|returned|replied|gives me|shows|sent) {s}, why?
(the daemon|it|pantheond|the server|the client) (answered|says|said|returned|replied|gives me|shows|sent) {s}.
(why|when) (do I get|does the daemon answer|did I get|does one get|is there) {s}?
{s}, what (now|to do|went wrong|is wrong)?
how (do|should) I (react to|deal with|handle|treat|get rid of) {s}?
what (causes|is the reason for|leads to|brings) {s}?
what (is wrong|went wrong) (when|if) (I get|there is) {s}?
""".strip().splitlines()

LEAD = """
(hi|hello|hey|good morning|good evening|dear model|excuse me|sorry|sorry to ask|quick question|one question|a question|question|please|please help|help|ok|okay|well|so|now|by the way|also|hm|um|next|another question|one more thing|listen|tell me)
(I am new here|I am a beginner|I just installed it|I use pantheond|I run a server|I have a problem|short question|about pantheond|about the daemon|concerning pantheond|in pantheond|for pantheond|with pantheon|using pantheon)
""".strip().splitlines()
TAIL = """
(thanks|thank you|please|thanks a lot|many thanks|thx|cheers)
(please be short|be brief|keep it short|in short please|one sentence please|I am in a hurry|it is urgent|quickly please|just the answer)
(I forgot|I cannot find it|I could not find it in the manual|I am new here|I looked everywhere|the manual is long|I do not remember|any idea|do you know|you know that|right)
(on my machine|on this server|in pantheond|in pantheon|for the daemon|in production|on linux|on debian|here)
""".strip().splitlines()

# Words that may stand for each other in a question.
_SYNONYMS = [
    "daemon|server|service", "config|configuration|settings", "show|display", "see|view", "big|large", "change|modify|alter",
    "use|employ", "find|locate", "stop|halt", "get|obtain|receive", "set|define|choose", "answer|reply|response",
    "answers|replies|responses", "request|query", "requests|queries", "memory|ram", "limit|cap|restrict",
    "longer|larger", "maximum|max|highest", "number|count|amount", "gpu|graphics card", "folder|directory", "kept|held|stored",
    "saved|stored", "check|verify|test", "print|output|show", "list|enumerate", "wait|queue", "text|string", "how many|what number of",
    "many|lots of", "start|launch|run|begin", "error|failure|fault", "often|frequently", "fast|quick|quickly", "need|require",
    "allowed|permitted", "may|can", "happens|occurs", "possible|feasible", "currently|now|at the moment",
    "default|standard|preset", "time|duration", "longest|maximum", "conversation|chat|dialogue", "parallel|simultaneous",
    "at once|simultaneously|in parallel|at the same time|concurrently", "turn off|switch off|disable|deactivate",
    "turn on|switch on|enable|activate", "make|let", "want|like|wish", "option|flag|switch", "key|setting|parameter",
    "decides|determines|controls", "program|tool|software", "work|function", "slow|sluggish", "reload|re-read|load again",
    "terminal|shell|console", "tokens|units", "file|document", "machine|computer|host", "model|network|llm",
    "cancelled|aborted|stopped", "finish|end|complete", "damaged|corrupt|broken",
]  # fmt: skip
_SWAP = {}
for _group in _SYNONYMS:
    for _word in _group.split("|"):
        _SWAP.setdefault(_word, [w for w in _group.split("|") if w != _word])
_SWAPPABLE = re.compile(r"(?<![\w.`-])(" + "|".join(sorted(map(re.escape, _SWAP), key=len, reverse=True)) + r")(?![\w.`-])")
_SMALL_WORDS = {"the", "a", "an", "do", "does", "is", "are", "i", "to", "of", "for", "it", "that", "can", "me", "my"}


_SHORTER = [
    ("what is ", "what's "), ("I would like", "I'd like"), ("do not ", "don't "), ("I am ", "I'm "), ("cannot ", "can't "),
    ("does not ", "doesn't "), ("that is ", "that's "), ("it is ", "it's "), ("I have ", "I've "), ("is not ", "isn't "),
]  # fmt: skip
_KIND_NAMES = {
    "key": "(key|setting|config key|option|parameter)",
    "command": "(command|option|call|flag)",
    "code": "(code|error|error code|answer)",
    "term": "(thing|term|part|word|one|field|name)",
}


def imperative(does):
    """"shows the state" as what somebody wants to do: "show the state"."""
    verb, _, rest = does.partition(" ")
    if verb in ("is", "has"):
        verb = {"is": "be", "has": "have"}[verb]
    elif verb.endswith("ies"):
        verb = verb[:-3] + "y"
    elif verb.endswith("s"):
        verb = verb[:-1]
    return f"{verb} {rest}"


def _is_key_like(subject):
    return re.fullmatch(r"[a-z_]+\.[a-z_]+", subject) is not None


def spell(fact, rng, unique_tails):
    """A spelling of a fact's subject, as people write it."""
    subject = fact.subject if not fact.also or rng.random() < 0.65 else rng.choice(fact.also)
    if _is_key_like(subject) and fact.kind == "key":
        x = rng.random()
        tail = subject.split(".")[1]
        if x < 0.12 and tail in unique_tails:
            subject = tail
        elif x < 0.18:
            subject = subject.replace(".", " ")
        elif x < 0.22:
            subject = subject.replace(".", " ").replace("_", " ")
    plain = re.fullmatch(r"[a-z ]+", subject) is not None
    if rng.random() < (0.05 if plain else 0.25):
        subject = f"`{subject}`" if rng.random() < 0.85 else f'"{subject}"'
    noun = {
        "key": "(the key|the setting|the config key|the parameter|the option|the entry|the variable|key)",
        "command": "(the command|command|the call|the option)",
        "code": "(the code|the error|error|code|the error code|the message)",
        "term": "(the term|the word|the thing called|the name)",
    }[fact.kind]
    if rng.random() < 0.2 and not subject.startswith(("the ", "a ", "an ", "exit ", "finish ", "code ")):
        subject = expand(noun, rng) + " " + subject
    return subject


def _vary_words(text, rng):
    return _SWAPPABLE.sub(lambda m: rng.choice(_SWAP[m.group(1)]) if rng.random() < 0.15 else m.group(1), text)


def _telegraphic(text, rng):
    words = text.split()
    kept = [w for w in words if w.lower() not in _SMALL_WORDS or rng.random() < 0.3]
    return " ".join(kept) if len(kept) > 1 else text


def _typo(text, rng):
    places = [i for i in range(1, len(text) - 2) if text[i - 1 : i + 2].isalpha()]
    if not places:
        return text
    i = rng.choice(places)
    kind = rng.randrange(4)
    if kind == 0:
        return text[:i] + text[i + 1 :]
    if kind == 1:
        return text[:i] + text[i] + text[i:]
    if kind == 2:
        return text[:i] + text[i + 1] + text[i] + text[i + 2 :]
    return text[:i] + rng.choice("abcdefghijklmnopqrstuvwxyz") + text[i + 1 :]


def dress(core, rng):
    """A question's core as somebody types it: what stands before and after it, words, case, punctuation, slips."""
    text = _vary_words(core, rng)
    if rng.random() < 0.3:
        for long, short in _SHORTER:
            text = text.replace(long, short)
    if rng.random() < 0.06:
        text = _telegraphic(text, rng)
    ending = text[-1] if text[-1] in ".?!" else ""
    if not ending:
        text += rng.choice(["", "", "?", "."])
    if rng.random() < 0.22:
        lead = expand(rng.choice(LEAD), rng)
        mark = rng.choice([", ", ", ", ": ", ". ", " - ", "! "])
        if mark in (". ", "! ") and text[0] != "`":
            text = text[0].upper() + text[1:]
        text = lead[0].upper() + lead[1:] + mark + text
    if rng.random() < 0.18:
        tail = expand(rng.choice(TAIL), rng)
        if text[-1] in ".?!":
            text += " " + tail[0].upper() + tail[1:] + rng.choice([".", ".", "!", "?", ""])
        else:
            text += rng.choice([", ", " - ", " "]) + tail
    if rng.random() < 0.72 and text[0] != "`":
        text = text[0].upper() + text[1:]
    x = rng.random()
    if x < 0.13:
        text = text.lower()
    elif x < 0.14:
        text = text.upper()
    if rng.random() < 0.2:
        text = text.rstrip("?.!")
    if rng.random() < 0.08:
        text = _typo(text, rng)
    return text.replace("`` ", "` ").strip()


class QuestionMaker:
    """Draws (question, answer) pairs about facts."""

    def __init__(self, facts):
        tails = [f.subject.split(".")[1] for f in facts if f.kind == "key"]
        self._unique_tails = {t for t in tails if tails.count(t) == 1}

    def _frame(self, frames, rng, **slots):
        frame = expand(rng.choice(frames), rng)
        return " ".join(frame.format(**slots).split())

    def about(self, fact, rng, relation=None):
        """A dressed question about the fact, and the answer to it."""
        core, answer = self.core(fact, rng, relation)
        return dress(core, rng), answer

    def core(self, fact, rng, relation=None):
        relation = relation or self._relation(fact, rng)
        wording = lambda kind: expand(rng.choice(fact.wordings[kind]), rng)
        spelt = lambda: spell(fact, rng, self._unique_tails)
        if relation == "default":
            x = wording("noun") if rng.random() < 0.5 else spelt()
            return self._frame(DEFAULT, rng, x=x), fact.default_answer
        if relation == "identity":
            return self._frame(IDENTITY, rng, s=spelt(), f=self._fragment(fact, rng)), fact.answer
        if relation in ("reverse", "echo"):
            return self._reverse(fact, rng, relation), fact.way_answer
        if relation == "met":
            return self._frame(MET, rng, s=spelt()), fact.answer
        if relation == "goal":
            return self._frame(GOAL, rng, g=wording("goal")), fact.way_answer
        if relation == "when":
            return self._frame(HAPPENED, rng, w=wording("when")), fact.answer
        if relation == "noun":
            n = wording("noun")
            if fact.kind == "key":
                return self._frame(SETTING, rng, n=n), fact.way_answer
            return self._frame(NOUN, rng, n=n), fact.answer
        return wording("ask"), fact.answer

    def _reverse(self, fact, rng, relation):
        kind = expand(_KIND_NAMES[fact.kind], rng)
        fragment = self._fragment(fact, rng)
        if relation == "echo":
            return self._frame(ECHO, rng, k=kind, f=fragment)
        text = fact.means or fact.does.partition(";")[0].partition(":")[0]
        if fact.means:
            return self._frame(HAPPENED, rng, w=text)
        if rng.random() < 0.4:
            return self._frame(GOAL, rng, g=imperative(text))
        return self._frame(REVERSE, rng, k=kind, d=text)

    @staticmethod
    def _fragment(fact, rng):
        """Some words in a row of what is known about the fact, without its name."""
        text = fact.means or fact.does or fact.says
        text = text.replace("`", "")
        name = fact.subject.removeprefix("the op ").removeprefix("the event ").removeprefix("the ")
        if text.lower().find(name.lower()) in range(0, 14):
            text = text[text.lower().find(name.lower()) + len(name) :]
        words = [w.strip(".,;:") for w in text.split()]
        length = min(len(words), rng.randint(3, 7))
        at = rng.randint(0, len(words) - length)
        return " ".join(words[at : at + length])

    def _relation(self, fact, rng):
        weight = {"identity": 3.5, "noun": 2.0, "goal": 3.0, "when": 4.0, "ask": 2.0}
        have = {"identity": weight["identity"], **{k: weight[k] for k in fact.wordings}, "echo": 1.0}
        if fact.does or fact.means:
            have["reverse"] = 1.5
        if fact.kind == "key":
            have["default"] = 3.0
        if fact.kind == "code":
            have["met"] = 2.0
        return rng.choices(list(have), list(have.values()))[0]
