"""Small tokenizers of kinds that the tiny models do not have."""

from __future__ import annotations

import json

from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers

from roundhouse.serve.engine.tokenizer import EngineTokenizer

BYTE_FALLBACK_EOS = 1


def byte_fallback_tokenizer() -> EngineTokenizer:
    """A tokenizer of Llama 2's kind: words with ▁, and 256 tokens that are one raw byte each."""
    raw = Tokenizer(models.BPE(byte_fallback=True, unk_token="<unk>"))
    raw.pre_tokenizer = pre_tokenizers.Metaspace(prepend_scheme="first")
    raw.decoder = decoders.Sequence(
        [decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse(), decoders.Strip(" ", 1, 0)]
    )
    byte_tokens = [f"<0x{byte:02X}>" for byte in range(256)]
    trainer = trainers.BpeTrainer(vocab_size=340, special_tokens=["<unk>", "<s>", *byte_tokens], show_progress=False)
    raw.train_from_iterator(["the engine house stood at the end of the yard"], trainer)
    data = json.loads(raw.to_str())
    data["added_tokens"] = [token for token in data["added_tokens"] if token["content"] in ("<unk>", "<s>")]
    return EngineTokenizer(Tokenizer.from_str(json.dumps(data)), frozenset({BYTE_FALLBACK_EOS}))


def word_tokenizer() -> EngineTokenizer:
    """Whole words and nothing else: no text of other words can be written with it."""
    raw = Tokenizer(models.WordLevel({"the": 0, "yard": 1, "[UNK]": 2}, unk_token="[UNK]"))
    raw.pre_tokenizer = pre_tokenizers.Whitespace()
    return EngineTokenizer(raw, frozenset({2}))
