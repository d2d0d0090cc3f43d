"""The facts that the embedded model is taught: facts/*.txt, read into a list of `Fact`.

A section of these files is one fact about one subject:

    [kv.n_ctx]                          the subject as answers spell it
    also: n_ctx                         other spellings of it in questions
    default: 4096 tokens                a configuration key's default, and ...
    does: sets how many tokens ...      ... what a key, command or option does
    means: / do:                        an error code's meaning, and what to do about it
    says: A die is one compute ...      the whole answer, where none of these forms fits
    noun: the context length; ...       what else a question may call it
    goal: allow a longer context; ...   what somebody wants who needs it
    when: the queue is full; ...        what happened to somebody who meets it
    ask: how long may a prompt be?      whole questions

Variants are separated by ";"; "(a|b|)" stands for any one of its alternatives. `python3 facts.py` prints subjects and
answers as plain text.
"""

import pathlib
import re
from dataclasses import dataclass, field

FOLDER = pathlib.Path(__file__).resolve().parent / "facts"
WORDINGS = ("noun", "goal", "when", "ask")


@dataclass
class Fact:
    subject: str
    kind: str  # key, command, code or term
    also: list = field(default_factory=list)
    default: str = ""
    does: str = ""
    means: str = ""
    do: str = ""
    says: str = ""
    wordings: dict = field(default_factory=dict)  # of WORDINGS: variant patterns

    @property
    def answer(self):
        """The plain answer; all that is known of the subject is in it."""
        if self.says:
            return self.says
        if self.means:
            return f"The code `{self.subject}` means that {self.means}. You should {self.do}."
        if self.default:
            return f"`{self.subject}` {self.does}. Its default is {self.default}."
        return f"`{self.subject}` {self.does}."

    @property
    def default_answer(self):
        """Of a key: the default comes first."""
        return f"The default of `{self.subject}` is {self.default}. It {self.does}."

    @property
    def way_answer(self):
        """For somebody who wants to do something: the key to set, the command to run."""
        if not self.does:
            return self.answer
        if self.kind == "key":
            return f"Set `{self.subject}` in the config file. It {self.does}. Its default is {self.default}."
        verb = "Use" if self.subject.startswith(("-", "pantheond --", "pantheon --")) else "Run"
        return f"{verb} `{self.subject}`. It {self.does}."


def _kind(sheet, fact):
    if sheet == "keys":
        return "key"
    if sheet == "codes":
        return "code"
    return "command" if fact.does else "term"


def _read(path):
    fact = None
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
        if not line or line.startswith("#"):
            continue
        if line.startswith("["):
            if fact:
                fact.kind = _kind(path.stem, fact)
                yield fact
            fact = Fact(line[1:-1], "")
            continue
        name, _, value = line.partition(": ")
        if fact is None or not value:
            raise ValueError(f"{path.name}:{number}: not a section and not a line of one")
        if name in WORDINGS:
            fact.wordings[name] = [v.strip() for v in value.split("; ")]
        elif name == "also":
            fact.also = [v.strip() for v in value.split("; ")]
        elif hasattr(fact, name):
            setattr(fact, name, value)
        else:
            raise ValueError(f"{path.name}:{number}: {name}: unknown")
    if fact:
        fact.kind = _kind(path.stem, fact)
        yield fact


def load():
    """All facts, in the order of the files' names."""
    facts = [fact for path in sorted(FOLDER.glob("*.txt")) for fact in _read(path)]
    subjects = [fact.subject for fact in facts]
    doubled = {s for s in subjects if subjects.count(s) > 1}
    if doubled:
        raise ValueError(f"subjects stand twice: {sorted(doubled)}")
    return facts


def expand(pattern, rng):
    """One of the phrases that a variant pattern stands for."""
    while "(" in pattern:
        pattern = re.sub(r"\(([^()]*)\)", lambda m: rng.choice(m.group(1).split("|")), pattern)
    return " ".join(pattern.split())


if __name__ == "__main__":
    for item in load():
        print(f"{item.subject}: {item.answer}")
