"""Tiny stories from a grammar: names, animals and objects stay the same from the first sentence to the last."""

from facts import expand

_NAMES = (
    "Mia Tom Lena Ben Ada Noah Rosa Finn Ivy Max Nora Leo Ella Sam Zoe Hugo Ruth Karl Anna Otto Pia Jon Eva Tim "
    "Ida Paul Greta Emil Clara Felix Lucy Oscar Nina Jack Molly Bruno"
).split()
_STARTS = "B C D F G H J K L M N P R S T V W Z Br Cl Fl Gr Pr St Tr Sh Ch A E I O".split()
_MIDDLES = "a e i o u a e i o ai ee oo".split()
_ENDS = "n l r s m t lo la na ni ky ro ra by do mo xi ver bin cot dle ster ble pper nny sy llow ck x nger scuit der".split()
_WORD_NAMES = (
    "Pepper Cookie Sunny Shadow Lucky Coco Daisy Hazel Rusty Ginger Snow Storm Ruby Pearl Honey Maple River Sky Star "
    "Button Pip Biscuit Berry Clover Moss Fern Ash Rex Max Peanut Muffin Oreo Smokey Whiskers Rocky Buddy Charlie"
).split()
_ANIMALS = "fox cat dog mouse owl bear frog hen goat duck rabbit horse crow turtle hedgehog squirrel badger swan".split()
_MORE_ANIMALS = (
    "lion tiger wolf cow pig sheep horse donkey camel monkey elephant giraffe zebra seal whale penguin parrot snail bee ant "
    "spider crab fish lizard dragon hamster otter beaver deer moose kitten puppy chicken rooster pony robot"
).split()
_OBJECTS = "lamp kite bell key boat drum book hat map ball rope clock cup shell flute basket ladder mirror blanket coin".split()
_ADJECTIVES = "small red blue old shiny green wooden golden heavy bright yellow round".split()
_PLACES = "forest garden village harbour mill tower meadow market river beach barn library hill bridge lake orchard".split()
_FEELINGS = "happy glad proud cheerful".split()

_OPENING = """
Once there was {an_animal} called {name} who lived near the {place}.
{name} was {an_animal} who lived by the {place}.
In the {place} lived {an_animal} named {name}.
Near the old {place} lived {an_animal}. Everybody called the {animal} {name}.
""".strip().splitlines()
_PLOTS = [
    """
{name} had {a_thing} and took it everywhere.
One (day|morning|evening) the {object} was gone.
{name} looked in the {place} and at the {other_place}, but the {object} was not there.
Then {a_second} named {friend} came along.
"Is this your {object}?" asked {friend}. "I found it at the {other_place}."
{name} was so {feeling} to see the {adjective} {object} again.
(From that day {name} and {friend} were friends.|{name} thanked {friend}, and they went home together.)
""",
    """
One (day|morning|evening) {name} found {a_thing} at the {other_place}.
"Whose {object} is this?" said {name}.
{name} asked everyone, and at last {a_second} named {friend} said, "It is mine."
{name} gave the {object} back.
{friend} was {feeling} and shared a warm meal with {name}.
""",
    """
{name} wanted to give {friend} the {second} a present.
So {name} went to the {other_place} and made {a_thing}.
It took all day, and {name} was tired.
When {friend} saw the {object}, the {second} danced with joy.
"It is the best {object} in the world," said {friend}.
""",
    """
A storm came, and the {other_place} was dark.
{friend} the {second} was lost and afraid.
{name} took {a_thing} and went out to look.
"I am here!" called {name}, and held up the {object}.
{friend} saw the {adjective} {object} and came running.
They waited until the storm was over, safe and dry.
""",
    """
{name} and {friend} the {second} both wanted the same {adjective} {object}.
"It is mine," said {name}. "No, it is mine," said {friend}.
They pulled and pulled until the {object} fell into the {other_place}.
Now nobody had {a_thing}.
So they fetched it together, and after that they shared it.
Both were {feeling}.
""",
    """
{name} could not sleep and walked to the {other_place}.
There sat {a_second} named {friend} with {a_thing}.
"What do you do with the {object}?" asked {name}.
"I count the stars with it," said {friend}.
They counted until the morning, and {name} was {feeling}.
""",
]
_ASK = {
    "plain": "(tell me|tell|write|make up|I would like|I'd like|I want|please write|please tell|can you tell|could you tell me|give me) a (short |tiny |little |nice |)story.",
    "short": "(a|another|one) (short |tiny |little |bedtime |)story(,|) please",
    "animal": "(tell me|tell|write|make up|I would like|I'd like|please write|can you tell|can you tell me|give me|invent) a (short |tiny |little |)story (about|with|of) {an_animal}.",
    "named": "(tell me|tell|write|make up|please write|can you tell|can you tell me|I would like|I'd like|I want|give me|let us hear) a (short |tiny |little |)(story|tale) (about|with|of) {an_animal} (named|called|whose name is|by the name of) {name}.",
    "name": "(tell me|tell|write|make up|please write|give me) a (short |tiny |little |)story about {name} the {animal}.",
    "object": "(tell me|write|make up|please write|can you tell) a (short |tiny |little |)story (about|with) {an_object}.",
    "both": "(tell me|write|make up|please write) a (short |tiny |little |)story about {name} the {animal} and {an_object}.",
}


def _a(words):
    return ("an " if words[0] in "aeiou" else "a ") + words


def _name(rng):
    """A name that may never come again, so that names are copied and not remembered."""
    x = rng.random()
    if x < 0.35:
        return rng.choice(_NAMES)
    if x < 0.5:
        return rng.choice(_WORD_NAMES)
    name = rng.choice(_STARTS) + rng.choice(_MIDDLES) + rng.choice(_ENDS)
    return name + (rng.choice(_MIDDLES)[0] if rng.random() < 0.25 else "")


def story(rng):
    """(question, thought as pairs of text and whether the question gave it, answer)"""
    name, friend = _name(rng), rng.choice(_NAMES)
    if name == friend:
        friend = "Quinn"
    animal, second = rng.sample(_ANIMALS, 2)
    if rng.random() < 0.3:
        animal = rng.choice(_MORE_ANIMALS)
    place, other_place = rng.sample(_PLACES, 2)
    thing, adjective = rng.choice(_OBJECTS), rng.choice(_ADJECTIVES)
    words = {
        "name": name,
        "friend": friend,
        "animal": animal,
        "an_animal": _a(animal),
        "second": second,
        "a_second": _a(second),
        "object": thing,
        "an_object": _a(thing),
        "adjective": adjective,
        "a_thing": _a(f"{adjective} {thing}"),
        "place": place,
        "other_place": other_place,
        "feeling": rng.choice(_FEELINGS),
    }
    ask = rng.choice(list(_ASK.values()))
    question = expand(ask, rng).format(**words)
    question = question[0].upper() + question[1:] if rng.random() < 0.8 else question.lower()
    if rng.random() < 0.2:
        question = question.rstrip(".")
    lines = [rng.choice(_OPENING), *rng.choice(_PLOTS).strip().splitlines()]
    text = " ".join(expand(line, rng).format(**words) for line in lines)
    thought = [
        ("A story.", False),
        (f" {name}", "{name}" in ask),
        (" is", False),
        (f" {_a(animal)}", "animal}" in ask),
        (f", {friend} is {_a(second)}. The object is", False),
        (f" {_a(thing)}", "{an_object}" in ask),
        (".", False),
    ]
    return question, thought, text
