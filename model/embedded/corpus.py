"""The training text: an endless stream of chats, drawn anew for every step from a seed. Nothing is stored or copied."""

import argparse
import bisect
import itertools
import random
import sys
from dataclasses import dataclass

import facts
import questions
import smalltalk
import stories
import sums
import tools
from tokenizer import Tokenizer

# Must stay equal to what the chat template writes (chat_template.jinja); a test renders both.
TOOLS_HEAD = "# Tools\n\nYou have access to the following functions:\n\n<tools>"
TOOLS_TAIL = """
</tools>

If you choose to call a function ONLY reply in the following format with NO suffix:

<tool_call>
<function=example_function_name>
<parameter=example_parameter_1>
value_1
</parameter>
<parameter=example_parameter_2>
This is the value for the second parameter
that can span
multiple lines
</parameter>
</function>
</tool_call>

<IMPORTANT>
Reminder:
- Function calls MUST follow the specified format: an inner <function=...></function> block must be nested within <tool_call></tool_call> XML tags
- Required parameters MUST be specified
- You may provide optional reasoning for your function call in natural language BEFORE the function call, but NOT after
- If there is no function call available, answer the question like normal with your current knowledge and do not tell the user about function calls
</IMPORTANT>"""

_SYSTEM = """
(You are|you are) a helpful assistant.
You (help|assist) (users|people|administrators) (of|with) pantheond.
(Answer|Reply) (briefly|in one sentence|politely|clearly).
You are the (assistant|helper) of a (server|daemon).
Be (brief|helpful|polite|friendly).
""".strip().splitlines()


# What a token weighs in the loss: first, and from where the learning rate falls. Nearly all that matters of an answer is
# decided in a few tokens, those that name the subject; the rest follows from them. Prompts and the free choices of a story
# would drown them in noise, so a story's words count only once subjects are told apart.
PROMPT, STORY, PLAIN = (0.02, 0.02), (0.3, 1.0), (1.0, 1.0)
REPLY, GIVEN, STEP, CHOICE = (2.0, 2.0), (1.0, 5.0), (3.0, 5.0), (5.0, 5.0)  # GIVEN: names that the question gave
# What a chat is about, as thresholds of a number drawn from 0 to 1: a fact, two of them, something outside, a name that does
# not exist, a greeting, who the model is, thanks or goodbye, a story; else a sum. Stories and sums, which take copying and
# reckoning more than remembering, get more room at the end; then, in a short polish, the world outside gets it.
_SHARES = (0.73, 0.75, 0.80, 0.81, 0.825, 0.845, 0.85, 0.92)
_SHARES_AT_THE_END = (0.61, 0.63, 0.68, 0.69, 0.705, 0.725, 0.73, 0.87)
_SHARES_IN_THE_POLISH = (0.61, 0.63, 0.77, 0.78, 0.79, 0.80, 0.805, 0.89)
_OPENING = 40  # characters of an answer that name its subject, where no thought did


@dataclass
class Turn:
    """A question, what is thought about it, and the answer; all but the question as (text, weight) pairs."""

    question: str
    thought: list
    answer: list
    unthought: list  # the answer when there is no thought before it
    fact: facts.Fact = None
    is_farewell: bool = False

    @staticmethod
    def weighted(weight, question, thought, answer, **more):
        return Turn(question, [(thought, weight)], [(answer, weight)], [(answer, weight)], **more)


def system_turn(offered, instructions):
    if not offered and not instructions:
        return []
    head = TOOLS_HEAD + "".join("\n" + tools.tool_json(t) for t in offered) + TOOLS_TAIL if offered else ""
    text = f"<|im_start|>system\n{head}{chr(10) * 2 if head and instructions else ''}{instructions}<|im_end|>\n"
    return [(text, PROMPT)]


def user_turn(text):
    return [(f"<|im_start|>user\n{text}<|im_end|>\n", PROMPT)]


def assistant_turn(thought, answer):
    """thought None: an earlier turn, of which only the answer is left; []: thinking was switched off."""
    if thought is None:
        head = [("<|im_start|>assistant\n", PROMPT)]
    elif not thought:
        head = [("<|im_start|>assistant\n<think>\n\n</think>\n\n", PROMPT)]
    else:
        head = [("<|im_start|>assistant\n<think>\n", PROMPT), *thought, ("\n</think>\n\n", PLAIN)]
    return [*head, *answer, ("<|im_end|>", PLAIN), ("\n", PROMPT)]


def text_of(spans):
    return "".join(text for text, _ in spans)


_MORE = {
    "default": "(and |)(what is its default|its default|the default|what is the default|which default does it have|by default|what if I do not set it|what value does it have|how much is it by default)",
    "way": "(and |)(how do I (change|set) it|where do I set (it|that)|how can I change that|how is it set|what do I write|which key is that|can I change it)",
    "identity": "(and |)(what does it do|what is it for|explain it|what is that|tell me more|what does that mean|why would I change it|more about it)",
    "again": "(say that again|can you repeat that|again please|I did not get that|pardon|what was that|once more|repeat please|sorry, what)",
}


class Corpus:
    def __init__(self):
        self.facts = facts.load()
        self._weights = [1.5 if f.kind == "key" else 1.15 if f.kind in ("command", "code") else 0.85 for f in self.facts]
        self._maker = questions.QuestionMaker(self.facts)
        self._keys = [f for f in self.facts if f.kind == "key"]

    def ask(self, fact, rng, relation=None):
        """(question, answer) about a fact."""
        return self._maker.about(fact, rng, relation)

    # ---- turns

    def _fact(self, rng, fact=None):
        fact = fact or rng.choices(self.facts, self._weights)[0]
        return self._about(fact, *self.ask(fact, rng))

    @staticmethod
    def _about(fact, question, answer):
        unthought = [(answer[:_OPENING], CHOICE), (answer[_OPENING:], PLAIN)]
        thought = [("This is about", PLAIN), (f" {fact.subject}", CHOICE), (".", PLAIN)]
        return Turn(question, thought, [(answer, PLAIN)], unthought, fact)

    def _comparison(self, rng):
        kind = rng.choice(["key", "command", "code", "term"])
        a, b = rng.sample([f for f in self.facts if f.kind == kind and not (kind == "code" and f.says)], 2)
        spelt = [questions.spell(f, rng, ()) for f in (a, b)]
        frame = (
            "(what is the difference between {a} and {b}|compare {a} (and|with|to) {b}|{a} (or|vs|versus) {b}|how do {a} and {b} differ|"
            "explain {a} and {b}|what are {a} and {b}|how does {a} differ from {b}|difference of {a} and {b}|when {a} and when {b})"
        )
        text = questions.dress(facts.expand(frame, rng).format(a=spelt[0], b=spelt[1]), rng)
        thought = [("This is about", PLAIN), (f" {a.subject} and {b.subject}", REPLY), (".", PLAIN)]
        answer = [(f"{a.answer} {b.answer}", PLAIN)]
        return Turn(text, thought, answer, answer)

    def _single(self, rng, shares):
        place = bisect.bisect_right(shares, rng.random())
        make = (
            self._fact,
            self._comparison,
            lambda r: Turn.weighted(REPLY, *smalltalk.outside(r, of_parts=shares is _SHARES_IN_THE_POLISH)),
            lambda r: Turn.weighted(REPLY, *smalltalk.unknown_name(r)),
            lambda r: Turn.weighted(REPLY, *smalltalk.greeting(r)),
            lambda r: Turn.weighted(REPLY, *smalltalk.identity(r)),
            lambda r: Turn.weighted(REPLY, *(smalltalk.thanks(r) if r.random() < 0.6 else smalltalk.goodbye(r))),
            self._story,
            self._sum,
        )
        return make[place](rng)

    @staticmethod
    def _story(rng):
        question, thought, answer = stories.story(rng)
        weighted = [(text, GIVEN if is_given else PLAIN) for text, is_given in thought]
        return Turn(question, weighted, [(answer, STORY)], [(answer, STORY)])

    @staticmethod
    def _sum(rng):
        question, steps, answer, alone = sums.sum_or_difference(rng)
        return Turn(question, [(steps, STEP)], [(answer, STEP)], [(alone or answer, STEP)])

    def _conversation(self, rng):
        """Turns that stay on one subject, with a greeting before or thanks after now and then."""
        fact = rng.choice(self._keys) if rng.random() < 0.5 else rng.choices(self.facts, self._weights)[0]
        turns = [Turn.weighted(REPLY, *smalltalk.greeting(rng))] if rng.random() < 0.12 else []
        turns.append(self._fact(rng, fact))
        while len(turns) < 2 or (len(turns) < 4 and rng.random() < 0.45):
            turns.append(self._follow_up(rng, turns[-1]))
            if turns[-1].is_farewell:
                break
        return turns

    def _follow_up(self, rng, last):
        fact = last.fact
        x = rng.random()
        if x < 0.12:
            say = smalltalk.thanks if rng.random() < 0.8 else smalltalk.goodbye
            return Turn.weighted(REPLY, *say(rng), is_farewell=True)
        if x < 0.2:
            return self._about(fact, questions.dress(facts.expand(_MORE["again"], rng), rng), text_of(last.answer))
        if x < 0.4:
            other = rng.choice([f for f in self.facts if f.kind == fact.kind and f is not fact])
            text = facts.expand("(and|what about|how about|and what about|and what is|same question for|now) ", rng)
            by_default = other.default and text_of(last.answer) == fact.default_answer
            spelt = questions.spell(other, rng, ())
            return self._about(other, questions.dress(f"{text} {spelt}", rng), other.default_answer if by_default else other.answer)
        if x < 0.6 or fact.kind != "key":
            return self._fact(rng)
        relation = rng.choice(["default", "way", "identity"])
        answer = {"default": fact.default_answer, "way": fact.way_answer, "identity": fact.answer}[relation]
        return self._about(fact, questions.dress(facts.expand(_MORE[relation], rng), rng), answer)

    def _tool_chat(self, rng):
        offered, question, thought, name, arguments, result, after, answer = tools.example(rng)
        if rng.random() < 0.2:
            turn = self._fact(rng)
            return system_turn(offered, "") + user_turn(turn.question) + assistant_turn(turn.thought, turn.answer)
        thinks = rng.random() < 0.7
        spans = system_turn(offered, "") + user_turn(question)
        spans += assistant_turn([(thought, REPLY)] if thinks else [], [(tools.call_text(name, arguments), REPLY)])
        if rng.random() < 0.7:
            spans.append((f"<|im_start|>user\n<tool_response>\n{result}\n</tool_response><|im_end|>\n", PROMPT))
            spans += assistant_turn([(after, PLAIN)] if thinks else [], [(answer, REPLY)])
        return spans

    # ---- chats

    def chat_spans(self, rng, shares=_SHARES):
        """One chat as the template renders it, in (text, weight) pairs."""
        if rng.random() < 0.2:
            turns = self._conversation(rng)
        else:
            turns = [self._single(rng, shares) for _ in range(rng.choice([1, 1, 1, 1, 1, 1, 1, 2]))]
        spans = system_turn([], facts.expand(rng.choice(_SYSTEM), rng)) if rng.random() < 0.08 else []
        for turn in turns[:-1]:
            spans += user_turn(turn.question) + assistant_turn(None, turn.unthought)
        last = turns[-1]
        spans += user_turn(last.question)
        return spans + (assistant_turn(last.thought, last.answer) if rng.random() < 0.7 else assistant_turn([], last.unthought))

    def long_chat_spans(self, rng, shares=_SHARES):
        """One that needs room: tools, or another chat beside them."""
        return self._tool_chat(rng) if rng.random() < 0.6 else self.chat_spans(rng, shares)

    def chat(self, rng):
        return text_of(self.chat_spans(rng))

    def long_chat(self, rng):
        return text_of(self.long_chat_spans(rng))


class Rows:
    """Training rows out of the stream: whole chats side by side, each ended by <|endoftext|>, padded with it."""

    # Shares of the subjects, and which weights: first, from where the learning rate falls, at the end, in the polish.
    STAGES = ((_SHARES, 0), (_SHARES, 1), (_SHARES_AT_THE_END, 1), (_SHARES_IN_THE_POLISH, 1))

    def __init__(self, corpus: Corpus, tok: Tokenizer):
        self._corpus = corpus
        self._tok = tok
        self._end = tok.special["<|endoftext|>"]

    def _document(self, spans, column=0):
        """A token weighs what the span weighs in which it begins; column: which of a span's weights."""
        ids = self._tok.encode(text_of(spans))
        weights, ends = [], itertools.accumulate(len(text) for text, _ in spans)
        limits = iter(zip(ends, (weight[column] for _, weight in spans)))
        at, (end, weight) = 0, next(limits)
        for token in ids:
            while at >= end:
                end, weight = next(limits)
            weights.append(weight)
            at += self._tok.length(token)
        return ids + [self._end], weights + [PROMPT[column]]

    def draw(self, seed, n_rows, n_tokens, long=False, stage=0):
        """n_rows of n_tokens + 1 ids, and as many weights; the same for the same arguments."""
        rng = random.Random(seed)
        make = self._corpus.long_chat_spans if long else self._corpus.chat_spans
        shares, column = self.STAGES[stage]
        rows, waiting = [], []
        for _ in range(n_rows):
            ids, weights = [], []
            room, misses = n_tokens + 1, 0
            while misses < 8 and room > 8:
                fitting = next((d for d in waiting if len(d[0]) <= room), None)
                if fitting:
                    waiting.remove(fitting)
                else:
                    document = self._document(make(rng, shares), column)
                    if len(document[0]) > n_tokens + 1:
                        continue
                    if len(document[0]) > room:
                        waiting.append(document)
                        misses += 1
                        continue
                    fitting = document
                ids += fitting[0]
                weights += fitting[1]
                room = n_tokens + 1 - len(ids)
            rows.append((ids + [self._end] * room, weights + [0.0] * room))
        return [r[0] for r in rows], [r[1] for r in rows]


def main():
    parser = argparse.ArgumentParser(description="Prints chats of the kind that the embedded model is trained on.")
    parser.add_argument("-n", type=int, default=20, help="how many (default %(default)s)")
    parser.add_argument("--seed", default="shown", help="any word; training uses others (default %(default)s)")
    parser.add_argument("--stories", action="store_true", help="bare stories instead, as in held_out.txt")
    args = parser.parse_args()
    rng, source = random.Random(args.seed), Corpus()
    if args.stories:
        print("\n\n".join(stories.story(rng)[2] for _ in range(args.n)))
        return
    for _ in range(args.n):
        sys.stdout.write(source.chat(rng))


if __name__ == "__main__":
    main()
