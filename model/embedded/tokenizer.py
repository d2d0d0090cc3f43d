"""A byte-level BPE tokenizer with the pre-tokenizer of Qwen3.5 (`tokenizer.ggml.pre` = "qwen35"), and its training.

The corpus is ASCII, so the character classes of the rule are spelt for ASCII alone and anything else is refused. The
programs of this project and llama.cpp, which know all of Unicode, split ASCII the same way.
"""

import collections
import re

CONTROL = ["<|endoftext|>", "<|im_start|>", "<|im_end|>"]
USER_DEFINED = ["<think>", "</think>", "<tool_call>", "</tool_call>", "<tool_response>", "</tool_response>"]
SPECIAL = CONTROL + USER_DEFINED

_PIECE = re.compile(
    r"'(?:[sS]|[tT]|[rR][eE]|[vV][eE]|[mM]|[lL][lL]|[dD])"  # contractions
    r"|[^\r\nA-Za-z0-9]?[A-Za-z]+"  # a word, with one character before it
    r"|[0-9]"  # one digit
    r"| ?[^\sA-Za-z0-9]+[\r\n]*"  # punctuation
    r"|\s*[\r\n]+|\s+(?!\S)|\s+"
)
_AT_SPECIAL = re.compile("(" + "|".join(re.escape(s) for s in SPECIAL) + ")")


def _byte_alphabet():
    """The printable character that stands for each byte in a vocabulary: itself, or one from U+0100 on."""
    itself = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    others = [b for b in range(256) if b not in set(itself)]
    return {**{b: chr(b) for b in itself}, **{b: chr(0x100 + i) for i, b in enumerate(others)}}


ALPHABET = _byte_alphabet()


def printable(token):
    return "".join(ALPHABET[b] for b in token)


def pieces(text):
    """What merges never cross: the pieces of a text without special tokens."""
    if not text.isascii():
        raise ValueError(f"not ASCII: {text!r}")
    return _PIECE.findall(text)


def train(documents, n_vocab):
    """The merges, best first, that fill a vocabulary of n_vocab with the bytes and the special tokens."""
    counts = collections.Counter(
        piece
        for document in documents
        for part in _AT_SPECIAL.split(document)
        if part not in SPECIAL
        for piece in pieces(part)
    )
    words = [[bytes([b]) for b in piece.encode()] for piece in counts]
    weight = list(counts.values())
    pairs = collections.Counter()
    where = collections.defaultdict(set)  # pair -> words that have had it

    def count(index, sign):
        word = words[index]
        for pair in zip(word, word[1:]):
            pairs[pair] += sign * weight[index]
            where[pair].add(index)

    for index in range(len(words)):
        count(index, +1)
    merges = []
    while len(merges) + 256 + len(SPECIAL) < n_vocab:
        best = max(pairs, key=lambda pair: (pairs[pair], pair))
        if pairs[best] < 2:
            raise ValueError(f"the corpus has material for {len(merges)} merges only")
        merges.append(best)
        for index in where.pop(best):
            count(index, -1)
            words[index] = _merged(words[index], best)
            count(index, +1)
        del pairs[best]
    return merges


def _merged(word, pair):
    out = []
    for symbol in word:
        if out and (out[-1], symbol) == pair:
            out[-1] = out[-1] + symbol
        else:
            out.append(symbol)
    return out


class Tokenizer:
    """ids: the 256 bytes, then one for each merge, then the special tokens."""

    def __init__(self, merges):
        self.merges = merges
        self._rank = {pair: rank for rank, pair in enumerate(merges)}
        self.vocabulary = [bytes([b]) for b in range(256)] + [a + b for a, b in merges]
        if len(set(self.vocabulary)) != len(self.vocabulary):
            raise ValueError("two merges make the same token")
        self._id = {token: index for index, token in enumerate(self.vocabulary)}
        self.special = {text: len(self.vocabulary) + i for i, text in enumerate(SPECIAL)}
        self._known = {}

    @property
    def n_vocab(self):
        return len(self.vocabulary) + len(SPECIAL)

    def length(self, token):
        """Bytes of a token's text."""
        n = len(self.vocabulary)
        return len(self.vocabulary[token]) if token < n else len(SPECIAL[token - n])

    def encode(self, text):
        """Special tokens are recognised everywhere, as in a rendered chat."""
        ids = []
        for part in _AT_SPECIAL.split(text):
            if part in self.special:
                ids.append(self.special[part])
            else:
                for piece in pieces(part):
                    ids += self._encode_piece(piece)
        return ids

    def _encode_piece(self, piece):
        if piece not in self._known:
            word = [bytes([b]) for b in piece.encode()]
            while len(word) > 1:
                best = min(zip(word, word[1:]), key=lambda pair: self._rank.get(pair, len(self._rank)))
                if best not in self._rank:
                    break
                word = _merged(word, best)
            self._known[piece] = [self._id[symbol] for symbol in word]
        return self._known[piece]

    def decode(self, ids):
        tokens = self.vocabulary + [text.encode() for text in SPECIAL]
        return b"".join(tokens[i] for i in ids).decode("utf-8", "replace")
