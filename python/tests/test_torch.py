"""The operators and layers of PyTorch: against compositions in f64, minGRU-pytorch, and PyTorch's own checks."""

import warnings

import pytest

torch = pytest.importorskip("torch")

import minrnn  # noqa: E402
from minrnn._minrnn import scan_forward  # noqa: E402
from minrnn.torch import _PARTS, MinGRU, MinLSTM, _segments, linear_scan, min_gru_scan, min_lstm_scan  # noqa: E402

F = torch.nn.functional
SHAPES = [(1, 1, 1), (2, 5, 3), (3, 17, 16), (1, 700, 20), (5, 64, 33)]


def composed(a, b, h0=None, lengths=None, resets=None):
    """The recurrence step by step, in the type of its inputs."""
    batch, steps, width = a.shape
    h = torch.zeros(batch, width, dtype=a.dtype) if h0 is None else h0
    states = []
    for t in range(steps):
        before = h if resets is None else torch.where(resets[:, t, None], torch.zeros_like(h), h)
        after = a[:, t] * before + b[:, t]
        if lengths is not None:
            is_real = (t < lengths)[:, None]
            states.append(torch.where(is_real, after, torch.zeros_like(after)))
            h = torch.where(is_real, after, h)
        else:
            states.append(after)
            h = after
    return torch.stack(states, dim=1), h


def candidate(x, kind):
    return {"positive": torch.where(x >= 0, x + 0.5, x.sigmoid()), "identity": x, "tanh": x.tanh()}[kind]


def of_min_gru(preact, kind):
    hidden, gate = preact.chunk(2, dim=-1)
    return (-gate).sigmoid(), gate.sigmoid() * candidate(hidden, kind)


def of_min_lstm(preact, kind, normalize=True):
    hidden, f, i = preact.chunk(3, dim=-1)
    f, i = f.sigmoid(), i.sigmoid()
    if normalize:
        f, i = f / (f + i), i / (f + i)
    return f, i * candidate(hidden, kind)


SCANS = {
    "linear": (2, lambda x, *rest, **more: linear_scan(*x.chunk(2, dim=-1), *rest, **more), lambda x: x.chunk(2, dim=-1)),
    "min-gru": (2, min_gru_scan, lambda x: of_min_gru(x, "positive")),
    "min-gru tanh": (2, lambda *x, **more: min_gru_scan(*x, candidate="tanh", **more), lambda x: of_min_gru(x, "tanh")),
    "min-gru identity": (2, lambda *x, **more: min_gru_scan(*x, candidate="identity", **more), lambda x: of_min_gru(x, "identity")),
    "min-lstm": (3, min_lstm_scan, lambda x: of_min_lstm(x, "positive")),
    "min-lstm plain": (
        3,
        lambda *x, **more: min_lstm_scan(*x, normalize_gates=False, candidate="tanh", **more),
        lambda x: of_min_lstm(x, "tanh", False),
    ),
}


def close(found, expected, tolerance=2e-4):
    scale = expected.abs().max().clamp(min=1)
    assert (found.double() - expected).abs().max() <= tolerance * scale


@pytest.mark.parametrize("name", SCANS)
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("start", ["nothing", "carried", "ragged"])
def test_states_and_gradients_are_those_of_the_composition(name, shape, start):
    (batch, steps, width), (parts, scan, coefficients) = shape, SCANS[name]
    torch.manual_seed(steps)
    x = torch.randn(batch, steps, parts * width) * 0.8
    if name == "linear":
        x[..., :width] = x[..., :width].tanh()
    h0 = torch.randn(batch, width) if start != "nothing" else None
    lengths = torch.randint(0, steps + 1, (batch,)) if start == "ragged" else None
    resets = torch.rand(batch, steps) < 0.2 if start == "ragged" else None
    weights, last_weights = torch.randn(batch, steps, width), torch.randn(batch, width)

    ours = [x.clone().requires_grad_(), None if h0 is None else h0.clone().requires_grad_()]
    h, h_last = scan(*ours, lengths=lengths, resets=resets, return_last=True)
    ((h * weights).sum() + (h_last * last_weights).sum()).backward()

    theirs = [x.double().requires_grad_(), None if h0 is None else h0.double().requires_grad_()]
    expected, expected_last = composed(*coefficients(theirs[0]), theirs[1], lengths, resets)
    ((expected * weights).sum() + (expected_last * last_weights).sum()).backward()
    close(h, expected)
    close(h_last, expected_last)
    for tensor, of_composition in zip(ours, theirs, strict=True):
        if tensor is not None:
            close(tensor.grad, of_composition.grad)


@pytest.mark.parametrize("name", SCANS)
def test_a_sequence_may_be_cut_anywhere(name):
    parts, scan, _ = SCANS[name]
    x = torch.randn(2, 31, parts * 7).tanh()
    whole, last = scan(x, return_last=True)
    for cut in (1, 13, 30):
        first, between = scan(x[:, :cut], return_last=True)
        second, end = scan(x[:, cut:], between, return_last=True)
        torch.testing.assert_close(torch.cat([first, second], dim=1), whole, rtol=1e-5, atol=1e-6)
        torch.testing.assert_close(end, last, rtol=1e-5, atol=1e-6)


def test_any_layout_is_read():
    x = torch.randn(3, 9, 8)
    expected = min_gru_scan(x)
    for other in (x.transpose(0, 1).contiguous().transpose(0, 1), torch.randn(3, 9, 16)[..., ::2].copy_(x), x.mT.contiguous().mT):
        assert not other.is_contiguous()
        torch.testing.assert_close(min_gru_scan(other), expected, rtol=0, atol=0)
    # A gradient that is one number for all.
    y = x.clone().requires_grad_()
    min_gru_scan(y).sum().backward()
    z = x.clone().requires_grad_()
    (min_gru_scan(z) * torch.ones(3, 9, 4)).sum().backward()
    torch.testing.assert_close(y.grad, z.grad, rtol=0, atol=0)


def test_nothing_is_computed_twice_into_the_same_memory():
    x = torch.randn(2, 5, 6, requires_grad=True)
    before = x.detach().clone()
    once, twice = min_gru_scan(x), min_gru_scan(x)
    (once.sum() + twice.sum()).backward()
    assert once.data_ptr() != twice.data_ptr()
    torch.testing.assert_close(x.detach(), before, rtol=0, atol=0)


def test_empty_batches_are_empty():
    for shape in [(0, 5, 4), (2, 0, 4), (2, 5, 0)]:
        x = torch.randn(*shape, requires_grad=True)
        h, last = min_gru_scan(x, return_last=True)
        assert h.shape == (shape[0], shape[1], shape[2] // 2) and last.shape == (shape[0], shape[2] // 2)
        h.sum().backward()
    h0 = torch.randn(2, 2)
    torch.testing.assert_close(min_gru_scan(torch.randn(2, 0, 4), h0, return_last=True)[1], h0)


@pytest.mark.parametrize("has_h0", [False, True])
@pytest.mark.parametrize("is_ragged", [False, True])
def test_the_operators_are_what_they_say(has_h0, is_ragged):
    h0 = torch.randn(2, 3, requires_grad=True) if has_h0 else None
    codes = torch.tensor([[0, 1, 0, 0], [0, 0, 2, 2]], dtype=torch.int32) if is_ragged else None
    for cell, parts in (("linear", 1), ("min-gru positive", 2), ("min-lstm positive", 3)):
        x = torch.randn(2, 4, 3 * parts).tanh().requires_grad_()
        extra = torch.randn(2, 4, 3, requires_grad=True) if parts == 1 else None
        torch.library.opcheck(torch.ops.minrnn.recurrence.default, (cell, x, extra, h0, codes))
        detached = [None if tensor is None else tensor.detach() for tensor in (x, extra, h0)]
        upstream = (torch.randn(2, 4, 3), torch.randn(2, 4, 3), torch.randn(2, 3))
        torch.library.opcheck(torch.ops.minrnn.recurrence_backward.default, (cell, *detached, codes, *upstream))


@pytest.mark.parametrize("layer", [MinGRU, MinLSTM])
@pytest.mark.parametrize("dynamic", [False, True])
def test_layers_compile_as_a_whole(layer, dynamic):
    torch.manual_seed(0)
    torch._dynamo.reset()
    module = layer(6, expansion_factor=1.5)
    compiled = torch.compile(module, fullgraph=True, dynamic=dynamic)
    for steps in (5, 11):
        x = torch.randn(3, steps, 6, requires_grad=True)
        resets = torch.rand(3, steps) < 0.3
        expected, last = module(x, return_next_prev_hidden=True, resets=resets)
        (expected.square().sum() + last.sum()).backward()
        gradient, x.grad = x.grad, None
        found, found_last = compiled(x, return_next_prev_hidden=True, resets=resets)
        (found.square().sum() + found_last.sum()).backward()
        torch.testing.assert_close(found, expected, rtol=1e-5, atol=1e-6)
        torch.testing.assert_close(found_last, last, rtol=1e-5, atol=1e-6)
        torch.testing.assert_close(x.grad, gradient, rtol=1e-4, atol=1e-5)


def test_a_second_derivative_is_refused():
    x = torch.randn(1, 4, 4, requires_grad=True)
    with pytest.raises((RuntimeError, NotImplementedError)):
        (gradient,) = torch.autograd.grad(min_gru_scan(x).square().sum(), x, create_graph=True)
        gradient.sum().backward()


REFUSED = [
    (lambda: min_gru_scan(torch.randn(1, 2, 4, dtype=torch.float64)), minrnn.KindError, "torch.float64, expected torch.float32"),
    (lambda: min_gru_scan(torch.randn(1, 2, 4).bfloat16()), minrnn.KindError, "bfloat16"),
    (lambda: min_gru_scan(torch.randn(1, 2, 4, device="meta")), minrnn.KindError, "device meta, expected a CPU"),
    (lambda: min_gru_scan([[1.0]]), minrnn.KindError, "expected a tensor, found list"),
    (lambda: min_gru_scan(torch.randn(1, 2, 3)), minrnn.InputError, r"\[B, T, 2 E\], found \[1, 2, 3\]"),
    (lambda: min_lstm_scan(torch.randn(2, 3)), minrnn.InputError, r"\[B, T, 3 E\], found \[2, 3\]"),
    (lambda: linear_scan(torch.randn(1, 2, 3), torch.randn(1, 2, 4)), minrnn.InputError, "values: expected the shape"),
    (lambda: min_gru_scan(torch.randn(1, 2, 4), torch.randn(1, 3)), minrnn.InputError, r"h0: expected the shape \[1, 2\]"),
    (lambda: min_gru_scan(torch.randn(1, 2, 4), torch.randn(1, 2).double()), minrnn.KindError, "h0 has the type"),
    (lambda: min_gru_scan(torch.randn(1, 2, 4), lengths=[1, 2]), minrnn.InputError, r"lengths: expected the shape \[1\]"),
    (lambda: min_gru_scan(torch.randn(1, 2, 4), resets=torch.zeros(1, 3)), minrnn.InputError, r"resets: expected the shape \[1, 2\]"),
    (lambda: min_gru_scan(torch.randn(1, 2, 4), candidate="sine"), minrnn.InputError, "positive, identity, tanh"),
    (lambda: torch.ops.minrnn.recurrence("sine", torch.randn(1, 2, 4), None, None, None), Exception, ""),
    (
        lambda: torch.ops.minrnn.recurrence("linear", torch.randn(1, 1, 2), None, None, None),
        minrnn.InputError,
        "values are missing, expected 2 numbers",
    ),
    (
        lambda: torch.ops.minrnn.recurrence("min-gru tanh", torch.randn(1, 2, 2), None, None, torch.tensor([[2, 0]], dtype=torch.int32)),
        minrnn.InputError,
        "segments",
    ),
]


@pytest.mark.parametrize("call, error, sentence", REFUSED)
def test_what_does_not_fit_is_refused(call, error, sentence):
    with pytest.raises(error, match=sentence or None):
        call()


@pytest.fixture
def peer():
    return pytest.importorskip("minGRU_pytorch", reason="minGRU-pytorch is not installed")


LAYERS = [("minGRU", MinGRU), ("minLSTM", MinLSTM)]


def theirs_of(peer, name):
    return getattr(__import__(f"{peer.__name__}.{name}", fromlist=[name]), name)


@pytest.mark.parametrize("name, ours", LAYERS)
@pytest.mark.parametrize("settings", [{}, {"expansion_factor": 1.5}, {"proj_out": True}, {"expansion_factor": 2.0, "proj_out": False}])
def test_layers_agree_with_their_peers_and_states_go_both_ways(peer, name, ours, settings):
    torch.manual_seed(1)
    theirs, layer = theirs_of(peer, name)(12, **settings), ours(12, **settings)
    layer.load_state_dict(theirs.state_dict())
    theirs.load_state_dict(layer.state_dict())
    for steps in (1, 2, 50):
        x = torch.randn(3, steps, 12)
        expected, last = theirs(x, return_next_prev_hidden=True)
        found, found_last = layer(x, return_next_prev_hidden=True)
        torch.testing.assert_close(found, expected, rtol=1e-4, atol=1e-5)
        torch.testing.assert_close(found_last, last, rtol=1e-4, atol=1e-5)
    # One step on, as in decoding.
    x = torch.randn(3, 1, 12)
    torch.testing.assert_close(layer(x, found_last), theirs(x, last), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("use_lstm", [False, True])
def test_a_language_model_with_the_layer_swapped_gives_the_same_logits(peer, use_lstm):
    from minGRU_pytorch.minLM import minLM

    torch.manual_seed(2)
    model = minLM(num_tokens=64, dim=48, depth=3, use_lstm=use_lstm)
    tokens = torch.randint(0, 64, (2, 130))
    expected = model(tokens)
    for parts in model.layers:
        theirs = parts[2]
        parts[2] = (MinLSTM if use_lstm else MinGRU)(48, expansion_factor=1.5)
        parts[2].load_state_dict(theirs.state_dict())
    torch.testing.assert_close(model(tokens), expected, rtol=0, atol=1e-4)
    loss = model(tokens, return_loss=True)
    loss.backward()
    assert all(parameter.grad is not None and parameter.grad.isfinite().all() for parameter in model.parameters())


def test_names_parts_and_codes_are_those_of_the_kernels():
    def refusal(cell, width, code=None):
        codes = None if code is None else torch.full((1, 3), code, dtype=torch.int32).numpy()
        with pytest.raises(minrnn.InputError) as refused:
            scan_forward(cell, torch.zeros(1, 3, width).numpy(), None, None, codes, torch.empty(1, 3, 1).numpy(), torch.empty(1, 1).numpy(), 1)
        return str(refused.value)

    with pytest.raises(minrnn.InputError) as refused:
        min_gru_scan(torch.zeros(1, 3, 2), candidate="sine")
    assert str(refused.value) == refusal("min-gru sine", 2)
    for cell, parts in _PARTS.items():
        if parts > 1:
            assert refusal(f"{cell} tanh", parts + 1) == f"expected inputs [B, T, {parts} E], found [1, 3, {parts + 1}]"
    goes_on, begins, padding = _segments(torch.tensor([2]), torch.tensor([[False, True, False]]), 1, 3, "cpu")[0].tolist()
    expected = f"expected {goes_on} (goes on), {begins} (reset) or, at the ends of rows, {padding} (padding), found 7"
    assert expected in refusal("min-gru tanh", 2, 7)


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_a_forked_worker_has_threads_of_its_own():
    expected = min_gru_scan(torch.ones(4, 600, 8))
    torch.set_num_threads(2)
    loader = torch.utils.data.DataLoader(range(2), num_workers=1, collate_fn=scanned, multiprocessing_context="fork")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for found in loader:
            torch.testing.assert_close(found, expected, rtol=1e-6, atol=1e-6)


def scanned(_):
    return min_gru_scan(torch.ones(4, 600, 8))
