"""The texts of the tokenizer test: made from a fixed seed, so that every run compares the same lines."""

import random

# Assigned in Unicode 15.1, which llama.cpp follows, and not in Debian's 15.0: CJK extension I (letters there,
# nothing here). The five other new ones, U+2FFC…2FFF and U+31EF, are symbols and so in the same class as
# unassigned code points.
UNICODE_15_1_LETTERS = range(0x2EBF0, 0x2EE5E)

CODE = """
def fib(n):\n    return n if n < 2 else fib(n - 1) + fib(n - 2)\n
for (int i = 0; i < 10; ++i) {\n\tprintf("%d\\n", i);\n}\n
template <class T, std::size_t N>\nconstexpr auto size(const T (&)[N]) noexcept { return N; }
SELECT u.name, COUNT(*) FROM users AS u LEFT JOIN orders o ON o.user_id = u.id WHERE o.total >= 99.95 GROUP BY 1;
const f = async ({a, ...rest}) => await fetch(`/api/${a}?x=${rest.x ?? 0}`);
<div class="a-b" id='x_1'>&nbsp;&#8212;<!-- c --></div>
fn main() -> Result<(), Box<dyn Error>> { let x: u64 = 0xFF_FF; println!("{x:?}"); Ok(()) }
#!/bin/sh\nset -eu\ngrep -rn "foo\\|bar" . | awk -F: '{ print $1 }' | sort -u > /dev/null 2>&1
{"k": [1, -2.5e+10, true, null], "s": "\\u00e9\\n"}
x = 0b1010_1100; y ^= ~x >> 3; z = x if not y else (lambda: None)()
\\begin{equation} \\sum_{i=1}^{n} x_i^2 \\le \\int_0^\\infty e^{-t}\\,dt \\end{equation}
@@ -1,7 +1,9 @@\n-old line\n+new line\n context
""".strip("\n").split("\n")

WORDS = {
    "english": "I'm you're he'll they'd we've don't it's The quick brown fox isn't O'Neill's 'tis CAN'T I'LL foo_bar "
    "camelCase HTTPServer re-entry e.g. naïve café co-op well-being",
    "german": "Straße Übermut Größe Käse daß Füße Schlüsselbundanhänger ÄÖÜ",
    "turkish": "İstanbul ılık ğ ş Iğdır 'S 'ſ K'ler",
    "chinese": "你好 世界 我们 正在 测试 分词器 。 ， 「引号」 ２０２４年 中华人民共和国 繁體中文 𠀀𠮷𪚥",
    "japanese": "こんにちは 世界 カタカナ ひらがな ｶﾀｶﾅ 漢字かな交じり文 、 。 々 ー 東京都",
    "korean": "안녕하세요 세계 토크나이저 시험 한글 ᄒ ᅡ ᆫ 각",
    "arabic": "مرحبا بالعالم السَّلَامُ عَلَيْكُمْ ١٢٣ ، ؟ لا إله ﷺ",
    "hebrew": "שלום עולם בְּרֵאשִׁית ״ ׳",
    "devanagari": "नमस्ते दुनिया क्षत्रिय हिन्दी १२३ । ॐ कि की र्",
    "bengali": "নমস্কার বাংলা ক্ষ ১২৩",
    "tamil": "வணக்கம் உலகம் கொ ௧௨௩",
    "thai": "สวัสดีชาวโลก ภาษาไทย ก็ น้ำ ๑๒๓",
    "burmese": "မြန်မာဘာသာ ကြော် ၁၂၃",
    "tibetan": "བོད་སྐད་ ཀྱི ༡༢༣",
    "khmer": "ភាសាខ្មែរ ស្រី",
    "russian": "Привет мир ёлка Съешь же ещё этих мягких французских булок",
    "greek": "Γειά σου Κόσμε ὦ ἄνθρωπε Ἀθῆναι",
    "vietnamese": "Tiếng Việt được viết bằng chữ Quốc ngữ",
    "georgian": "გამარჯობა მსოფლიო ᲒᲐᲛᲐᲠᲯᲝᲑᲐ",
    "ethiopic": "ሰላም ዓለም ፩፪፫",
    "symbols": "→ ≠ ∑ √ ∞ © ® ™ € £ ₿ № ‰ … — – « » „ “ ” ‘ ’ • ◆ ♥ ½ ¾ ² ³ Ⅷ ⅓ ㊗ ① ﬁ",
}  # fmt: skip

COMBINING = "\u0300\u0301\u0302\u0308\u0323\u0327\u0338\u0489\u05b0\u064b\u0651\u093c\u094d\u0e31\u0e34\u20dd\u20e3\u302a\u3099\ufe0f"
SPACES = " \t\n\r\u000b\u000c\u0085\u00a0\u1680\u2000\u2003\u2009\u200a\u2028\u2029\u202f\u205f\u3000"
NEAR_SPACES = "\u180e\u200b\u200c\u200d\u2060\ufeff\u00ad"
EMOJI = (
    "😀 👍🏽 👨‍👩‍👧‍👦 🏳️‍🌈 🧑🏿‍💻 ❤️ ☺️ 🇩🇪 🇯🇵🇺🇸 1️⃣ #️⃣ 🏴󠁧󠁢󠁥󠁮󠁧󠁿 🫠 🫱🏻‍🫲🏿 👩🏾‍❤️‍💋‍👨🏼 🐻‍❄️ 🕵️‍♀️ 💥 ™️ ⏩ 🀄 🃏"
).split(" ")
DIGITS = ["0", "7", "42", "123", "1234567890", "3.14159", "1,000,000", "-17", "1e-9", "0xDEADBEEF", "½", "²³", "Ⅻ", "٣٤", "१२", "５６", "𝟙𝟚", "1st", "v2.0.1", "12:34:56", "2024-02-29"]
CONTROL_SPELLINGS = [
    "<|im_start|>", "<|im_end|>", "<|endoftext|>", "<think>", "</think>", "<tool_call>", "</tool_call>",
    "<tool_response>", "</tool_response>", "<|fim_prefix|>", "<|fim_suffix|>", "<|fim_pad|>", "<|repo_name|>",
    "<|vision_start|>", "<|image_pad|>", "</s>", "<s>", "<|im_start", "|im_end|>", "<|IM_START|>", "< |im_end|>",
    "<|im_start|><|im_start|>", "<<think>>", "<|unknown|>", "[PAD151700]",
]  # fmt: skip
# Truncated, overlong, surrogate, beyond the last plane's leads, bare continuation bytes.
INVALID = [b"\x80", b"\xbf\xbf", b"\xc3", b"\xc0\x80", b"\xe2\x82", b"\xe0\x80\x80", b"\xed\xa0\x80", b"\xf0\x9f\x98",
           b"\xf8\x88\x80\x80\x80", b"\xff", b"\xfe\xff", b"\xe2\x28\xa1", b"\xf0\x28\x8c\xbc", b"\xc3\x28"]  # fmt: skip


def _words(rng):
    words = [w for w in WORDS[rng.choice(sorted(WORDS))].split(" ")]
    return rng.choice([" ", " ", "  ", "\n", "", "\t", "\u3000"]).join(rng.choices(words, k=rng.randrange(1, 12)))


def _code(rng):
    lines = rng.choices(CODE, k=rng.randrange(1, 4))
    return ("\n" + rng.choice(["", "    ", "\t", "\t\t"])).join(lines) + rng.choice(["", "\n", "\n\n", "\r\n", "  "])


def _spaces(rng):
    parts = []
    for _ in range(rng.randrange(1, 8)):
        parts.append("".join(rng.choices(SPACES + SPACES[:4] * 4 + NEAR_SPACES, k=rng.randrange(0, 6))))
        parts.append(rng.choice(["a", "B", "7", "!", "中", "é", "'s", "_", "", "x=1;", "ก"]))
    return "".join(parts)


def _combining(rng):
    out = []
    for _ in range(rng.randrange(1, 10)):
        out.append(rng.choice("aeioAE n 1! 中か한ก\u0915\u05d0\u0628."))
        out.append("".join(rng.choices(COMBINING, k=rng.randrange(0, 4))))
    return "".join(out)


def _emoji(rng):
    return rng.choice(["", " ", "a"]).join(rng.choices(EMOJI, k=rng.randrange(1, 8)))


def _digits(rng):
    return rng.choice(["", " ", ",", "\n", " = "]).join(rng.choices(DIGITS, k=rng.randrange(1, 8)))


def _control(rng):
    pieces = rng.choices(CONTROL_SPELLINGS + ["user", "\n", " ", "hello", "中", "'"], k=rng.randrange(1, 9))
    return "".join(pieces)


def _punctuation(rng):
    marks = "!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~¡¿§¶†‡·"
    return "".join(rng.choices(marks * 2 + " \n\ra'sSlLtT1", k=rng.randrange(1, 24)))


def _any_code_point(rng):
    def draw():
        while True:
            c = rng.choice([rng.randrange(0x250), rng.randrange(0x3000), rng.randrange(0x10000), rng.randrange(0x110000)])
            if not 0xD800 <= c < 0xE000 and c not in UNICODE_15_1_LETTERS:
                return chr(c)

    return "".join(draw() for _ in range(rng.randrange(1, 24)))


def _mixed(rng):
    makers = [_words, _code, _spaces, _combining, _emoji, _digits, _control, _punctuation, _any_code_point]
    return "".join(rng.choice(makers)(rng) for _ in range(rng.randrange(2, 5)))


def _invalid(rng):
    parts = []
    for _ in range(rng.randrange(1, 6)):
        parts.append(rng.choice(INVALID))
        parts.append(rng.choice([b"", b" ", b"a", "é".encode(), "中".encode(), b"1", b"<|im_end|>", b"\n"]))
    return b"".join(parts)


def texts(seed=20261129):
    """[(kind, bytes)]: about 2,600 texts; kind "invalid" is not valid UTF-8."""
    rng = random.Random(seed)
    plan = [
        ("words", _words, 600), ("code", _code, 250), ("spaces", _spaces, 350), ("combining", _combining, 250),
        ("emoji", _emoji, 150), ("digits", _digits, 150), ("control", _control, 200), ("punctuation", _punctuation, 200),
        ("any code point", _any_code_point, 200), ("mixed", _mixed, 150),
    ]  # fmt: skip
    made = [("empty", b"")]
    for kind, make, count in plan:
        made += [(kind, make(rng).encode()) for _ in range(count)]
    made += [("invalid", _invalid(rng)) for _ in range(150)]
    made += [("long run", (c * 3000).encode()) for c in ("a", " ", "\n", "=", "1", "中", "\u0301")]
    return made


def code_point_texts(chunk=128):
    """Every code point a Unicode version so far has given a meaning (and many unassigned ones) in a few
    surroundings. Line ends after it tell its class: punctuation takes the first one into its piece, anything else
    leaves "\\n \\n", which is one token. Surrogates are no text."""
    spans = [(1, 0xD800), (0xE000, 0x33480), (0xE0000, 0xE0200)]
    points = [c for low, high in spans for c in range(low, high) if c not in UNICODE_15_1_LETTERS]
    for start in range(0, len(points), chunk):
        yield "".join(f"a{chr(c)}b {chr(c)}{chr(c)}1{chr(c)}\n \n" for c in points[start : start + chunk]).encode()
