"""Attaching a pack: bits, detaching, cache and padding, and what is refused."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
import transformers
from safetensors.torch import save_file
from transformers import AutoModelForCausalLM

from ska_builder.commands.export import fold
from zerolayer.anchors import AnchorSet, gated_part, norm_modules, normalizer
from zerolayer.attach import attach, gate_rate, static_part
from zerolayer.automaton import Vocabulary, compile_triggers
from zerolayer.errors import ZerolayerError
from zerolayer.models import fingerprint
from zerolayer.pack import Pack


def pack_for(model: Any, gain: float = 1.0, delta: float = 0.0, scale: float = 1.0) -> Pack:
    """Random anchors in every norm, half of their gates open."""
    generator = torch.Generator().manual_seed(1)
    width = model.config.hidden_size

    def draw(*shape: int) -> torch.Tensor:
        return torch.randn(shape, generator=generator)

    return Pack(
        model=fingerprint(model),
        tokenizer="0" * 32,
        anchors={
            path: AnchorSet(
                draw(3, width),
                draw(3, width) * scale,
                torch.zeros(3),
                torch.full((3,), gain),
                torch.tensor([0, 1, 1], dtype=torch.int32),
                draw(width) * delta if delta else None,
            )
            for path in norm_modules(model)
        },
    )


@pytest.fixture(params=["llama", "gemma"])
def model(request: Any) -> Any:
    return request.getfixturevalue(request.param)


def test_norms_are_found_and_qk_norms_left_alone(llama: Any, gemma: Any) -> None:
    assert len(norm_modules(llama)) == 2 * 3
    assert len(norm_modules(gemma)) == 4 * 3  # pre- and post-norms of attention and MLP
    assert not any("q_norm" in p or "k_norm" in p for p in norm_modules(gemma))


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float64])
def test_zero_gains_and_detaching_keep_every_bit(model: Any, dtype: torch.dtype) -> None:
    model = model.to(dtype)
    ids = torch.randint(0, 512, (2, 20))
    with torch.inference_mode():
        plain = model(ids).logits
        with attach(model, pack_for(model, gain=0.0)):
            assert torch.equal(model(ids).logits, plain)
        attachment = attach(model, pack_for(model, delta=0.1))
        assert not torch.equal(model(ids).logits, plain)
        attachment.detach()
        attachment.detach()
        assert torch.equal(model(ids).logits, plain)


SMALL = {
    "vocab_size": 512,
    "hidden_size": 48,
    "intermediate_size": 96,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "max_position_embeddings": 64,
    "pad_token_id": 0,
}
# Architecture, norms in a layer that carry anchors, whether they take the mean away.
ARCHITECTURES = [
    (transformers.LlamaForCausalLM, transformers.LlamaConfig, 2, False),
    (transformers.MistralForCausalLM, transformers.MistralConfig, 2, False),
    (transformers.Qwen2ForCausalLM, transformers.Qwen2Config, 2, False),
    (transformers.Qwen3ForCausalLM, transformers.Qwen3Config, 2, False),
    (transformers.Gemma2ForCausalLM, transformers.Gemma2Config, 4, False),
    (transformers.Gemma3ForCausalLM, transformers.Gemma3TextConfig, 4, False),
    (transformers.PhiForCausalLM, transformers.PhiConfig, 1, True),
    (transformers.GPT2LMHeadModel, transformers.GPT2Config, 2, True),
    (transformers.GPTNeoXForCausalLM, transformers.GPTNeoXConfig, 2, True),
]


@pytest.mark.parametrize(("kind", "config", "norms", "centred"), ARCHITECTURES)
def test_architectures(kind: Any, config: Any, norms: int, centred: bool) -> None:
    """Norms are found by structure; zero gains keep every bit; open gates follow the formula."""
    torch.manual_seed(0)
    model = kind(config(**SMALL)).eval()
    for name, parameter in model.named_parameters():
        if "norm" in name or ".ln_" in name:
            torch.nn.init.normal_(parameter, 0.5, 0.1)
    found = norm_modules(model)
    assert len(found) == norms * 2
    ids = torch.randint(1, 512, (2, 9))
    with torch.inference_mode():
        plain = model(ids).logits
        with attach(model, pack_for(model, gain=0.0)):
            assert torch.equal(model(ids).logits, plain)
        pack = pack_for(model)
        for path, norm in found.items():
            x = torch.randn(3, 5, 48) * 3 + 1
            a = pack.anchors[path]
            weight = norm.weight
            xhat = torch.nn.functional.layer_norm(x, (48,)) if centred else rms_normalized(x)
            want = norm(x) + gated_part(xhat, a.keys, a.values, a.thresholds, a.gains)
            with attach(model, pack):
                torch.testing.assert_close(norm(x), want, atol=1e-4, rtol=1e-4)
            assert normalizer(norm).centred == centred and weight.shape == (48,)
        assert torch.equal(model(ids).logits, plain)


def rms_normalized(x: torch.Tensor) -> torch.Tensor:
    return x / x.pow(2).mean(-1, keepdim=True).add(1e-6).sqrt()


def test_a_norm_is_known_by_what_it_does() -> None:
    """T5 calls its RMSNorm a LayerNorm."""
    norm = transformers.models.t5.modeling_t5.T5LayerNorm(8)
    assert not normalizer(norm).centred
    assert normalizer(torch.nn.LayerNorm(8)).centred


def test_cache_and_left_padding_give_the_same_tokens(llama: Any) -> None:
    """neuronpedia#163 and EasySteer#9: with and without cache, alone and in a batch."""
    with attach(llama, pack_for(llama, scale=0.1)):
        ids = torch.randint(1, 512, (1, 12))
        kwargs = {"max_new_tokens": 12, "do_sample": False, "pad_token_id": 0}
        alone = llama.generate(ids, **kwargs)
        assert torch.equal(alone, llama.generate(ids, use_cache=False, **kwargs))
        longer = torch.randint(1, 512, (1, 19))
        padded = torch.cat([torch.zeros(1, 7, dtype=torch.long), ids], 1)
        batch = llama.generate(
            torch.cat([padded, longer]), attention_mask=(torch.cat([padded, longer]) != 0), **kwargs
        )
        assert torch.equal(batch[0, 19:], alone[0, 12:])


def test_first_generated_token_is_steered(llama: Any) -> None:
    """CAA#3: the prompt's rows pass the anchors too."""
    ids = torch.randint(1, 512, (1, 8))
    plain = llama(ids).logits[0, -1]
    with attach(llama, pack_for(llama)):
        assert not torch.equal(llama(ids).logits[0, -1], plain)


def test_two_packs_do_not_add_up_in_silence(llama: Any) -> None:
    """CAA#2: a vector added twice."""
    with attach(llama, pack_for(llama)), pytest.raises(ZerolayerError, match="carries a pack"):
        attach(llama, pack_for(llama))


def test_another_model_is_refused(llama: Any, gemma: Any) -> None:
    with pytest.raises(ZerolayerError, match="LlamaForCausalLM"):
        attach(gemma, pack_for(llama))
    pack = pack_for(llama)
    with torch.no_grad():
        llama.model.layers[1].mlp.up_proj.weight += 1
    with pytest.raises(ZerolayerError, match="weights' hash"):
        attach(llama, pack)


def test_gate_rate(llama: Any) -> None:
    with attach(llama, pack_for(llama)) as attachment:
        ids = torch.randint(0, 512, (2, 30))
        assert 0.5 < gate_rate(llama, attachment, ids) <= 1
    closed = pack_for(llama)
    for anchors in closed.anchors.values():
        anchors.thresholds += 1e6
    with attach(llama, closed) as attachment:
        assert gate_rate(llama, attachment, ids) == 0


def test_pack_roundtrip_and_damage(llama: Any, tmp_path: Path) -> None:
    path = tmp_path / "a.safetensors"
    pack = pack_for(llama, delta=0.5)
    pack.save(path)
    loaded = Pack.load(path)
    assert loaded.model == pack.model and list(tmp_path.iterdir()) == [path]
    for module, anchors in pack.anchors.items():
        for part in ("keys", "values", "thresholds", "gains", "rule", "delta_weight"):
            assert torch.equal(getattr(loaded.anchors[module], part), getattr(anchors, part))
    whole = path.read_bytes()
    path.write_bytes(whole[: len(whole) // 2])
    with pytest.raises(ZerolayerError, match="truncated or damaged"):
        Pack.load(path)
    path.write_bytes(b"no pack at all")
    with pytest.raises(ZerolayerError, match="damaged"):
        Pack.load(path)
    arena = compile_triggers([["rent"]], Vocabulary([bytes([b]) for b in range(256)]))
    arena[-1] ^= 1
    pack.automaton = arena
    pack.save(path)
    with pytest.raises(ZerolayerError, match="automaton is altered"):
        Pack.load(path)
    pack.automaton = None
    metadata = {"zerolayer": "[" * 200_000}
    save_file({"x": torch.zeros(1)}, path, metadata=metadata)
    with pytest.raises(ZerolayerError, match="damaged metadata"):
        Pack.load(path)
    next(iter(pack.anchors.values())).values[0, 0] = float("nan")
    pack.save(path)
    with pytest.raises(ZerolayerError, match="not finite"):
        Pack.load(path)
    with pytest.raises(ZerolayerError, match="no pack at"):
        Pack.load(tmp_path / "missing.safetensors")
    with pytest.raises(ZerolayerError, match="no folder"):
        pack.save(tmp_path / "missing" / "a.safetensors")


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_a_folded_checkpoint_needs_no_zerolayer(
    model: Any, byte_level: Any, tmp_path: Path, dtype: torch.dtype
) -> None:
    model.save_pretrained(tmp_path / "plain")
    model = AutoModelForCausalLM.from_pretrained(tmp_path / "plain", dtype=dtype).eval()
    pack = pack_for(model, delta=0.3)
    ids = torch.randint(0, 512, (2, 20))
    plain = {k: v.clone() for k, v in model.state_dict().items()}
    assert fold(model, byte_level, pack, tmp_path / "folded")[1] == 3 * len(pack.anchors)
    assert all(torch.equal(v, plain[k]) for k, v in model.state_dict().items())
    again = AutoModelForCausalLM.from_pretrained(tmp_path / "folded", dtype=dtype).eval()
    with torch.inference_mode(), attach(model, static_part(pack)):
        assert torch.equal(again(ids).logits, model(ids).logits)
    assert not torch.equal(again(ids).logits, model(ids).logits)
    with pytest.raises(ZerolayerError, match="exists already"):
        fold(model, byte_level, pack, tmp_path / "folded")
    with pytest.raises(ZerolayerError, match="no static part"):
        fold(model, byte_level, pack_for(model), tmp_path / "other")
    assert sorted(p.name for p in tmp_path.iterdir()) == ["folded", "plain"]
