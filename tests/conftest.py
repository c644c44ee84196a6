"""Shared fixtures: tiny random models, two kinds of tokenizers, the evaluation data's place."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest
import torch
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
from transformers import (
    Gemma3ForCausalLM,
    Gemma3TextConfig,
    LlamaConfig,
    LlamaForCausalLM,
    PreTrainedTokenizerFast,
)

CORPUS = [
    "The payment period is thirty (30) days from receipt of a correct invoice.",
    "The liability cap is USD 500,000; the rent is EUR 1,250 a month.",
    "Notice periods and payment terms stand in the amendment of 15 June 2025.",
    "付款期限为三十日，自发票送达时算起。赔偿上限为人民币五十万元。",
    "current rental parents are rent-free, RENT is not",
]


@pytest.fixture(scope="session")
def data() -> Path:
    """The folder of the evaluation data, from ZEROLAYER_DATA."""
    place = os.environ.get("ZEROLAYER_DATA")
    if not place or not Path(place).is_dir():
        pytest.skip("ZEROLAYER_DATA does not name the folder of the evaluation data")
    return Path(place)


@pytest.fixture(scope="session")
def byte_level() -> Any:
    """A byte-level BPE tokenizer, as GPT-2, Llama 3 and SmolLM2 have."""
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=480,
        special_tokens=["<|end|>"],
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    tokenizer.train_from_iterator(CORPUS * 4, trainer)
    return PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, eos_token="<|end|>", pad_token="<|end|>"
    )


@pytest.fixture(scope="session")
def byte_fallback() -> Any:
    """A SentencePiece-like tokenizer with byte fallback, as Llama 2 and Gemma have."""
    pieces = {"<unk>": 0, "<s>": 1, "</s>": 2}
    for b in range(256):
        pieces[f"<0x{b:02X}>"] = len(pieces)
    for word in [
        "\u2581",
        "\u2581the",
        "\u2581payment",
        "\u2581rent",
        "s",
        "term",
        "付款",
        "期",
        "\u2581is",
    ]:
        pieces[word] = len(pieces)
    for c in "abcdefghijklmnopqrstuvwxyzTRPE.,:0123456789":
        pieces.setdefault(c, len(pieces))
    tokenizer = Tokenizer(models.BPE(pieces, [], unk_token="<unk>", byte_fallback=True))
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace(prepend_scheme="never")
    tokenizer.decoder = decoders.Sequence([decoders.ByteFallback(), decoders.Metaspace()])
    return PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, bos_token="<s>", eos_token="</s>", unk_token="<unk>"
    )


@pytest.fixture
def llama() -> Any:
    """A tiny random Llama, fp32."""
    torch.manual_seed(0)
    config = LlamaConfig(
        vocab_size=512,
        hidden_size=48,
        intermediate_size=96,
        num_hidden_layers=3,
        num_attention_heads=4,
        num_key_value_heads=2,
        max_position_embeddings=256,
        eos_token_id=0,
        bos_token_id=None,
    )
    return LlamaForCausalLM(config).eval()


@pytest.fixture
def gemma() -> Any:
    """A tiny random Gemma 3: unit-offset norms, post-norms, q/k norms, sliding window."""
    torch.manual_seed(0)
    config = Gemma3TextConfig(
        vocab_size=512,
        hidden_size=48,
        intermediate_size=96,
        num_hidden_layers=3,
        num_attention_heads=4,
        num_key_value_heads=2,
        head_dim=12,
        max_position_embeddings=256,
        sliding_window=16,
    )
    return Gemma3ForCausalLM(config).eval()
