"""Lines of text in many scripts, the same for the same seed: sentences, mixtures, code, symbols and broken text."""

from __future__ import annotations

import random
from collections.abc import Iterator

SENTENCES = (
    "The quick brown fox jumps over the lazy dog, doesn't it? They're sure we'll see; I've said so 3 times.",
    "In 2024 the price rose from $1,299.99 to $1,350.00 (about 3.85%), which nobody at Müller & Söhne had expected.",
    "Where is the nearest train station? It's 400 metres away, behind the old library's garden.",
    "Le cœur déçu mais l'âme plutôt naïve, Louÿs rêva de crapaüter en canoë au delà des îles.",
    "Où est la bibliothèque ? L'été dernier, nous avons déjeuné à côté de l'Hôtel-de-Ville.",
    "Zwölf Boxkämpfer jagen Viktor quer über den großen Sylter Deich; Straße, Maß und Größe.",
    "El pingüino Wenceslao hizo kilómetros bajo exhaustiva lluvia y frío, ¿añoraba a su querido cachorro?",
    "À noite, vovô Kowalsky vê o ímã cair no pé do pinguim queixoso e vovó põe açúcar no chá.",
    "Pchnąć w tę łódź jeża lub ośm skrzyń fig. Zażółć gęślą jaźń!",
    "Příliš žluťoučký kůň úpěl ďábelské ódy. Nechť již hříšné saxofony ďáblů rozezvučí síň.",
    "Pijamalı hasta yağız şoföre çabucak güvendi; İstanbul'da ılık bir gün.",
    "Tiếng Việt có nhiều dấu: Hà Nội, Đà Nẵng, phở bò, cà phê sữa đá.",
    "Съешь же ещё этих мягких французских булок, да выпей чаю. Москва, 12 апреля 1961 года.",
    "Чуєш їх, доцю, га? Кумедна ж ти, прощайся без ґольфів! Київ — столиця України.",
    "Ξεσκεπάζω την ψυχοφθόρα βδελυγμία. Η Αθήνα είναι η πρωτεύουσα της Ελλάδας.",
    "نص حكيم له سر قاطع وذو شأن عظيم مكتوب على ثوب أخضر ومغلف بجلد أزرق.",
    "اللُّغَةُ العَرَبِيَّةُ جَمِيلَةٌ، وَعَدَدُ حُرُوفِهَا ٢٨ حَرْفًا.",
    "دختر زیبا می‌رود و کتاب‌هایش را می‌خواند؛ شمارهٔ ۱۲۳۴.",
    "דג סקרן שט בים מאוכזב ולפתע מצא חברה. שָׁלוֹם עֲלֵיכֶם!",
    "ऋषियों को सताने वाले दुष्ट राक्षसों के राजा रावण का सर्वनाश। भारत की राजधानी नई दिल्ली है।",
    "আমি বাংলায় গান গাই; আজ আকাশে অনেক তারা।",
    "தமிழ் மொழி மிகவும் பழமையானது; யாமறிந்த மொழிகளிலே இனிதாவது எங்கும் காணோம்.",
    "เป็นมนุษย์สุดประเสริฐเลิศคุณค่า กว่าบรรดาฝูงสัตว์เดรัจฉาน กรุงเทพมหานครเป็นเมืองหลวง",
    "我能吞下玻璃而不伤身体。今天天气很好，我们去公园散步吧！人工智能正在改变世界。",
    "視野無限廣，窗外有藍天。臺灣的夜市非常熱鬧，２０２４年。",
    "いろはにほへと ちりぬるを。東京は日本の首都です。カタカナとひらがなと漢字、ﾊﾝｶｸ文字。",
    "吾輩は猫である。名前はまだ無い。どこで生れたかとんと見当がつかぬ。",
    "키스의 고유조건은 입술끼리 만나야 하고 특별한 기술은 필요치 않다. 서울은 대한민국의 수도이다.",
    "ქართული ენა ულამაზესია; Հայերենը հնագույն լեզու է; አማርኛ ጥሩ ቋንቋ ነው።",
    "ភាសាខ្មែរ ພາສາລາວ မြန်မာဘာသာ བོད་སྐད་ ᠮᠣᠩᠭᠣᠯ සිංහල తెలుగు ಕನ್ನಡ മലയാളം ગુજરાતી ਪੰਜਾਬੀ",
)
SYMBOLS = (
    "👨‍👩‍👧‍👦 family, 🏳️‍🌈 flag, 👍🏽 thumb, 🇩🇪🇯🇵 flags, 1️⃣ keycap, ❤️ heart, ☺ ☹︎ 🧑🏿‍🚀 🫠",
    "ﬁne ﬂow ½ ⅔ ① Ⅷ ㎏ ㍻ ™ © ® ℃ Å Å é é ǆ ẞ ß ŉ ﷺ ﬃ ²³ ₁₂ ℵ ℝ 𝔘𝔫𝔦𝔠𝔬𝔡𝔢 𝟙𝟚𝟛",
    "a\u0301e\u0300o\u0308 n\u0303 \u0e01\u0e49 \u1112\u1161\u11ab \u0915\u094d\u0937 q\u0323\u0307 Z͑ͫ̓ͪ̂ͫ̽͏̴̙̤̞͉͚̯̞̠͍A̴̵̜̰͔ͫ͗͢L̠ͨͧͩ͘G̴̻͈͍͔̹̑͗̎̅͛́Ǫ̵̹̻̝̳͂̌̌͘",
    "“quotes” ‘single’ «guillemets» „unten“ – — … • · ¿¡ § ¶ † ‡ ‰ ′ ″ ‽ ⁂ ※ 。、「」【】《》～！？",
    "∀x∈ℝ: ⌈x⌉ = −⌊−x⌋, α ∧ ¬β = ¬(¬α ∨ β), ∑∫∂√∞≈≠≤≥ × ÷ ± → ⇒ ↔ ■□▲△◆◇○●★☆",
    "€100 £20 ¥3000 ₹500 ₿0.01 $5.00 20% 10‰ #hashtag @user user.name+tag@example.co.uk https://example.com/a?b=c&d=%20e#f",
    "zero\u200bwidth\u200cjoin\u200dmark\ufeffbom\u00adsoft\u2060word \u200eLTR\u200f RTL \u202eoverride\u202c \u2028line\u2029para",
    "tab\there\x0bvertical\x0cfeed\x00nul\x07bell\x1besc\x7fdel\x80c1\x9f\ufffd\ufffe",
    "  leading   and trailing   \u00a0nbsp\u3000ideographic\u2003em\u205fmath\u1680ogham\u180emvs\x85nel \r\n\t ",
    "<s> text </s> [CLS] in [MASK] the <|endoftext|> middle <pad><unk> <|im_start|>user\nHi<|im_end|> <0x41> ▁meta▁space ## ##ing </w>",
    "'s 't 're 've 'm 'll 'd 'S 'T I'M YOU'LL can't ‘s ’s n't isn't ' s ' t , . ! ? x , y . z ! w ?",
    "1234567890 12 345 6789 3.14159 1,000,000 0x1F 1e-10 ٠١٢٣٤٥ ०१२३ ๐๑๒ ⅣⅤ ²³ 一二三",
)
CODE = (
    "def f(x: int = 0) -> str:\n\treturn f'{x!r:>10}'  # comment\n",
    "for (int i = 0; i < n; ++i) {\n    sum += a[i] * b[i]; // dot\n}\r\n",
    "SELECT COUNT(*) FROM users WHERE name LIKE '%O''Brien%' AND age >= 18;",
    '{"key": [1, 2.5, null, true], "nested": {"a\\u00e9": "\\n\\t\\\\"}}',
    "<div class=\"a b\" id='c'>&nbsp;&lt;text&gt;</div><!-- note -->",
    "$ grep -rnE '^[A-Z_]+=.*$' ./src | awk '{print $1}' > /dev/null 2>&1 &",
    "camelCaseIdentifier snake_case_name CONSTANT_VALUE __dunder__ kebab-case x86_64 utf8 README.md",
    'if (!ok || err != nil) { return fmt.Errorf("bad: %w", err) }',
)
SPACES = (" ", "  ", "   ", "\t", "\n", "\n\n", "\r\n", " \n ", "\u00a0", "\u3000", "\t\t", "     ", "\u2028")
BLOCKS = (
    (0x20, 0x7E), (0xA0, 0x17F), (0x300, 0x36F), (0x370, 0x3FF), (0x400, 0x4FF), (0x590, 0x5FF), (0x600, 0x6FF),
    (0x900, 0x97F), (0xE00, 0xE7F), (0x1E00, 0x1FFF), (0x2000, 0x22FF), (0x2460, 0x27BF), (0x3040, 0x30FF),
    (0x4E00, 0x9FFF), (0xAC00, 0xD7A3), (0xF900, 0xFAFF), (0xFE00, 0xFFEF), (0x1D400, 0x1D7FF), (0x1F300, 0x1FAFF),
    (0x20000, 0x2A6DF), (0x1, 0x1F), (0x7F, 0x9F), (0xE000, 0xE010), (0xFB00, 0xFDFF), (0x1100, 0x11FF),
)  # fmt: skip


def lines(count: int, seed: int = 0) -> list[str]:
    """``count`` lines of every kind; the first are the texts of this module as they are.

    No line ends in NUL, which the arrays of OpenVINO's Python API drop.
    """
    made = _lines(random.Random(seed))
    return [next(made).rstrip("\0") for _ in range(count)]


def _lines(random: random.Random) -> Iterator[str]:
    yield from SENTENCES
    yield from SYMBOLS
    yield from CODE
    yield from SPACES
    yield ""
    kinds = (_words, _words, _words, _mixture, _mixture, _code, _spaced, _characters, _symbols, _repeated, _empty)
    while True:
        yield random.choice(kinds)(random)


def _words(random: random.Random) -> str:
    """A part of a sentence, its words in a different case or order."""
    words = random.choice(SENTENCES).split(" ")
    start = random.randrange(len(words))
    part = words[start : start + random.randint(1, 12)]
    if random.random() < 0.3:
        random.shuffle(part)
    text = " ".join(part)
    return random.choice((str, str, str, str.upper, str.title, str.swapcase))(text)


def _mixture(random: random.Random) -> str:
    """Parts of several texts, with or without a space between them."""
    between = random.choice((" ", " ", "", "-", ", "))
    return between.join(_words(random) if random.random() < 0.7 else _symbols(random) for _ in range(3))


def _code(random: random.Random) -> str:
    text = random.choice(CODE)
    start = random.randrange(len(text))
    return text[start:] + "".join(random.choice(CODE)[: random.randint(0, 40)] for _ in range(random.randint(0, 2)))


def _spaced(random: random.Random) -> str:
    """Words with broken whitespace before, between and after them."""
    words = random.choice(SENTENCES).split(" ")[: random.randint(1, 10)]
    return "".join(random.choice((*SPACES, "")) + word for word in words) + random.choice((*SPACES, ""))


def _characters(random: random.Random) -> str:
    """Random code points of a few blocks; some are not assigned."""
    blocks = random.sample(BLOCKS, random.randint(1, 3))
    return "".join(chr(random.randint(*random.choice(blocks))) for _ in range(random.randint(1, 30)))


def _symbols(random: random.Random) -> str:
    text = random.choice(SYMBOLS)
    start = random.randrange(len(text))
    return text[start : start + random.randint(1, 40)]


def _repeated(random: random.Random) -> str:
    text = random.choice((_symbols, _words, _characters))(random)[: random.randint(1, 12)]
    return text * random.randint(2, 20)


def _empty(random: random.Random) -> str:
    return random.choice(("", "", *SPACES, random.choice(SPACES) * random.randint(1, 8)))
