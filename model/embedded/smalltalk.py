"""Greetings, who the model is, thanks, polite refusal outside its subjects, and names that do not exist."""

from facts import expand

WHO = "I am the embedded model of pantheond. I know the daemon, tell tiny stories and add small numbers."
HELLO = "Hello! Ask me about pantheond, or for a tiny story or a small sum."
REFUSAL = "Sorry, I only know pantheond, tiny stories and small sums."

_GREETING = """
(hello|hi|hey|good morning|good evening|good day|good afternoon|greetings|hello there|hi there|hey there|howdy|hallo|welcome|moin|yo)
(hello|hi|hey|good morning|good evening) (model|friend|pantheon|pantheond|everybody|computer|you|little model|again)
(hello|hi|hey), (how are you|how is it going|nice to meet you|are you there|anybody there|can you hear me)
(how are you|how are you doing|how do you do|nice to meet you|are you there|anybody there|what's up|is somebody there)
""".strip().splitlines()
_IDENTITY = """
(who|what) are you( really| exactly| actually|)
(what|who) am I (talking|speaking|chatting|writing) (to|with)
(tell me|say something|talk|tell me something) about (yourself|you)
(introduce|describe|present) yourself
(what is|what's) your (name|job|purpose|task)
(do you have|have you got) a name
are you (a model|a robot|an ai|a human|a person|a bot|chatgpt|a language model|a program|alive|real)
(what|which) (kind of |)(model|program|bot|thing) are you
(what|which things) (can|do) you (do|know|answer|talk about|help with)
(what|how) can (I ask you|you help me with|you help me|you do for me)
(which|what) (questions|subjects|topics) (can|do) you (answer|know|understand)
how (big|small|clever|smart) are you
(who|what) (made|built|trained|created) you
your name
help
what do you know
""".strip().splitlines()
_THANKS = """
(thanks|thank you|thanks a lot|thank you very much|many thanks|thx|great, thanks|perfect, thank you|ok thanks|cheers|that helps|that was helpful|good answer|well done|great|perfect|nice|good)
""".strip().splitlines()
_BYE = """
(bye|goodbye|good bye|see you|see you later|bye bye|good night|that is all|that was all|I have to go|until tomorrow|farewell)
""".strip().splitlines()

_TOPICS = """
Spain|rice|the moon|love|Paris|my cat|trains|Peru|bread|winter|the sea|music|cars|soup|Oslo|gold|the president|football|chess|
Shakespeare|dinosaurs|the sun|pizza|my dog|Berlin|Rome|history|the war|physics|chemistry|biology|the weather|clouds|rain|snow|
flowers|roses|trees|birds|whales|sharks|elephants|cheese|wine|beer|coffee|tea|milk|sugar|salt|chocolate|apples|bananas|potatoes|
cancer|a headache|a cold|vitamins|sport|tennis|swimming|running|yoga|sleep|dreams|happiness|my mother|my brother|children|school|
university|homework|an essay|a poem|a song|a film|a novel|painting|Picasso|Mozart|the Beatles|guitar|piano|dancing|fashion|shoes|
money|taxes|the stock market|bitcoin|banks|a house|gardening|furniture|the kitchen|knives|fire|water|earthquakes|volcanoes|
mountains|Everest|rivers|the Nile|Africa|Japan|China|India|Brazil|Canada|Mexico|Egypt|Australia|Norway|Greece|Poland|London|
New York|Tokyo|Moscow|Madrid|airports|planes|ships|bicycles|traffic|planets|Mars|stars|galaxies|black holes|time travel|religion|
god|philosophy|Plato|politics|elections|law|police|crime|France|Germany|Italy|Python programming|Java|javascript|html|Windows|
the iPhone|Android|Google|Facebook|Excel|Word|email|a website|photoshop|video games|Minecraft|the internet|robots|electricity|
batteries|magnets|light|sound|gravity|atoms|DNA|evolution|the brain|the heart|teeth|hair|skin|fever|medicine|doctors|
Latin|French|English grammar|Chinese|spelling|mathematics|geometry|integrals|prime numbers|algebra|statistics|Napoleon|Caesar|
Einstein|Newton|Lincoln|the pyramids|the Romans|the Vikings|knights|castles|pirates|ghosts|aliens|dragons|unicorns|magic|
the meaning of life|tomorrow|my birthday|a wedding|Christmas|Easter|a holiday|a hotel|a restaurant|a recipe|pancakes|noodles
"""
_TOPICS = [t.strip() for t in _TOPICS.replace("\n", "").split("|")]
_OUTSIDE = """
what is the capital of {x}?
who (won|invented|discovered|wrote|painted|founded|built) {x}?
how do I (cook|bake|grow|draw|clean|fix|buy|sell|paint) {x}?
(write|compose|make) (a poem|a song|an essay|a letter|a speech|an email|a report) about {x}.
translate {x} into (French|German|Spanish|Latin|Chinese|English).
(what is|how is) the weather in {x}( today| tomorrow|)?
tell me a joke about {x}.
how (old|tall|heavy|far|deep|hot|expensive) is {x}?
what do you think (about|of) {x}?
should I (buy|try|visit|learn|study|eat|avoid) {x}?
where (is|are|was) {x}?
(what is|what are|explain|describe|define) {x}.
(when|why) (was|is|did|does) {x} (important|famous|born|end|begin|happen|dangerous)?
(do you like|have you seen|do you know) {x}?
(give|show|tell) me (facts|information|news|advice|tips|details) (about|on|for) {x}.
which {x} (is|are) the best?
(can|could) you (help me with|teach me|recommend|find|order|book) {x}?
I (need|want|would like) (advice|help|information|a book) (about|on|with) {x}.
how (many|much) {x} (are there|is there|do I need|does it take)?
who is the (king|president|mayor|author|owner|best player) of {x}?
(compare|rank) {x} and {y}.
is {x} better than {y}?
what is the difference between {x} and {y}?
(summarise|review|discuss) {x}.
(what|tell me the) (year|day|time|date) (is it|was it|of {x})?
(play|sing|paint|photograph) {x} for me.
what (rhymes with|is the opposite of|is another word for) {x}?
how does {x} work?
why is {x} (so popular|blue|green|cold|hot|bad|good)?
the history of {x}
{x}
{x} or {y}?
""".strip().splitlines()

# More of the world, for the polish: sentences put together from parts.
_WORLD = """
who (won|lost|scored in|played in|sang at|directed|refereed|hosted|organised|watched|paid for) (the|a|that|this) (first|last|big|local|famous|) {event} {when}?
(when|where|why|how) (did|does|will|would|can|should) (the|my|your|our|a|this) {person} {act} {when}?
(is|was|are|were) (the|my|your|our|this) {person} {state} {when}?
what (colour|size|price|age|name|taste|shape|language|food|team|song|film|job|hobby) (is|does|has|had|did) (the|my|your|our|a) {person} (like|have|choose|want|need|) {when}?
(buy|find|recommend|book|bring|sell|order) (me|us) (a|the|some) (cheap|good|nice|new|) {thing} {when}.
my {person} is {state}, what (should|can|do) I do?
is it (true|right|possible|likely) that {x} (is|are) (dangerous|round|healthy|expensive|rare|old|free|real)?
how many (people|cats|songs|stars|islands|players|words|legs|trees) (are|live|fit|were) in {x}?
I (love|hate|like|miss|am tired of|dream of) {x}.
what should (I|we|my {person}) (wear|eat|cook|read|watch|drink|say|do|play|visit) {when}?
can (a|the|my) {person} (fly|swim|talk|dream|sing|dance|cook) {when}?
(do you|did you|will you|can you|would you) (like|eat|see|know|meet|hear|marry|visit) (the|my|a) {person} {when}?
(what|who) (is|was|will be) the (best|worst|fastest|oldest|tallest|richest|nicest) (person|city|animal|song|film|player|country|food) {when}?
what happened (in|to|with|at) (the {event}|{x}|my {person}) {when}?
how (do|can|should) (I|we) (paint|cook|repair|clean|lose|grow|learn|teach|wash|climb|catch) (the|a|my|) {thing} {when}?
which (bus|train|road|team|doctor|shop|book|film|horse|party) (should|do|can) I (take|choose|see|buy|like|trust) {when}?
""".strip().splitlines()
_WORLD_PARTS = {
    "{event}": "game|match|race|final|cup|election|contest|concert|film|award|season|medal|war|wedding|party|show|battle|fight|tournament|derby",
    "{person}": "cat|dog|sister|brother|mother|father|boss|teacher|doctor|king|queen|president|neighbour|baby|horse|team|friend|uncle|singer|actor|pilot|lion|bird|fish|car|bike|phone",
    "{act}": "sleep|sing|cry|die|marry|travel|move|win|laugh|arrive|retire|dance|eat|swim|leave home|go to school|learn to read|come back|fall in love",
    "{state}": "ill|sad|happy|late|hungry|tired|famous|married|lost|angry|bored|pregnant|rich|alive|in love|asleep|at home|afraid",
    "{thing}": "hat|cake|shirt|garden|guitar|ticket|hotel|room|watch|coat|soup|salad|flower|mountain|wall|shoe|table|wedding dress|pizza|novel",
    "{when}": "||||last night|yesterday|today|tomorrow|next week|in 1990|on Sunday|this year|in summer|for dinner|at home|at school|at the moment|on holiday|in the end|every day",
}  # fmt: skip

_NAMES_A = "kv cpu gpu engine model ipc net disk session sampling cache log audit tls http auth batch queue tensor core".split()
_NAMES_B = "speed colour width depth mode retries burst port timeout token_rate backup theme quota ttl proxy shards".split()
_NAME_FRAMES = """
what (is|does) {s}( do| mean|)?
what is the default of {s}?
explain {s}
{s}?
how do I set {s}?
what happens if I set {s}?
""".strip().splitlines()


def _typed(text, rng):
    x = rng.random()
    if x < 0.65:
        text = text[0].upper() + text[1:]
    elif x < 0.75:
        text = text.lower()
    if text[-1] not in ".?!":
        text += rng.choice(["", "", "!", ".", "?", "?"])
    elif rng.random() < 0.25:
        text = text.rstrip(".?!")
    return text


def _pick(frames, rng):
    return expand(rng.choice(frames), rng)


def greeting(rng):
    return _typed(_pick(_GREETING, rng), rng), "This is a greeting.", HELLO


def identity(rng):
    text = _pick(_IDENTITY, rng)
    if rng.random() < 0.15:
        text = _pick(_GREETING[:1], rng) + ", " + text
    return _typed(text, rng), "This is about me.", WHO


def thanks(rng):
    return _typed(_pick(_THANKS, rng), rng), "The user is pleased.", "You are welcome!"


def goodbye(rng):
    return _typed(_pick(_BYE, rng), rng), "The user leaves.", "Goodbye!"


def outside(rng, of_parts=False):
    """of_parts: mostly sentences put together from parts, whose number is far greater."""
    x, y = rng.sample(_TOPICS, 2)
    if of_parts and rng.random() < 0.7:
        text = _pick(_WORLD, rng)
        for part, words in _WORLD_PARTS.items():
            while part in text:
                text = text.replace(part, rng.choice(words.split("|")), 1)
    else:
        text = _pick(_OUTSIDE, rng)
    text = " ".join(text.format(x=x, y=y).split()).replace(" ?", "?").replace(" .", ".")
    return _typed(text, rng), "This is not about pantheond, a story or a sum.", REFUSAL


def unknown_name(rng):
    name = rng.choice(_NAMES_A) + rng.choice([".", ".", "_"]) + rng.choice(_NAMES_B)
    shown = f"`{name}`" if rng.random() < 0.4 else name
    text = " ".join(_pick(_NAME_FRAMES, rng).format(s=shown).split())
    return _typed(text, rng), f"I know nothing called {name}.", f"I do not know `{name}`. It is not in my manual."
