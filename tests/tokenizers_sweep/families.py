"""Tokenizers in the configurations of published model families, with vocabularies trained on the corpus."""

from __future__ import annotations

import functools
import io
import tempfile
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import sentencepiece
from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, processors, trainers
from transformers import BertGenerationTokenizer, PreTrainedTokenizerBase, PreTrainedTokenizerFast, SiglipTokenizer

LLAMA_3_SPLIT = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+"
    r"|\s+(?!\S)|\s+"
)
QWEN_2_SPLIT = LLAMA_3_SPLIT.replace(r"\p{N}{1,3}", r"\p{N}")
GPT_4O_SPLIT = (
    r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?"
    r"|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?"
    r"|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)
DEEPSEEK_SPLIT = (
    r"[!\"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+| ?[\p{P}\p{S}]+[\r\n]*"
    r"|\s*[\r\n]+|\s+(?!\S)|\s+"
)
CLIP_SPLIT = r"'s|'t|'re|'ve|'m|'ll|'d|[\p{L}]+|[\p{N}]|[^\s\p{L}\p{N}]+"

SIZE = 3000
FAMILIES: dict[str, Callable[[Sequence[str]], PreTrainedTokenizerBase]] = {}


def family(build: Callable[[Sequence[str]], PreTrainedTokenizerBase]) -> Callable[..., PreTrainedTokenizerBase]:
    """Decorator: the function builds the tokenizer of the family that has its name."""
    FAMILIES[build.__name__] = build
    return build


@family
def bert_uncased(lines: Sequence[str]) -> PreTrainedTokenizerFast:
    return _bert(lines, lowercase=True)


@family
def bert_cased(lines: Sequence[str]) -> PreTrainedTokenizerFast:
    return _bert(lines, lowercase=False)


@family
def gpt2(lines: Sequence[str]) -> PreTrainedTokenizerFast:
    made = Tokenizer(models.BPE())
    made.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    made.decoder = decoders.ByteLevel()
    made.post_processor = processors.ByteLevel(trim_offsets=False)
    return _byte_level(made, lines, ["<|endoftext|>"], eos_token="<|endoftext|>", unk_token="<|endoftext|>")


@family
def roberta(lines: Sequence[str]) -> PreTrainedTokenizerFast:
    made = Tokenizer(models.BPE())
    made.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=True)
    made.decoder = decoders.ByteLevel()
    special = ["<s>", "<pad>", "</s>", "<unk>", AddedToken("<mask>", lstrip=True, special=True)]
    _train_byte_level(made, lines, special)
    made.post_processor = processors.RobertaProcessing(("</s>", 2), ("<s>", 0), add_prefix_space=True)
    return _fast(made, bos_token="<s>", eos_token="</s>", unk_token="<unk>", pad_token="<pad>", mask_token="<mask>")


@family
def llama3(lines: Sequence[str]) -> PreTrainedTokenizerFast:
    made = Tokenizer(models.BPE(ignore_merges=True))
    made.pre_tokenizer = _split_bytes(LLAMA_3_SPLIT)
    made.decoder = decoders.ByteLevel()
    _train_byte_level(made, lines, ["<|begin_of_text|>", "<|end_of_text|>", "<|eot_id|>"])
    template = processors.TemplateProcessing(
        "<|begin_of_text|> $A", "<|begin_of_text|> $A <|begin_of_text|>:1 $B:1", [("<|begin_of_text|>", 0)]
    )
    made.post_processor = processors.Sequence([processors.ByteLevel(trim_offsets=False), template])
    return _fast(made, bos_token="<|begin_of_text|>", eos_token="<|end_of_text|>", padding_side="left")


@family
def qwen2(lines: Sequence[str]) -> PreTrainedTokenizerFast:
    made = Tokenizer(models.BPE())
    made.normalizer = normalizers.NFC()
    made.pre_tokenizer = _split_bytes(QWEN_2_SPLIT)
    made.decoder = decoders.ByteLevel()
    made.post_processor = processors.ByteLevel(trim_offsets=False)
    return _byte_level(
        made, lines, ["<|endoftext|>", "<|im_start|>", "<|im_end|>"], eos_token="<|im_end|>", pad_token="<|endoftext|>"
    )


@family
def gpt4o(lines: Sequence[str]) -> PreTrainedTokenizerFast:
    made = Tokenizer(models.BPE())
    made.pre_tokenizer = _split_bytes(GPT_4O_SPLIT)
    made.decoder = decoders.ByteLevel()
    return _byte_level(made, lines, ["<|endoftext|>", "<|endofprompt|>"], eos_token="<|endoftext|>")


@family
def deepseek(lines: Sequence[str]) -> PreTrainedTokenizerFast:
    made = Tokenizer(models.BPE())
    made.pre_tokenizer = pre_tokenizers.Sequence(
        [
            pre_tokenizers.Split(Regex(r"\p{N}{1,3}"), "isolated"),
            pre_tokenizers.Split(Regex("[一-龥぀-ゟ゠-ヿ]+"), "isolated"),
            pre_tokenizers.Split(Regex(DEEPSEEK_SPLIT), "isolated"),
            pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False),
        ]
    )
    made.decoder = decoders.ByteLevel()
    return _byte_level(made, lines, ["<｜begin▁of▁sentence｜>", "<｜end▁of▁sentence｜>"])


@family
def falcon(lines: Sequence[str]) -> PreTrainedTokenizerFast:
    made = Tokenizer(models.BPE())
    made.pre_tokenizer = pre_tokenizers.Sequence(
        [
            pre_tokenizers.Punctuation("contiguous"),
            pre_tokenizers.ByteLevel(add_prefix_space=False),
            pre_tokenizers.Digits(individual_digits=False),
            pre_tokenizers.Split(Regex("[0-9][0-9][0-9]"), "isolated"),
        ]
    )
    made.decoder = decoders.ByteLevel()
    return _byte_level(made, lines, ["<|endoftext|>", ">>QUESTION<<"], eos_token="<|endoftext|>")


@family
def clip(lines: Sequence[str]) -> PreTrainedTokenizerFast:
    made = Tokenizer(models.BPE(end_of_word_suffix="</w>", unk_token="<|endoftext|>"))
    made.normalizer = normalizers.Sequence(
        [normalizers.NFC(), normalizers.Replace(Regex(r"\s+"), " "), normalizers.Lowercase()]
    )
    made.pre_tokenizer = pre_tokenizers.Sequence(
        [
            pre_tokenizers.Split(Regex(CLIP_SPLIT), "removed", invert=True),
            pre_tokenizers.ByteLevel(add_prefix_space=False),
        ]
    )
    made.decoder = decoders.ByteLevel()
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    trainer = trainers.BpeTrainer(
        vocab_size=SIZE,
        special_tokens=["<|startoftext|>", "<|endoftext|>"],
        initial_alphabet=alphabet,
        end_of_word_suffix="</w>",
        show_progress=False,
    )
    made.train_from_iterator(lines, trainer)
    made.post_processor = processors.RobertaProcessing(
        ("<|endoftext|>", 1), ("<|startoftext|>", 0), trim_offsets=False, add_prefix_space=False
    )
    return _fast(
        made, bos_token="<|startoftext|>", eos_token="<|endoftext|>", unk_token="<|endoftext|>", model_max_length=77
    )


@family
def llama2(lines: Sequence[str]) -> PreTrainedTokenizerFast:
    made = _byte_fallback(lines, normalizers.Sequence([normalizers.Prepend("▁"), normalizers.Replace(" ", "▁")]))
    made.decoder = decoders.Sequence(
        [decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse(), decoders.Strip(" ", 1, 0)]
    )
    made.post_processor = processors.TemplateProcessing("<s> $A", "<s> $A <s>:1 $B:1", [("<s>", 1)])
    return _fast(made, bos_token="<s>", eos_token="</s>", unk_token="<unk>", padding_side="left")


@family
def gemma(lines: Sequence[str]) -> PreTrainedTokenizerFast:
    made = _byte_fallback(lines, normalizers.Replace(" ", "▁"))
    made.pre_tokenizer = pre_tokenizers.Split(" ", "merged_with_previous")
    made.decoder = decoders.Sequence([decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse()])
    made.post_processor = processors.TemplateProcessing("<s> $A", "<s> $A <s>:1 $B:1", [("<s>", 1)])
    return _fast(made, bos_token="<s>", eos_token="</s>", unk_token="<unk>")


@family
def mistral(lines: Sequence[str]) -> PreTrainedTokenizerFast:
    made = _byte_fallback(lines, None)
    made.pre_tokenizer = pre_tokenizers.Metaspace("▁", "first", split=False)
    made.decoder = decoders.Sequence(
        [decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse(), decoders.Strip(" ", 1, 0)]
    )
    made.post_processor = processors.TemplateProcessing("<s> $A", "<s> $A <s>:1 $B:1", [("<s>", 1)])
    return _fast(made, bos_token="<s>", eos_token="</s>", unk_token="<unk>")


@family
def t5(lines: Sequence[str]) -> PreTrainedTokenizerFast:
    made = _unigram(lines, ["<pad>", "</s>", "<unk>"], normalizers.Precompiled(_charsmap()))
    made.pre_tokenizer = pre_tokenizers.Sequence(
        [pre_tokenizers.WhitespaceSplit(), pre_tokenizers.Metaspace("▁", "always", split=True)]
    )
    made.decoder = decoders.Metaspace("▁", "always")
    made.post_processor = processors.TemplateProcessing("$A </s>", "$A </s> $B </s>", [("</s>", 1)])
    return _fast(made, eos_token="</s>", unk_token="<unk>", pad_token="<pad>")


@family
def xlm_roberta(lines: Sequence[str]) -> PreTrainedTokenizerFast:
    made = _unigram(lines, ["<s>", "<pad>", "</s>", "<unk>", "<mask>"], normalizers.Precompiled(_charsmap()), 3)
    made.pre_tokenizer = pre_tokenizers.Sequence(
        [pre_tokenizers.WhitespaceSplit(), pre_tokenizers.Metaspace("▁", "always", split=True)]
    )
    made.decoder = decoders.Metaspace("▁", "always")
    made.post_processor = processors.TemplateProcessing(
        "<s> $A </s>", "<s> $A </s> </s> $B </s>", [("<s>", 0), ("</s>", 2)]
    )
    return _fast(made, bos_token="<s>", eos_token="</s>", unk_token="<unk>", pad_token="<pad>", mask_token="<mask>")


@family
def albert(lines: Sequence[str]) -> PreTrainedTokenizerFast:
    normalizer = normalizers.Sequence(
        [
            normalizers.Replace("``", '"'),
            normalizers.Replace("''", '"'),
            normalizers.NFKD(),
            normalizers.StripAccents(),
            normalizers.Lowercase(),
            normalizers.Replace(Regex(" {2,}"), " "),
        ]
    )
    made = _unigram(lines, ["<pad>", "<unk>", "[CLS]", "[SEP]", "[MASK]"], normalizer, 1)
    made.pre_tokenizer = pre_tokenizers.Metaspace("▁", "always", split=True)
    made.decoder = decoders.Metaspace("▁", "always")
    made.post_processor = processors.TemplateProcessing(
        "[CLS]:0 $A:0 [SEP]:0", "[CLS]:0 $A:0 [SEP]:0 $B:1 [SEP]:1", [("[CLS]", 2), ("[SEP]", 3)]
    )
    return _fast(
        made, unk_token="<unk>", pad_token="<pad>", cls_token="[CLS]", sep_token="[SEP]", mask_token="[MASK]",
        model_input_names=["input_ids", "token_type_ids", "attention_mask"],
    )  # fmt: skip


@family
def deberta(lines: Sequence[str]) -> PreTrainedTokenizerFast:
    normalizer = normalizers.Sequence(
        [normalizers.Strip(), normalizers.Precompiled(_charsmap()), normalizers.Replace(Regex(" {2,}"), " ")]
    )
    made = _unigram(lines, ["[PAD]", "[CLS]", "[SEP]", "[UNK]", "[MASK]"], normalizer, 3)
    made.pre_tokenizer = pre_tokenizers.Metaspace("▁", "always", split=True)
    made.decoder = decoders.Metaspace("▁", "always")
    made.post_processor = processors.TemplateProcessing(
        "[CLS]:0 $A:0 [SEP]:0", "[CLS]:0 $A:0 [SEP]:0 $B:1 [SEP]:1", [("[CLS]", 1), ("[SEP]", 2)]
    )
    return _fast(
        made, unk_token="[UNK]", pad_token="[PAD]", cls_token="[CLS]", sep_token="[SEP]", mask_token="[MASK]",
        model_input_names=["input_ids", "token_type_ids", "attention_mask"],
    )  # fmt: skip


@family
def word_level(lines: Sequence[str]) -> PreTrainedTokenizerFast:
    made = Tokenizer(models.WordLevel(unk_token="[UNK]"))
    made.normalizer = normalizers.Sequence([normalizers.NFKC(), normalizers.Lowercase()])
    made.pre_tokenizer = pre_tokenizers.Whitespace()
    trainer = trainers.WordLevelTrainer(vocab_size=SIZE, special_tokens=["[UNK]", "[PAD]"], show_progress=False)
    made.train_from_iterator(lines, trainer)
    return _fast(made, unk_token="[UNK]", pad_token="[PAD]")


@family
def sentencepiece_unigram(lines: Sequence[str]) -> PreTrainedTokenizerBase:
    return _sentencepiece(lines, SiglipTokenizer, model_type="unigram", padding_side="right")


@family
def sentencepiece_bpe(lines: Sequence[str]) -> PreTrainedTokenizerBase:
    return _sentencepiece(lines, BertGenerationTokenizer, model_type="bpe", byte_fallback=True, padding_side="left")


def _sentencepiece(lines: Sequence[str], kind: Any, padding_side: str, **options: Any) -> PreTrainedTokenizerBase:
    """A tokenizer that the converter leaves to the library, since it is not a fast one."""
    texts = [line for line in lines if line.strip() and "\0" not in line]
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "spiece")
        sentencepiece.SentencePieceTrainer.train(
            sentence_iterator=iter(texts), model_prefix=str(path), vocab_size=SIZE + 1000, minloglevel=2, **options
        )
        return kind(vocab_file=str(path.with_suffix(".model")), padding_side=padding_side)


def _bert(lines: Sequence[str], lowercase: bool) -> PreTrainedTokenizerFast:
    made = Tokenizer(models.WordPiece(unk_token="[UNK]"))
    made.normalizer = normalizers.BertNormalizer(lowercase=lowercase)
    made.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    special = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    made.train_from_iterator(
        lines, trainers.WordPieceTrainer(vocab_size=SIZE, special_tokens=special, show_progress=False)
    )
    made.post_processor = processors.TemplateProcessing(
        "[CLS]:0 $A:0 [SEP]:0", "[CLS]:0 $A:0 [SEP]:0 $B:1 [SEP]:1", [("[CLS]", 2), ("[SEP]", 3)]
    )
    made.decoder = decoders.WordPiece()
    return _fast(
        made, unk_token="[UNK]", pad_token="[PAD]", cls_token="[CLS]", sep_token="[SEP]", mask_token="[MASK]",
        model_max_length=512, clean_up_tokenization_spaces=True,
        model_input_names=["input_ids", "token_type_ids", "attention_mask"],
    )  # fmt: skip


def _split_bytes(pattern: str) -> pre_tokenizers.PreTokenizer:
    return pre_tokenizers.Sequence(
        [
            pre_tokenizers.Split(Regex(pattern), "isolated"),
            pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False),
        ]
    )


def _train_byte_level(made: Tokenizer, lines: Sequence[str], special: list[Any]) -> None:
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    trainer = trainers.BpeTrainer(
        vocab_size=SIZE, special_tokens=special, initial_alphabet=alphabet, show_progress=False
    )
    made.train_from_iterator(lines, trainer)


def _byte_level(made: Tokenizer, lines: Sequence[str], special: list[Any], **options: Any) -> PreTrainedTokenizerFast:
    _train_byte_level(made, lines, special)
    return _fast(made, **options)


def _byte_fallback(lines: Sequence[str], normalizer: normalizers.Normalizer | None) -> Tokenizer:
    made = Tokenizer(models.BPE(unk_token="<unk>", byte_fallback=True, fuse_unk=True))
    if normalizer is not None:
        made.normalizer = normalizer
    made.pre_tokenizer = pre_tokenizers.Metaspace("▁", "always", split=True)
    special = ["<unk>", "<s>", "</s>", *(f"<0x{byte:02X}>" for byte in range(256))]
    trainer = trainers.BpeTrainer(
        vocab_size=SIZE, special_tokens=special, limit_alphabet=800, min_frequency=2, show_progress=False
    )
    made.train_from_iterator(lines, trainer)
    made.pre_tokenizer = None
    return _without_special(made, special[3:])


def _without_special(made: Tokenizer, tokens: Sequence[str]) -> Tokenizer:
    """A copy in which ``tokens`` are in the vocabulary alone."""
    import json

    stored = json.loads(made.to_str())
    stored["added_tokens"] = [token for token in stored["added_tokens"] if token["content"] not in tokens]
    return Tokenizer.from_str(json.dumps(stored))


def _unigram(
    lines: Sequence[str], special: list[str], normalizer: normalizers.Normalizer, unknown: int = 2
) -> Tokenizer:
    made = Tokenizer(models.Unigram())
    made.normalizer = normalizer
    made.pre_tokenizer = pre_tokenizers.Metaspace("▁", "always", split=True)
    trainer = trainers.UnigramTrainer(
        vocab_size=SIZE, special_tokens=special, unk_token=special[unknown], show_progress=False
    )
    # A rare character is an unknown token: all of them do not fit in the vocabulary. OpenVINO refuses a token of NUL.
    counts = Counter(character for line in lines for character in line if character != "\0")
    made.train_from_iterator(
        [line for line in lines if line.strip() and min(counts[character] for character in line) > 10], trainer
    )
    return made


@functools.cache
def _charsmap() -> bytes:
    """The normalization of published SentencePiece models, nmt_nfkc."""
    from sentencepiece import sentencepiece_model_pb2 as protocol

    model = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(["a b c d e"] * 20), model_writer=model, vocab_size=12, hard_vocab_limit=False,
        normalization_rule_name="nmt_nfkc", minloglevel=2,
    )  # fmt: skip
    parsed = protocol.ModelProto()
    parsed.ParseFromString(model.getvalue())
    return parsed.normalizer_spec.precompiled_charsmap


def _fast(made: Tokenizer, **options: Any) -> PreTrainedTokenizerFast:
    return PreTrainedTokenizerFast(tokenizer_object=made, **{"clean_up_tokenization_spaces": False, **options})
