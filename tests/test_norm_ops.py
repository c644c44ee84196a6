"""The norm ops against the fp64 oracle, transformers' own norms, and torch's op checks."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import oracle
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from oracle import Anchors, assert_close_as_torch
from transformers.models.gemma3.modeling_gemma3 import Gemma3RMSNorm
from transformers.models.llama.modeling_llama import LlamaRMSNorm

from zerolayer import ops
from zerolayer.errors import ZerolayerError
from zerolayer.nn import SkaRMSNorm

EPS = 1e-5
WIDTHS = (1, 7, 111, 500, 576, 16384)
BATCHES = (0, 1, 19, 989)
SHAPES = [(batch, width) for width in WIDTHS for batch in BATCHES if batch * width <= 1_000_000]
LOW = (torch.float32, torch.bfloat16, torch.float16)
NONE = Anchors()


def made(
    batch: int, width: int, count: int, dtype: torch.dtype, seed: int = 0
) -> tuple[torch.Tensor, torch.Tensor, Anchors]:
    """x, weight and anchors of which about half open on any row."""
    g = torch.Generator().manual_seed(seed)

    def normal(*shape: int) -> torch.Tensor:
        return torch.randn(*shape, generator=g, dtype=torch.float64)

    scalar = torch.float64 if dtype == torch.float64 else torch.float32
    anchors = Anchors(
        normal(count, width).to(dtype),
        normal(count, width).to(dtype),
        (0.2 * normal(count)).to(scalar),
        normal(count).to(scalar),
    )
    return normal(batch, width).to(dtype), normal(width).to(dtype), anchors


def with_sets(anchors: Anchors, rows: int, seed: int = 0) -> Anchors:
    """Three sets (one empty) and rows of each, and rows of none."""
    g = torch.Generator().manual_seed(seed)
    count = len(anchors.keys)
    offsets = torch.tensor([0, count // 2, count // 2, count], dtype=torch.int32)
    row_set = torch.randint(-1, 3, (rows,), generator=g, dtype=torch.int32)
    return Anchors(*list(anchors)[:4], row_set, offsets)


# ---- values


@pytest.mark.parametrize("dtype", LOW)
@pytest.mark.parametrize("unit_offset", [False, True])
@pytest.mark.parametrize(("batch", "width"), SHAPES)
def test_norm_is_as_exact_as_torch(batch, width, unit_offset, dtype):
    x, weight, anchors = made(batch, width, 5, dtype)
    actual = ops.ska_rms_norm(x, weight, *anchors, EPS, unit_offset)
    exact = oracle.rms_norm(
        x.double(), weight.double(), anchors.to(torch.float64), EPS, unit_offset
    )
    assert_close_as_torch(actual, exact, oracle.rms_norm(x, weight, anchors, EPS, unit_offset))


@pytest.mark.parametrize("dtype", LOW)
@pytest.mark.parametrize(("batch", "width"), SHAPES)
def test_delta_is_as_exact_as_torch(batch, width, dtype):
    x, weight, anchors = made(batch, width, 5, dtype)
    base = oracle.model_norm(x, weight, EPS)
    actual = ops.ska_anchor_delta(x, base, *anchors, EPS)
    exact = oracle.anchor_delta(x.double(), base.double(), anchors.to(torch.float64), EPS)
    assert_close_as_torch(actual, exact, oracle.anchor_delta(x, base, anchors, EPS))


@pytest.mark.parametrize("dtype", (*LOW, torch.float64))
@pytest.mark.parametrize("count", [0, 1, 2, 17, 64])
def test_number_of_anchors(count, dtype):
    x, weight, anchors = made(19, 111, count, dtype)
    actual = ops.ska_rms_norm(x, weight, *anchors, EPS)
    exact = oracle.rms_norm(x.double(), weight.double(), anchors.to(torch.float64), EPS)
    if dtype == torch.float64:
        torch.testing.assert_close(actual, exact, rtol=1e-13, atol=1e-12)
    else:
        assert_close_as_torch(actual, exact, oracle.rms_norm(x, weight, anchors, EPS))


@pytest.mark.parametrize("dtype", LOW)
@pytest.mark.parametrize("width", [7, 500, 576])
def test_rows_of_many_sets_in_one_batch(width, dtype):
    x, weight, anchors = made(61, width, 9, dtype)
    mixed = with_sets(anchors, 61)
    actual = ops.ska_rms_norm(x, weight, *mixed, EPS)
    exact = oracle.rms_norm(x.double(), weight.double(), mixed.to(torch.float64), EPS)
    assert_close_as_torch(actual, exact, oracle.rms_norm(x, weight, mixed, EPS))
    bounds = mixed.set_offsets.tolist()
    for which in range(-1, 3):  # a row has the bits that it has where its set is alone
        rows = mixed.row_set == which
        own = slice(0, 0) if which < 0 else slice(bounds[which], bounds[which + 1])
        alone = ops.ska_rms_norm(
            x[rows], weight, *(t[own] for t in list(anchors)[:4]), None, None, EPS
        )
        assert torch.equal(actual[rows], alone)


def test_more_than_64_anchors_are_possible_over_several_sets():
    x, weight, anchors = made(8, 16, 96, torch.float32)
    row_set = torch.tensor([0, 1, 2, -1] * 2, dtype=torch.int32)
    mixed = Anchors(*list(anchors)[:4], row_set, torch.tensor([0, 32, 64, 96], dtype=torch.int32))
    exact = oracle.rms_norm(x.double(), weight.double(), mixed.to(torch.float64), EPS)
    actual = ops.ska_rms_norm(x, weight, *mixed, EPS)
    assert_close_as_torch(actual, exact, oracle.rms_norm(x, weight, mixed, EPS))


@pytest.mark.parametrize("dtype", LOW)
@pytest.mark.parametrize("unit_offset", [False, True])
@pytest.mark.parametrize("width", [7, 576])
def test_fused_add_equals_add_and_norm_bit_for_bit(width, unit_offset, dtype):
    x, weight, anchors = made(19, width, 5, dtype)
    residual = made(19, width, 0, dtype, seed=1)[0]
    total = residual + x
    actual = ops.fused_add_ska_rms_norm(x, residual, weight, *anchors, EPS, unit_offset)
    assert torch.equal(residual, total)
    assert torch.equal(actual, ops.ska_rms_norm(total, weight, *anchors, EPS, unit_offset))


def test_fused_add_writes_a_strided_residual_and_nothing_beside_it():
    x, weight, anchors = made(19, 111, 3, torch.float32)
    store = torch.full((19, 128), 7.0)
    total = store[:, :111] + x
    ops.fused_add_ska_rms_norm(x, store[:, :111], weight, *anchors, EPS)
    assert torch.equal(store[:, :111], total)
    assert (store[:, 111:] == 7).all()


# ---- bits


@pytest.mark.parametrize("dtype", LOW)
@pytest.mark.parametrize("norm_type", [LlamaRMSNorm, Gemma3RMSNorm])
@pytest.mark.parametrize(("batch", "width"), SHAPES)
def test_without_anchors_the_norm_has_the_bits_of_transformers(batch, width, norm_type, dtype):
    x, weight, _ = made(batch, width, 0, dtype)
    norm = norm_type(width, eps=EPS).to(dtype)
    norm.weight.data = weight
    gemma = norm_type is Gemma3RMSNorm
    assert torch.equal(ops.ska_rms_norm(x, weight, *NONE, EPS, gemma), norm(x))


@pytest.mark.parametrize("dtype", (*LOW, torch.float64))
@pytest.mark.parametrize("width", [1, 7, 576])
def test_no_anchors_zero_gains_and_shut_gates_change_no_bit(width, dtype):
    x, weight, anchors = made(19, width, 4, dtype)
    plain = ops.ska_rms_norm(x, weight, *NONE, EPS)
    keys, values, thresholds, gains = list(anchors)[:4]
    cases = {
        "K = 0": Anchors(keys[:0], values[:0], thresholds[:0], gains[:0]),
        "gains 0": Anchors(keys, values * float("nan"), thresholds, gains * 0),
        "shut": Anchors(keys, values * float("inf"), thresholds + 1e6, gains),
        "no set": Anchors(
            keys,
            values,
            thresholds,
            gains,
            torch.full((19,), -1, dtype=torch.int32),
            torch.tensor([0, 4], dtype=torch.int32),
        ),
    }
    for name, case in cases.items():
        assert torch.equal(ops.ska_rms_norm(x, weight, *case, EPS), plain), name
        assert torch.equal(ops.ska_anchor_delta(x, plain, *case, EPS), plain), name


@pytest.mark.parametrize("dtype", LOW)
@pytest.mark.parametrize("unit_offset", [False, True])
def test_norm_equals_delta_over_the_models_norm_bit_for_bit(unit_offset, dtype):
    x, weight, anchors = made(61, 576, 8, dtype)
    base = oracle.model_norm(x, weight, EPS, unit_offset)
    assert torch.equal(
        ops.ska_rms_norm(x, weight, *anchors, EPS, unit_offset),
        ops.ska_anchor_delta(x, base, *anchors, EPS),
    )


@pytest.mark.parametrize("dtype", LOW)
def test_a_rows_result_does_not_depend_on_the_batch(dtype):
    x, weight, anchors = made(19, 576, 6, dtype)
    whole = ops.ska_rms_norm(x, weight, *anchors, EPS)
    for i in range(len(x)):
        assert torch.equal(whole[i : i + 1], ops.ska_rms_norm(x[i : i + 1], weight, *anchors, EPS))


@settings(max_examples=60, deadline=None)
@given(
    batch=st.integers(0, 9),
    width=st.integers(1, 140),
    count=st.integers(0, 9),
    dtype=st.sampled_from(LOW),
    seed=st.integers(0, 999),
)
def test_any_shape(batch, width, count, dtype, seed):
    x, weight, anchors = made(batch, width, count, dtype, seed)
    anchors = with_sets(anchors, batch, seed)
    actual = ops.ska_rms_norm(x, weight, *anchors, EPS)
    base = oracle.model_norm(x, weight, EPS)
    assert torch.equal(actual, ops.ska_anchor_delta(x, base, *anchors, EPS))
    untouched = anchors.row_set < 0
    assert torch.equal(actual[untouched], base[untouched])


# ---- layouts and special values


@pytest.mark.parametrize("dtype", LOW)
def test_any_strides_give_the_result_of_a_contiguous_input(dtype):
    weight, anchors = made(1, 111, 4, dtype)[1:]
    store = made(8, 2 * 111 * 30, 0, dtype)[0].reshape(8, 30, 222)
    views = {
        "padded rows": store[0, :, :111],
        "offset": store[0, :, 7:118],
        "every second row": store[0, ::2, :111],
        "strided columns": store[0, :, ::2],
        "transposed": store[0, :, :111].t().contiguous().t(),
        "three dimensions": store[:, 3:9, 5:116],
        "one vector": store[0, 0, :111],
        "expanded": store[0, :1, :111].expand(5, 111),
    }
    for name, x in views.items():
        plain = ops.ska_rms_norm(x.contiguous(), weight, *anchors, EPS)
        actual = ops.ska_rms_norm(x, weight, *anchors, EPS)
        assert torch.equal(actual, plain), name
        assert actual.is_contiguous() and actual.shape == x.shape, name
        base = x.flip(0) if x.dim() > 1 else x
        assert torch.equal(
            ops.ska_anchor_delta(x, base, *anchors, EPS),
            ops.ska_anchor_delta(x.contiguous(), base.contiguous(), *anchors, EPS),
        ), name


def test_strided_anchors_and_weight():
    x, weight, anchors = made(5, 64, 6, torch.float32)
    wide = [torch.stack([t, t * 0], -1)[..., 0] for t in list(anchors)[:4]]
    assert not wide[0].is_contiguous()
    assert torch.equal(
        ops.ska_rms_norm(x, torch.stack([weight, weight], -1)[:, 0], *wide, None, None, EPS),
        ops.ska_rms_norm(x, weight, *anchors, EPS),
    )


@pytest.mark.parametrize("dtype", LOW)
@pytest.mark.parametrize("special", [float("nan"), float("inf"), -float("inf"), 0.0])
def test_special_values_show_where_torch_shows_them(special, dtype):
    x, weight, anchors = made(6, 37, 3, dtype)
    x[2] = special
    x[4, 11] = special
    actual = ops.ska_rms_norm(x, weight, *anchors, EPS)
    yardstick = oracle.anchor_delta(
        x.float(), oracle.model_norm(x, weight, EPS).float(), anchors.to(torch.float32), EPS
    )
    assert torch.equal(actual.isnan(), yardstick.isnan())
    assert torch.equal(actual.isinf(), yardstick.to(dtype).isinf())
    fine = [0, 1, 3, 5]  # other rows do not see it
    assert torch.equal(actual[fine], ops.ska_rms_norm(x[fine], weight, *anchors, EPS))


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_large_values_do_not_overflow_in_the_sum_of_squares(dtype):
    x, weight, anchors = made(3, 576, 2, dtype)
    x = (x * 15000).to(dtype)
    actual = ops.ska_rms_norm(x, weight, *anchors, EPS)
    exact = oracle.rms_norm(x.double(), weight.double(), anchors.to(torch.float64), EPS)
    assert actual.isfinite().all()
    assert float((actual.double() - exact).abs().max()) < 0.02 * float(exact.abs().max())


# ---- gradients


def differentiable(count: int, sets: bool) -> tuple[list[torch.Tensor], Anchors]:
    x, weight, anchors = made(5, 7, count, torch.float64)
    # Away from the kink of relu, where finite differences mean nothing.
    s, _ = oracle.gates(x, anchors, EPS)
    assert float(s.abs().min()) > 1e-3
    if sets:
        anchors = with_sets(anchors, 5)
    inputs = [t.requires_grad_() for t in (x, weight, *list(anchors)[:4])]
    return inputs, anchors


@pytest.mark.parametrize("unit_offset", [False, True])
@pytest.mark.parametrize("sets", [False, True])
def test_gradients_of_the_norm(sets, unit_offset):
    inputs, a = differentiable(4, sets)
    assert torch.autograd.gradcheck(
        lambda *t: ops.ska_rms_norm(*t, a.row_set, a.set_offsets, EPS, unit_offset), inputs
    )


@pytest.mark.parametrize("sets", [False, True])
def test_gradients_of_the_delta(sets):
    inputs, a = differentiable(4, sets)
    inputs[1] = torch.randn(5, 7, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(
        lambda *t: ops.ska_anchor_delta(*t, a.row_set, a.set_offsets, EPS), inputs
    )


def test_gradients_of_the_plain_norm():
    x, weight, _ = made(5, 7, 0, torch.float64)
    assert torch.autograd.gradcheck(
        lambda x, w: ops.ska_rms_norm(x, w, *NONE, EPS),
        (x.requires_grad_(), weight.requires_grad_()),
    )


def test_a_gain_of_zero_still_learns():
    x, weight, anchors = made(19, 32, 3, torch.float32)
    gains = torch.zeros(3, requires_grad=True)
    ops.ska_rms_norm(
        x, weight, anchors.keys, anchors.values, anchors.thresholds, gains, None, None, EPS
    ).square().sum().backward()
    assert (gains.grad != 0).all()


@pytest.mark.parametrize("dtype", LOW)
@pytest.mark.parametrize("width", [7, 111, 576])
def test_low_precision_gradients_are_as_exact_as_torch(width, dtype):
    def formula(x, weight, *four):
        return oracle.rms_norm(x, weight, Anchors(*four), EPS)

    def op(*leaves):
        return ops.ska_rms_norm(*leaves, None, None, EPS)

    def grads(function, cast, seed):
        x, weight, anchors = made(67, width, 4, dtype, seed)
        # A gate that rounding opens or shuts has another gradient: keep rows far from the kink.
        s, _ = oracle.gates(x.double(), anchors.to(torch.float64), EPS)
        x = x[s.abs().min(-1).values > 0.05]
        leaves = [cast(t).requires_grad_() for t in (x, weight, *list(anchors)[:4])]
        function(*leaves).backward(cast(made(len(x), width, 0, dtype, seed + 100)[0]))
        return [leaf.grad.flatten() for leaf in leaves]

    # Eight draws: a gradient of four numbers is too small a sample of rounding errors.
    draws = range(8)
    actual, yardstick, exact = (
        [torch.cat(g) for g in zip(*(grads(f, cast, seed) for seed in draws), strict=True)]
        for f, cast in (
            (op, torch.Tensor.detach),
            (formula, torch.Tensor.detach),
            (formula, torch.Tensor.double),
        )
    )
    for a, e, y in zip(actual, exact, yardstick, strict=True):
        assert_close_as_torch(a, e, y)


def test_gradients_do_not_depend_on_the_number_of_threads():
    x, weight, anchors = made(200, 111, 4, torch.float32)
    before = torch.get_num_threads()
    found = []
    try:
        for threads in (1, 2):
            torch.set_num_threads(threads)
            leaf = weight.clone().requires_grad_()
            ops.ska_rms_norm(x, leaf, *anchors, EPS).square().sum().backward()
            found.append(leaf.grad)
    finally:
        torch.set_num_threads(before)
    assert torch.equal(*found)


# ---- torch's own checks


@pytest.mark.parametrize("dtype", LOW)
@pytest.mark.parametrize("grad", [False, True])
@pytest.mark.parametrize("strided", [False, True])
@pytest.mark.parametrize("sets", [False, True])
def test_opcheck(sets, strided, grad, dtype):
    x, weight, anchors = made(6, 16, 3, dtype)
    if strided:
        x = torch.cat([x, x], -1)[:, :16]
    if sets:
        anchors = with_sets(anchors, 6)
    if grad:
        for t in (x, weight, *list(anchors)[:4]):
            t.requires_grad_()
    torch.library.opcheck(ops.ska_rms_norm, (x, weight, *anchors, EPS))
    torch.library.opcheck(ops.ska_rms_norm, (x, weight, *NONE, EPS, True))
    torch.library.opcheck(ops.ska_anchor_delta, (x, x.detach().clone(), *anchors, EPS))
    if not grad:
        torch.library.opcheck(
            ops.fused_add_ska_rms_norm, (x, torch.ones(6, 16, dtype=dtype), weight, *anchors, EPS)
        )
        for w in (weight, None):
            torch.library.opcheck(
                torch.ops.zerolayer.ska_rms_norm_backward, (x, x, w, *anchors, EPS, False)
            )


def test_a_compiled_graph_has_no_break():
    x, weight, anchors = made(6, 16, 3, torch.float32)

    def block(x, residual):
        y = ops.fused_add_ska_rms_norm(x, residual, weight, *anchors, EPS)
        return ops.ska_anchor_delta(residual, y, *anchors, EPS) * 2

    residual = torch.ones(6, 16)
    expected = block(x, residual.clone())
    compiled = torch.compile(block, fullgraph=True, backend="aot_eager")
    assert torch.equal(compiled(x, residual.clone()), expected)


# ---- wrong input


def replaced(**change):
    x, weight, anchors = made(4, 8, 2, torch.float32)
    arguments = {"x": x, "weight": weight, **vars(anchors), "eps": EPS}
    return ops.ska_rms_norm(**{**arguments, **change})


def ints(*values: int) -> torch.Tensor:
    return torch.tensor(values, dtype=torch.int32)


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"x": torch.tensor(1.0)}, "x must be"),
        ({"x": torch.ones(4, 0)}, "x must be"),
        ({"x": torch.ones(4, 9)}, r"weight must be \[9\]"),
        ({"x": torch.ones(4, 8, dtype=torch.float16)}, "weight must have the dtype of x"),
        ({"weight": torch.ones(2, 8)}, "weight must be"),
        ({"eps": -1.0}, "eps must be finite and not negative"),
        ({"eps": float("nan")}, "eps must be finite"),
        ({"keys": torch.ones(2, 9)}, r"keys must be \[K, 8\]"),
        ({"keys": torch.ones(3, 8)}, r"values must be \[3, 8\]"),
        ({"keys": torch.ones(2, 8).double()}, "keys must have the dtype of x"),
        ({"values": None}, "must be given together"),
        ({"keys": None}, "must be given together"),
        ({"gains": torch.ones(3)}, r"gains must be \[2\]"),
        ({"thresholds": torch.ones(2).half()}, "thresholds must be float32"),
        ({"row_set": ints(0, 0, 0, 0)}, "row_set and set_offsets must be given together"),
        ({"row_set": ints(0, 0, 0), "set_offsets": ints(0, 2)}, "row_set has 3 entries, x has 4"),
        ({"row_set": ints(0, 0, 0, 1), "set_offsets": ints(0, 2)}, "row_set holds 1 for row 3"),
        ({"row_set": ints(0, 0, -2, 0), "set_offsets": ints(0, 2)}, "row_set holds -2"),
        ({"row_set": ints(0, 0, 0, 0), "set_offsets": ints(0, 3)}, "must run from 0"),
        ({"row_set": ints(0, 0, 0, 0), "set_offsets": ints(0, 3, 2)}, "must not fall"),
        ({"row_set": torch.zeros(4), "set_offsets": ints(0, 2)}, "row_set must be int32"),
    ],
)
def test_a_wrong_argument_raises_one_sentence(change, sentence):
    with pytest.raises(RuntimeError, match=sentence):
        replaced(**change)


def test_65_anchors_in_one_set_raise():
    x, weight, anchors = made(2, 8, 65, torch.float32)
    with pytest.raises(RuntimeError, match="65 anchors, a set may have at most 64"):
        ops.ska_rms_norm(x, weight, *anchors, EPS)


def test_integers_raise():
    x = torch.ones(2, 8, dtype=torch.int64)
    with pytest.raises(RuntimeError, match="x must be float32, float64, float16 or bfloat16"):
        ops.ska_rms_norm(x, torch.ones(8, dtype=torch.int64), *NONE, EPS)


def test_a_base_or_residual_of_another_shape_raises():
    x, weight, anchors = made(4, 8, 2, torch.float32)
    with pytest.raises(RuntimeError, match="base must have the shape and dtype of x"):
        ops.ska_anchor_delta(x, x[:3], *anchors, EPS)
    with pytest.raises(RuntimeError, match="residual must have the shape and dtype of x"):
        ops.fused_add_ska_rms_norm(x, x.reshape(2, 2, 8), weight, *anchors, EPS)
    with pytest.raises(RuntimeError, match="residual is written in place"):
        ops.fused_add_ska_rms_norm(x, torch.ones(1, 8).expand(4, 8), weight, *anchors, EPS)


# ---- module


def test_a_new_module_is_the_plain_norm_and_names_its_anchors():
    norm = SkaRMSNorm(64, anchors=3, eps=EPS)
    x = torch.randn(5, 64)
    assert torch.equal(norm(x), LlamaRMSNorm(64, eps=EPS)(x))
    names = {name for name, _ in norm.named_parameters() if name.startswith("ska_")}
    assert names == {"ska_keys", "ska_values", "ska_thresholds", "ska_gains"}
    assert [name for name, _ in SkaRMSNorm(64).named_parameters()] == ["weight"]


@pytest.mark.parametrize("dtype", (*LOW, torch.float64))
def test_a_module_can_be_cast_and_trained(dtype):
    norm = SkaRMSNorm(32, anchors=2).to(dtype)
    norm.ska_values.data.normal_()
    norm(torch.randn(2, 3, 32, dtype=dtype)).square().sum().backward()
    for name, parameter in norm.named_parameters():
        assert parameter.grad is not None and parameter.grad.dtype == dtype, name


def test_a_module_with_wrong_sizes_raises():
    with pytest.raises(ZerolayerError, match="0 to 64"):
        SkaRMSNorm(8, anchors=65)
    with pytest.raises(ZerolayerError, match="width must be at least 1"):
        SkaRMSNorm(0)


# ---- instruction sets


@pytest.mark.skipif("ZEROLAYER_ISA" in os.environ, reason="runs inside itself otherwise")
@pytest.mark.parametrize("isa", ["scalar", "avx2", "avx512"])
def test_every_instruction_set(isa):
    """The file's own tests again under each instruction set that this processor has."""
    probe = "import torch\nfrom zerolayer import ops\n"
    probe += "ops.ska_rms_norm(torch.ones(1, 8), torch.ones(8), *[None] * 6, 1e-5)"
    environment = {**os.environ, "ZEROLAYER_ISA": isa}
    run = subprocess.run(
        [sys.executable, "-c", probe], env=environment, capture_output=True, text=True
    )
    assert run.returncode == 0, run.stderr
    if "is not available here" in run.stderr:
        pytest.skip(f"this processor has no {isa}")
    chosen = "exact_as_torch or bits_of or many_sets or gradients_of or delta_over or strides"
    run = subprocess.run(
        [
            sys.executable,
            "-m",
            "pytest",
            "-x",
            "-q",
            "-p",
            "no:cacheprovider",
            __file__,
            "-k",
            chosen,
        ],
        env=environment,
        cwd=Path(__file__).parent.parent,
        capture_output=True,
        text=True,
    )
    assert run.returncode == 0, run.stdout[-2000:]
