"""The training text: an endless stream of chats, drawn anew for every step from a seed. Nothing is stored or copied."""

import argparse
import random
import sys

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
_NO_THOUGHT = "<think>\n\n</think>\n\n"


def system_turn(offered, instructions):
    if not offered and not instructions:
        return ""
    head = TOOLS_HEAD + "".join("\n" + tools.tool_json(t) for t in offered) + TOOLS_TAIL if offered else ""
    return f"<|im_start|>system\n{head}{chr(10) * 2 if head and instructions else ''}{instructions}<|im_end|>\n"


def user_turn(text):
    return f"<|im_start|>user\n{text}<|im_end|>\n"


def assistant_turn(reasoning, answer):
    """reasoning None: an earlier turn, of which only the answer is left; "": thinking was switched off."""
    thought = "" if reasoning is None else f"<think>\n{reasoning}\n</think>\n\n" if reasoning else _NO_THOUGHT
    return f"<|im_start|>assistant\n{thought}{answer}<|im_end|>\n"


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

    # Each of these gives (question, reasoning, answer, answer without reasoning).

    def _fact(self, rng, fact=None):
        fact = fact or rng.choices(self.facts, self._weights)[0]
        question, answer = self._maker.about(fact, rng)
        return question, self._about(fact), answer, answer

    @staticmethod
    def _about(fact):
        return f"The question is about `{fact.subject}`."

    def _comparison(self, rng):
        kind = rng.choice(["key", "command", "code", "term"])
        a, b = rng.sample([f for f in self.facts if f.kind == kind and not (kind == "code" and f.says)], 2)
        spelt = [questions.spell(f, rng, ()) for f in (a, b)]
        frame = (
            "(what is the difference between {a} and {b}|compare {a} (and|with|to) {b}|{a} (or|vs|versus) {b}|how do {a} and {b} differ|"
            "explain {a} and {b}|what are {a} and {b}|how does {a} differ from {b}|difference of {a} and {b}|when {a} and when {b})"
        )
        text = questions.dress(facts.expand(frame, rng).format(a=spelt[0], b=spelt[1]), rng)
        answer = f"{a.answer} {b.answer}"
        return text, f"The question is about `{a.subject}` and `{b.subject}`.", answer, answer

    @staticmethod
    def _twice(triple):
        question, reasoning, answer = triple
        return question, reasoning, answer, answer

    def _single(self, rng):
        x = rng.random()
        if x < 0.685:
            return self._fact(rng)
        if x < 0.705:
            return self._comparison(rng)
        if x < 0.76:
            return self._twice(smalltalk.outside(rng))
        if x < 0.77:
            return self._twice(smalltalk.unknown_name(rng))
        if x < 0.785:
            return self._twice(smalltalk.greeting(rng))
        if x < 0.805:
            return self._twice(smalltalk.identity(rng))
        if x < 0.81:
            return self._twice(smalltalk.thanks(rng) if rng.random() < 0.6 else smalltalk.goodbye(rng))
        if x < 0.92:
            return self._twice(stories.story(rng))
        question, steps, answer, alone = sums.sum_or_difference(rng)
        return question, steps, answer, alone or answer

    def _conversation(self, rng):
        """Turns that stay on one subject, with a greeting before or thanks after now and then."""
        fact = rng.choice(self._keys) if rng.random() < 0.5 else rng.choices(self.facts, self._weights)[0]
        turns = [self._twice(smalltalk.greeting(rng))] if rng.random() < 0.12 else []
        turns.append(self._fact(rng, fact))
        while len(turns) < 2 or (len(turns) < 4 and rng.random() < 0.45):
            turns.append(self._follow_up(rng, fact, turns[-1]))
            if turns[-1][2] in ("You are welcome!", "Goodbye!"):
                break
            fact = self._subject_after(fact, turns[-1])
        return turns

    def _subject_after(self, fact, turn):
        name = turn[1].partition("`")[2].partition("`")[0]
        return next((f for f in self.facts if f.subject == name), fact)

    def _follow_up(self, rng, fact, last):
        x = rng.random()
        if x < 0.12:
            return self._twice(smalltalk.thanks(rng) if rng.random() < 0.8 else smalltalk.goodbye(rng))
        if x < 0.2:
            text = facts.expand(_MORE["again"], rng)
            return questions.dress(text, rng), last[1], last[2], last[2]
        if x < 0.4:
            other = rng.choice([f for f in self.facts if f.kind == fact.kind and f is not fact])
            text = facts.expand("(and|what about|how about|and what about|and what is|same question for|now) ", rng)
            answer = other.default_answer if last[2] == fact.default_answer and other.default else other.answer
            spelt = questions.spell(other, rng, ())
            return questions.dress(f"{text} {spelt}", rng), self._about(other), answer, answer
        if x < 0.6 or fact.kind != "key":
            return self._fact(rng)
        relation = rng.choice(["default", "way", "identity"])
        answer = {"default": fact.default_answer, "way": fact.way_answer, "identity": fact.answer}[relation]
        text = questions.dress(facts.expand(_MORE[relation], rng), rng)
        return text, self._about(fact), answer, answer

    def _tool_chat(self, rng):
        offered, question, thought, name, arguments, result, after, answer = tools.example(rng)
        if rng.random() < 0.2:
            question, thought, answer, _ = self._fact(rng)
            return system_turn(offered, "") + user_turn(question) + assistant_turn(thought, answer)
        thinks = rng.random() < 0.7
        text = system_turn(offered, "") + user_turn(question)
        text += assistant_turn(thought if thinks else "", tools.call_text(name, arguments))
        if rng.random() < 0.7:
            text += f"<|im_start|>user\n<tool_response>\n{result}\n</tool_response><|im_end|>\n"
            text += assistant_turn(after if thinks else "", answer)
        return text

    def chat(self, rng):
        """One chat as the template renders it."""
        if rng.random() < 0.2:
            turns = self._conversation(rng)
        else:
            turns = [self._single(rng) for _ in range(rng.choice([1, 1, 1, 1, 1, 1, 1, 2]))]
        text = system_turn([], facts.expand(rng.choice(_SYSTEM), rng)) if rng.random() < 0.08 else ""
        for question, _, answer, _ in turns[:-1]:
            text += user_turn(question) + assistant_turn(None, answer)
        question, reasoning, answer, alone = turns[-1]
        text += user_turn(question)
        return text + (assistant_turn(reasoning, answer) if rng.random() < 0.7 else assistant_turn("", alone))

    def long_chat(self, rng):
        """One that needs room: tools, or many turns."""
        return self._tool_chat(rng) if rng.random() < 0.6 else self.chat(rng)


class Rows:
    """Training rows out of the stream: whole chats side by side, each ended by <|endoftext|>, padded with it."""

    PROMPT_WEIGHT = 0.1  # of a token the model will never have to write

    def __init__(self, corpus: Corpus, tok: Tokenizer):
        self._corpus = corpus
        self._tok = tok
        self._end = tok.special["<|endoftext|>"]
        self._turn = [tok.special["<|im_start|>"], *tok.encode("assistant\n")]
        self._turn_end = tok.special["<|im_end|>"]

    def _document(self, text):
        ids = self._tok.encode(text) + [self._end]
        weights, answering, n = [], False, len(self._turn)
        for i, token in enumerate(ids):
            weights.append(1.0 if answering else self.PROMPT_WEIGHT)
            if token == self._turn_end:
                answering = False
            elif ids[max(0, i + 1 - n) : i + 1] == self._turn:
                answering = True
        return ids, weights

    def draw(self, seed, n_rows, n_tokens, long=False):
        """n_rows of n_tokens + 1 ids, and as many weights; the same for the same arguments."""
        rng = random.Random(seed)
        make = self._corpus.long_chat if long else self._corpus.chat
        rows, waiting = [], []
        for _ in range(n_rows):
            ids, weights = [], []
            room, misses = n_tokens + 1, 0
            while misses < 8 and room > 8:
                fitting = next((d for d in waiting if len(d[0]) <= room), None)
                if fitting:
                    waiting.remove(fitting)
                else:
                    document = self._document(make(rng))
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
    args = parser.parse_args()
    rng, source = random.Random(args.seed), Corpus()
    for _ in range(args.n):
        sys.stdout.write(source.chat(rng))


if __name__ == "__main__":
    main()
