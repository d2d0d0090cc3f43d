"""Small sums and differences, worked out digit by digit."""

from facts import expand

_ADD = """
(what is|what's|how much is|calculate|compute|please compute|work out|tell me|) {a} ?+ ?{b}
(what is|how much is|calculate|what do you get for|tell me) {a} plus {b}
(add|please add|can you add|add up) {a} and {b}
(what is|give me|tell me|calculate) the sum of {a} and {b}
{a} + {b} =
{a} plus {b}
I have {a} (apples|coins|books|cups|eggs) and get {b} more. How many (are there|do I have)( now|)
""".strip().splitlines()
_SUBTRACT = """
(what is|what's|how much is|calculate|compute|please compute|) {a} ?- ?{b}
(what is|how much is|calculate|tell me) {a} minus {b}
(subtract|please subtract|take) {b} from {a}
{a} - {b} =
{a} minus {b}
I have {a} (apples|coins|books|cups|eggs) and give {b} away. How many are left
""".strip().splitlines()


def is_held_out(a, b):
    """A tenth of all pairs is never trained; a mixing hash, so that no pair of digits is missing as a whole."""
    return ((a * 1009 + b) * 2654435761 >> 13) % 10 == 0


def _question(frames, rng, a, b):
    text = expand(rng.choice(frames), rng).replace(" ?", rng.choice([" ", " ", ""])).format(a=a, b=b)
    text = text[0].upper() + text[1:] if rng.random() < 0.7 else text
    return text + ("" if text.endswith("=") else rng.choice(["?", "?", ".", ""]))


def _add_steps(a, b):
    ones, tens, carry = a % 10 + b % 10, a // 10 + b // 10, (a % 10 + b % 10) // 10
    text = f"Ones: {a % 10} + {b % 10} = {ones}."
    if a > 9 or b > 9:
        text += f" Tens: {a // 10} + {b // 10}" + (f" + {carry}" if carry else "") + f" = {tens + carry}."
    return text


def sum_or_difference(rng, held_out=False):
    """(question, reasoning, answer, answer that carries the work for want of reasoning)"""
    while True:
        limit = rng.choice([10, 20, 50, 100, 100])
        a, b = rng.randrange(limit), rng.randrange(limit)
        if is_held_out(a, b) == held_out:
            break
    if rng.random() < 0.2 and a < 20 and b <= a:
        return _question(_SUBTRACT, rng, a, b), f"Take {b} from {a}: {a - b} + {b} = {a}.", f"{a} - {b} = {a - b}.", None
    steps, answer = _add_steps(a, b), f"{a} + {b} = {a + b}."
    return _question(_ADD, rng, a, b), steps, answer, answer if a < 10 and b < 10 else f"{steps} {answer}"
