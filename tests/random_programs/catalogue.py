"""What a program may do: each entry looks at a tensor and gives a form of a line that fits it, or None.

A form is text with ``{0}`` for the tensor and ``{1}`` for another one. What an entry gives need not succeed: both
libraries have to refuse it alike.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

Rng = random.Random
Form = Callable[[Rng, Any], str | None]


def always(form: str) -> Form:
    """A form that fits every tensor."""
    return lambda rng, t: form


def with_axes(form: str) -> Form:
    """A form that fits tensors with at least one axis."""
    return lambda rng, t: form if t.ndim else None


def real(form: str) -> Form:
    """A form that fits floating point tensors."""
    return lambda rng, t: form if t.is_floating_point() else None


def ties(t: Any) -> bool:
    """Whether elements of a tensor are equal, or cannot be compared."""
    values = t.detach().double().flatten().tolist() if not t.is_complex() else [0, 0]
    return len(set(values)) < len(values)


def exact(form: str) -> Form:
    """A form that fits tensors of whole precision: of half precision, a node is often one of a conversion."""
    return lambda rng, t: None if str(t.dtype).endswith("float16") else form


def _axis(rng: Rng, t: Any) -> int:
    return rng.randrange(-t.ndim, t.ndim)


def along(form: str) -> Form:
    """A form with an axis ``<d>``, and an index ``<i>`` and a length ``<n>`` along it."""

    def fitted(rng: Rng, t: Any) -> str | None:
        if not t.ndim:
            return None
        d = _axis(rng, t)
        size = t.shape[d]
        if not size:
            return None
        i = rng.randrange(size)
        return form.replace("<d>", str(d)).replace("<i>", str(i)).replace("<n>", str(rng.randint(1, size - i)))

    return fitted


def along_real(form: str) -> Form:
    """The same for floating point tensors."""
    fitted = along(form)
    return lambda rng, t: fitted(rng, t) if t.is_floating_point() else None


def two_axes(form: str) -> Form:
    """A form with two axes, ``<a>`` and ``<b>``."""

    def fitted(rng: Rng, t: Any) -> str | None:
        return form.replace("<a>", str(_axis(rng, t))).replace("<b>", str(_axis(rng, t))) if t.ndim > 1 else None

    return fitted


def _refactored(rng: Rng, t: Any) -> tuple[int, ...]:
    n = t.numel()
    if not n:
        return tuple(t.shape)
    found = [()] if n == 1 else []
    found += [(n,), (n, 1), (1, n), (-1,)] + [(d, n // d) for d in range(2, n) if n % d == 0]
    return rng.choice(found)


def _strided(rng: Rng, t: Any) -> str | None:
    if t.numel() < 2 or not t.is_contiguous():
        return None
    size = rng.randint(1, t.numel() // 2)
    return f"{{0}}.as_strided(({size},), ({rng.randint(1, 2)},))"


def _permuted(rng: Rng, t: Any) -> str | None:
    if t.ndim < 2:
        return None
    order = list(range(t.ndim))
    rng.shuffle(order)
    return f"{{0}}.permute({', '.join(map(str, order))})"


VIEWS: dict[str, Form] = {
    "[0]": lambda rng, t: "{0}[0]" if t.ndim and t.shape[0] else None,
    "[1:]": with_axes("{0}[1:]"),
    "[..., 0]": lambda rng, t: "{0}[..., 0]" if t.ndim and t.shape[-1] else None,
    "[..., ::2]": with_axes("{0}[..., ::2]"),
    "[...]": always("{0}[...]"),
    "[:, None]": with_axes("{0}[:, None]"),
    "[None]": always("{0}[None]"),
    "[-1:, 0]": lambda rng, t: "{0}[-1:, 0]" if t.ndim > 1 and t.shape[1] else None,
    "select": along("{0}.select(<d>, <i>)"),
    "narrow": along("{0}.narrow(<d>, <i>, <n>)"),
    "t": lambda rng, t: "{0}.t()" if t.ndim <= 2 else None,
    "mT": lambda rng, t: "{0}.mT" if t.ndim > 1 else None,
    "transpose": two_axes("{0}.transpose(<a>, <b>)"),
    "movedim": two_axes("{0}.movedim(<a>, <b>)"),
    "permute": _permuted,
    "view": lambda rng, t: f"{{0}}.view({_refactored(rng, t)})",
    "reshape": lambda rng, t: f"{{0}}.reshape({_refactored(rng, t)})",
    "flatten": always("{0}.flatten()"),
    "contiguous": always("{0}.contiguous()"),
    "expand": always("{0}.expand(2, *{0}.shape)"),
    "expand_as": lambda rng, t: "{0}.expand_as({1})",
    "view_as": lambda rng, t: "{0}.view_as({0})",
    "diagonal": lambda rng, t: "{0}.diagonal()" if t.ndim > 1 else None,
    "unsqueeze": lambda rng, t: f"{{0}}.unsqueeze({rng.randint(-t.ndim - 1, t.ndim)})",
    "squeeze": always("{0}.squeeze()"),
    "squeeze(d)": along("{0}.squeeze(<d>)"),
    "unfold": along("{0}.unfold(<d>, <n>, 1)"),
    "unflatten": lambda rng, t: "{0}.unflatten(-1, (1, -1))" if t.ndim and t.numel() else None,
    "as_strided": _strided,
    "detach": always("{0}.detach()"),
    "data": always("{0}.data"),
    "real": lambda rng, t: "{0}.real" if t.is_complex() or rng.random() < 0.1 else None,
    "imag": lambda rng, t: "{0}.imag" if t.is_complex() else None,
    "view_as_real": lambda rng, t: "lib.view_as_real({0})" if t.is_complex() else None,
    "split": along("{0}.split(1, <d>)[<i>]"),
    "chunk": along("{0}.chunk(2, <d>)[0]"),
    "unbind": along("{0}.unbind(<d>)[<i>]"),
    "tensor_split": along("{0}.tensor_split(2, <d>)[0]"),
    "hsplit": lambda rng, t: "{0}.hsplit(1)[0]" if t.ndim else None,
}


def _pieces(rng: Rng, t: Any) -> str | None:
    """Several views at once, as a pair of names: the first, and the last."""
    if not t.ndim or t.shape[-1] < 2:
        return None
    how = rng.choice(["split(1, -1)", "unbind(-1)", "chunk(2, -1)", "tensor_split(2, -1)"])
    return f"{{0}}.{how}[:2]"


PIECES = {"pieces": _pieces}

_NUMBERS = ["1", "2", "0.5", "-1.0", "0", "True", "3"]


def _number(form: str) -> Form:
    return lambda rng, t: form.replace("<x>", rng.choice(_NUMBERS))


WRITES: dict[str, Form] = {
    "add_(1)": _number("{0}.add_(<x>)"),
    "add_": always("{0}.add_({1})"),
    "add_alpha": always("{0}.add_({1}, alpha=2)"),
    "sub_": always("{0}.sub_({1})"),
    "mul_(2)": _number("{0}.mul_(<x>)"),
    "mul_": always("{0}.mul_({1})"),
    "div_(2)": always("{0}.div_(2)"),
    "pow_": always("{0}.pow_(2)"),
    "sin_": always("{0}.sin_()"),
    "exp_": always("{0}.exp_()"),
    "tanh_": always("{0}.tanh_()"),
    "sigmoid_": always("{0}.sigmoid_()"),
    "neg_": always("{0}.neg_()"),
    "abs_": always("{0}.abs_()"),
    "relu_": always("{0}.relu_()"),
    "clamp_": always("{0}.clamp_(-0.75, 0.75)"),
    "addcmul_": always("{0}.addcmul_({1}, {1}, value=0.5)"),
    "lerp_": always("{0}.lerp_({1}, 0.25)"),
    "zero_": always("{0}.zero_()"),
    "fill_": always("{0}.fill_(0.5)"),
    "fill_with": always("{0}.fill_({1})"),
    "copy_": always("{0}.copy_({1})"),
    "masked_fill_": always("{0}.masked_fill_({0} > 1, 0.25)"),
    "index_fill_": along("{0}.index_fill_(<d>, lib.tensor([<i>]), 0.25)"),
    "index_add_": along("{0}.index_add_(<d>, lib.tensor([<i>, <i>]), {0}.detach().narrow(<d>, 0, 1).expand_as("
                        "{0}.detach().narrow(<d>, 0, 1)).repeat_interleave(2, <d>))"),
    "tril_": lambda rng, t: "{0}.tril_()" if t.ndim > 1 else None,
    "cumsum_": along("{0}.cumsum_(<d>)"),
    "eq_": always("{0}.eq_({1})"),
}  # fmt: skip

# Writes that are statements.
ASSIGNMENTS: dict[str, Form] = {
    "+=": always("{0} += {1}"),
    "*=": always("{0} *= 2"),
    "[0] =": lambda rng, t: "{0}[0] = 0.75" if t.ndim and t.shape[0] else None,
    "[0] = u": lambda rng, t: "{0}[0] = {1}" if t.ndim and t.shape[0] else None,
    "[..., 0] = u": lambda rng, t: "{0}[..., 0] = {1}" if t.ndim and t.shape[-1] else None,
    "[...] = u": always("{0}[...] = {1}"),
    "[mask] =": always("{0}[{0} > 1] = 1.0"),
    "[[0]] = u": lambda rng, t: "{0}[[0]] = {1}" if t.ndim and t.shape[0] else None,
    "data[0] =": lambda rng, t: "{0}.data[0] = 0.25" if t.ndim and t.shape[0] else None,
}

BINARY: dict[str, Form] = {
    "mul": always("{0} * {1}"),
    "add": always("{0} + {1}"),
    "sub": always("{0} - {1}"),
    "div": always("{0} / ({1} * {1} + 1)"),
    "add alpha": always("lib.add({0}, {1}, alpha=3)"),
    "number *": _number("<x> * {0}"),
    "number +": _number("{0} + <x>"),
    "number -": _number("<x> - {0}"),
    "number /": always("{0} / 4"),
    "number **": lambda rng, t: f"{{0}} ** {rng.choice(['2', '3', '1', '0', '2.0'])}",
    "2 **": always("2 ** {0}"),
    "//": always("{0} // 2"),
    "%": always("{0} % 1.5"),
    "1j": always("{0} * 1j"),
    "maximum": always("lib.maximum({0}, {1})"),
    "minimum": always("lib.minimum({0}, {1})"),
    "where": lambda rng, t: None if t.is_complex() else "lib.where({0} > 0, {0}, {1})",
    "where number": lambda rng, t: None if t.is_complex() else "lib.where({0} > 0, {0}, 0.5)",
    "hypot": always("lib.hypot({0}, {1})"),
    "atan2": real("lib.atan2({0}, {1} + 3)"),
    "logaddexp": real("lib.logaddexp({0}, {0} * 0.5)"),
    "lerp": always("lib.lerp({0}, {1}, 0.25)"),
    "addcmul": always("lib.addcmul({0}, {0}, {1}, value=2)"),
    "matmul": lambda rng, t: "{0} @ {1}" if t.ndim else None,
    "matmul t": lambda rng, t: "{0} @ {0}.t()" if t.ndim == 2 else None,
    "outer": lambda rng, t: "lib.outer({0}, {0})" if t.ndim == 1 else None,
    "einsum": lambda rng, t: "lib.einsum('ij,ij->i', {0}, {0})" if t.ndim == 2 else None,
    "cat": lambda rng, t: "lib.cat([{0}, {0}], -1)" if t.ndim else None,
    "cat u": lambda rng, t: "lib.cat([{0}, {1}])" if t.ndim else None,
    "stack": always("lib.stack([{0}, {0}])"),
    "stack u": always("lib.stack([{0}, {1}], -1)"),
    "==": always("{0} == {1}"),
    "<": always("{0} < {1}"),
    "mse": always("lib.nn.functional.mse_loss({0}, {1})"),
    "linear": lambda rng, t: "lib.nn.functional.linear({0}, {0}, {0}.sum(1))" if t.ndim == 2 else None,
    "bmm": lambda rng, t: "lib.bmm({0}, {0}.mT)" if t.ndim == 3 else None,
    "baddbmm": lambda rng, t: "lib.baddbmm({1}, {0}, {0}.mT)" if t.ndim == 3 else None,
    "cross_entropy": lambda rng, t: "lib.nn.functional.cross_entropy({0}, lib.zeros({0}.shape[0], dtype=lib.int64))"
    if t.ndim == 2 and t.is_floating_point() and t.numel() else None,
    "conv1d": lambda rng, t: "lib.nn.functional.conv1d({0}, {0}[..., :1], padding=1)"
    if t.ndim == 3 and t.is_floating_point() and t.numel() else None,
    "where mask": lambda rng, t: None if t.is_complex() else "lib.where({0}.detach() > 0, {1}, {0} * 2)",
    "masked_scatter": always("{0}.masked_scatter({0}.detach() == {0}.detach(), {1})"),
    "vecdot": lambda rng, t: "lib.linalg.vecdot({0}, {1})" if t.ndim > 1 else None,
}  # fmt: skip

_TOPK = along_real("{0}.topk(1, <d>)[0]")
_FLOATS = ["float64", "float32", "complex128", "float16", "bfloat16"]

UNARY: dict[str, Form] = {
    "double": always("{0} * 2"),
    "sin": always("{0}.sin()"),
    "cos": always("{0}.cos()"),
    "exp": always("{0}.exp()"),
    "tanh": always("{0}.tanh()"),
    "sigmoid": always("{0}.sigmoid()"),
    "relu": always("{0}.relu()"),
    "abs": always("{0}.abs()"),
    "sqrt": always("({0} * {0} + 1).sqrt()"),
    "log": always("({0} * {0} + 0.5).log()"),
    "square": always("{0}.square()"),
    "neg": always("-{0}"),
    "sign": always("{0}.sgn()"),
    "reciprocal": always("({0} * {0} + 1).reciprocal()"),
    "clone": always("{0}.clone()"),
    "sum": always("{0}.sum()"),
    "sum(d)": along("{0}.sum(<d>)"),
    "sum keepdim": along("{0}.sum(<d>, keepdim=True)"),
    "mean": along("{0}.mean(<d>)"),
    "prod": along("{0}.prod(<d>)"),
    "amax": along_real("{0}.amax(<d>)"),
    "max": along_real("{0}.max(<d>)[0]"),
    "max all": real("{0}.max()"),
    "sort": along_real("{0}.sort(<d>)[0]"),
    "topk": lambda rng, t: None if ties(t) else _TOPK(rng, t),
    "var": lambda rng, t: "{0}.var()" if t.numel() > 1 else None,
    "std": lambda rng, t: "({0} + {0}.cumsum(0)).std(0)" if t.ndim and t.shape[0] > 2 else None,
    "norm": lambda rng, t: "({0} + 2).norm()" if t.numel() else None,
    "logsumexp": along_real("{0}.logsumexp(<d>)"),
    "softmax": along_real("{0}.softmax(<d>)"),
    "log_softmax": along_real("{0}.log_softmax(<d>)"),
    "cumsum": along("{0}.cumsum(<d>)"),
    "cumprod": along("{0}.cumprod(<d>)"),
    "cummax": along_real("{0}.cummax(<d>)[0]"),
    "flip": along("{0}.flip(<d>)"),
    "roll": along("{0}.roll(1, <d>)"),
    "diff": along("{0}.diff(dim=<d>)"),
    "tril": lambda rng, t: "{0}.tril()" if t.ndim > 1 else None,
    "trace": lambda rng, t: "{0}.trace()" if t.ndim == 2 else None,
    "clamp": real("{0}.clamp(-0.75, 0.75)"),
    "clamp min": real("{0}.clamp(min=0.25)"),
    "floor": real("{0}.floor()"),
    "round": real("{0}.round()"),
    "frac": real("{0}.frac()"),
    "gelu": real("lib.nn.functional.gelu({0})"),
    "silu": real("lib.nn.functional.silu({0})"),
    "softplus": real("lib.nn.functional.softplus({0})"),
    "leaky": real("lib.nn.functional.leaky_relu({0}, 0.1)"),
    "elu": real("lib.nn.functional.elu({0} + 0.125)"),
    "layer_norm": lambda rng, t: "lib.nn.functional.layer_norm({0} + {0}.cumsum(-1), {0}.shape[-1:])"
    if t.is_floating_point() and t.ndim and t.shape[-1] > 1 else None,
    "pad": lambda rng, t: "lib.nn.functional.pad({0}, (1, 0))" if t.ndim else None,
    "to": lambda rng, t: f"{{0}}.to(lib.{rng.choice(_FLOATS)})",
    "double()": always("{0}.double()"),
    "float()": always("{0}.float()"),
    "long()": lambda rng, t: None if t.is_complex() else "{0}.long()",
    "bool()": always("{0}.bool()"),
    "t[[0, 0]]": lambda rng, t: "{0}[[0, 0]]" if t.ndim and t.shape[0] else None,
    "index_select": along("{0}.index_select(<d>, lib.tensor([<i>, 0]))"),
    "take": lambda rng, t: "{0}.take(lib.tensor([0, 0]))" if t.numel() else None,
    "gather": lambda rng, t: "{0}.gather(-1, lib.zeros_like({0}, dtype=lib.int64))" if t.ndim and t.numel() else None,
    "scatter_add": lambda rng, t: "{0}.scatter_add(-1, lib.zeros_like({0}, dtype=lib.int64), {0})"
    if t.ndim and t.numel() else None,
    "masked_fill": lambda rng, t: None if t.is_complex() else "{0}.masked_fill({0} > 0, 0.5)",
    "repeat": always("{0}.repeat(2, *[1] * {0}.ndim)"),
    "repeat_interleave": along("{0}.repeat_interleave(2, <d>)"),
    "tile": always("{0}.tile(2)"),
    "conj": lambda rng, t: "{0}.conj() * 1" if t.is_complex() else None,
    "angle": lambda rng, t: "({0} + 3).angle()" if t.is_complex() else None,
    "zeros_like": always("lib.zeros_like({0})"),
    "full_like": always("lib.full_like({0}, 2)"),
    "embedding": lambda rng, t: "lib.nn.functional.embedding(lib.tensor([0, 0]), {0})"
    if t.ndim == 2 and t.shape[0] else None,
    "block_diag": lambda rng, t: "lib.block_diag({0}, {0})" if t.ndim < 3 else None,
    "pow t": real("({0} * {0} + 0.5) ** ({0} + 0.3)"),
    "where isfinite": real("{0}.nan_to_num() * ({0} > 0)"),
}  # fmt: skip

# Results as long as the values say: not within transforms, nor compiled.
BY_VALUES: dict[str, Form] = {
    "mask": lambda rng, t: None if t.is_complex() else "{0}[{0} > 0]",
    "masked_select": lambda rng, t: None if t.is_complex() else "{0}.masked_select({0} < 1)",
    "sparse": with_axes("{0}.to_sparse().to_dense()"),
    "sparse *": with_axes("({0}.to_sparse() * 2).to_dense()"),
    "sparse @": lambda rng, t: (
        "lib.sparse.mm({0}.to_sparse(), {0}.t())" if t.ndim == 2 and bool((t != 0).all()) else None
    ),
    "deepcopy": always("copy.deepcopy({0})"),
    "item": lambda rng, t: "{0} * {0}.detach().sum().item()" if not t.is_complex() else None,
}

STATE: dict[str, Form] = {
    "requires_grad_": always("{0}.requires_grad_()"),
    "requires_grad_(False)": always("{0}.requires_grad_(False)"),
    "detach_": always("{0}.detach_()"),
    "t_": always("{0}.t_()"),
    "unsqueeze_": always("{0}.unsqueeze_(0)"),
    "squeeze_": always("{0}.squeeze_()"),
    "transpose_": lambda rng, t: "{0}.transpose_(0, -1)" if t.ndim > 1 else None,
    "retain_grad": always("{0}.retain_grad()"),
    "grad = None": always("{0}.grad = None"),
    "grad = u": always("{0}.grad = {1}.detach()"),
}

HOOKS: dict[str, Form] = {
    "hook": always("{0}.register_hook(note)"),
    "hook *": always("{0}.register_hook(lambda g: g * 2)"),
    "hook +": always("{0}.register_hook(lambda g: note(g) or g * 3)"),
    "accumulated": always("{0}.register_post_accumulate_grad_hook(lambda p: note(p.grad))"),
    "node hook": exact("{0}.grad_fn.register_hook(lambda gi, go: note(*gi, *go))"),
    "node hook *": exact("{0}.grad_fn.register_hook(lambda gi, go: tuple(None if g is None else g * 2 for g in gi))"),
    "node prehook": exact("{0}.grad_fn.register_prehook(lambda go: note(*go))"),
    "hook removed": always("{0}.register_hook(note).remove()"),
    "multi hook": always("lib.autograd.graph.register_multi_grad_hook([{0} * 1, {0} * 2], lambda gs: note(*gs))"),
}

FUNCTIONS = "Identity Row Doubled Exponential Pair Modern Scaled Inside Optional".split()
FUNCTIONS_OF_TWO = ["Product", "Product", "Swapped"]

PASSES: dict[str, Form] = {
    "backward": always("{0}.sum().backward(retain_graph=True)"),
    "backward freed": always("{0}.sum().backward()"),
    "backward create": always("({0} * {0}).sum().backward(create_graph=True)"),
    "backward two": always("lib.autograd.backward([{0}.sum(), ({0} * {0}).sum()], retain_graph=True)"),
    "backward of": always("{0}.backward({0}.detach().clone(), retain_graph=True)"),
    "backward inputs": always("{0}.sum().backward(retain_graph=True, inputs=[{1}])"),
}

# These give a tensor.
GRADIENTS: dict[str, Form] = {
    "grad": always("lib.autograd.grad({0}.sum(), [{1}], retain_graph=True)[0].clone()"),
    "grad create": always("lib.autograd.grad(({0} * {0}).sum(), [{1}], create_graph=True)[0].clone()"),
    "grad several": always("lib.autograd.grad({0}.sum(), [{1}, {0}], retain_graph=True, allow_unused=True)[1].clone()"),
    "grad of grad": always("lib.autograd.grad(lib.autograd.grad(({0} * {0} * {0}).sum(), [{1}], create_graph=True)[0]"
                           ".sum(), [{1}])[0].clone()"),
    "grad zeros": always("lib.autograd.grad({0}.sum(), [{1}], retain_graph=True, materialize_grads=True)[0].clone()"),
    "grad two": always("lib.autograd.grad([{0}, {0} * 2], [{1}], [{0}.detach(), lib.ones_like({0})], "
                       "retain_graph=True)[0].clone()"),
    "grad batched": always("lib.autograd.grad({0}, [{1}], lib.stack([lib.ones_like({0}), {0}.detach()]), "
                           "is_grads_batched=True, retain_graph=True)[0].clone()"),
}  # fmt: skip

# Of a function {0} of one tensor, at the tensor {1}.
_TRANSFORMED = [
    "lib.func.grad(lambda t: {0}(t).sum())({1})",
    "lib.func.grad_and_value(lambda t: {0}(t).sum())({1})[0]",
    "lib.func.vjp({0}, {1})[1](lib.ones_like({0}({1})))[0]",
    "lib.func.jvp({0}, ({1},), (lib.ones_like({1}),))[1]",
    "lib.func.jvp({0}, ({1},), ({1}.detach().clone(),))[0]",
    "lib.func.linearize({0}, {1})[1](lib.ones_like({1}))",
    "lib.func.jacrev({0})({1})",
    "lib.func.jacfwd({0})({1})",
    "lib.func.hessian(lambda t: {0}(t).sum())({1})",
    "lib.func.jacrev(lib.func.jacfwd({0}))({1})",
    "lib.func.jacfwd(lib.func.jacrev({0}))({1})",
    "lib.func.jacfwd(lib.func.jacfwd({0}))({1})",
    "lib.func.grad(lambda t: lib.func.grad(lambda s: {0}(s).sum())(t).sum())({1})",
    "lib.func.jvp(lib.func.grad(lambda t: {0}(t).sum()), ({1},), (lib.ones_like({1}),))[1]",
    "lib.func.grad(lambda t: lib.func.jvp({0}, (t,), (t * 2,))[1].sum())({1})",
    "forward_mode(lib, {0}, {1})",
    "lib.autograd.functional.jacobian({0}, {1})",
    "lib.autograd.functional.vjp({0}, {1}, lib.ones_like({0}({1})))[1]",
]

# Of a function {0} of the rows of {1}.
_BATCHED = [
    "lib.func.vmap({0})({1})",
    "lib.func.vmap(lambda t: {0}(t) + 0 * t.sum(), out_dims=-1)({1})",
    "lib.func.vmap({0}, chunk_size=1)({1})",
    "lib.func.vmap(lib.func.grad(lambda t: {0}(t).sum()))({1})",
    "lib.func.vmap(lib.func.jacrev({0}))({1})",
    "lib.func.vmap(lambda t: lib.func.jvp({0}, (t,), (t * 1,))[1])({1})",
    "lib.func.grad(lambda s: lib.func.vmap({0})(s).sum())({1})",
    "lib.func.jvp(lib.func.vmap({0}), ({1},), (lib.ones_like({1}),))[1]",
    "lib.func.vmap({0}, in_dims=-1)({1}.movedim(0, -1))",
]

# Copies, as what torch returns may be a view, repeat elements, or have another layout.
_COPIED = ".clone(memory_format=lib.contiguous_format)"
TRANSFORMS = ["{0}({1})", "lib.utils.checkpoint.checkpoint({0}, {1}, use_reentrant=False)"]
TRANSFORMS += [form + _COPIED for form in _TRANSFORMED]
BATCHED = [form + _COPIED for form in _BATCHED]

SHAPES = [(3,), (2, 3), (2, 3), (3, 2), (), (1, 3), (2, 2), (2, 1, 3), (2, 3, 2), (4,), (1,), (0, 3), (6,)]
DTYPES = ["float64"] * 8 + ["float32"] * 4 + ["complex128", "complex64", "int64", "int64", "bool"]
DTYPES += ["float16", "bfloat16", "int32", "uint8"]
VALUES = [-2.0, -1.5, -1.0, -0.5, 0.0, 0.25, 0.5, 0.75, 1.0, 1.25, 1.5, 2.0]
