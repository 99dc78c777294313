"""Memory formats: in which order the axes of a result lie in memory."""

from __future__ import annotations

from typing import Any

from tests.oracle import cases
from tests.side_by_side import named, programs

PROGRAMS, program = programs()


# x is contiguous, y channels-last, z has five axes; F and G are the formats of four and five.
FORMATS = cases("""
x.to(memory_format=F) | x.contiguous(memory_format=F) | x.clone(memory_format=F) | y.to(torch.float64) | y.contiguous()
x.clone(memory_format=torch.contiguous_format) | y.clone(memory_format=torch.contiguous_format) | y.clone() | y * 2 | -y
y.to(memory_format=torch.contiguous_format) | y.double(memory_format=F) | x.double(memory_format=F) | y.add_(1)
x.transpose(1, 2).clone(memory_format=torch.contiguous_format) | x.transpose(1, 2).to(memory_format=F)
x.transpose(1, 2).to(memory_format=torch.contiguous_format) | x.transpose(1, 2).clone(memory_format=F)
torch.zeros_like(y) | torch.zeros_like(x, memory_format=F) | torch.full_like(x, 2.0, memory_format=F) | y + y | x + x
torch.empty(2, 3, 4, 5, memory_format=F).zero_() | torch.empty(2, 3, memory_format=F) | x[0].contiguous(memory_format=F)
torch.ones(2, 1, 4, 5).clone(memory_format=F) | torch.ones(2, 3, 1, 1).clone(memory_format=F)
torch.rand_like(x, memory_format=F).zero_() | z.to(memory_format=G) | z.contiguous(memory_format=G)
z.to(memory_format=F)
x.to(torch.float64, memory_format=G) | x.contiguous(memory_format=torch.preserve_format)
y.contiguous(memory_format=torch.preserve_format) | grad(x, lambda t: t.contiguous(memory_format=F))
grad(y, lambda t: t * 2) | grad(x, lambda t: t.clone(memory_format=F).double()) | grad(y, lambda t: t.contiguous())
torch.nn.init.zeros_(torch.nn.Conv2d(2, 3, 2).to(memory_format=F).weight) | torch.nn.init.ones_(linear.weight)
""")


def _seen(lib: Any, code: str) -> Any:
    x = lib.arange(120.0).reshape(2, 3, 4, 5)
    y, z = x.contiguous(memory_format=lib.channels_last), lib.arange(48.0).reshape(1, 2, 2, 3, 4)

    def grad(t: Any, f: Any) -> Any:
        leaf = t.clone().requires_grad_()
        f(leaf).sum().backward()
        return leaf.grad

    linear = lib.nn.Linear(2, 3).to(memory_format=lib.channels_last)
    names = {"x": x, "y": y, "z": z, "grad": grad, "linear": linear, "torch": lib}
    found = eval(code, names | {"F": lib.channels_last, "G": lib.channels_last_3d})
    return found, list(found.stride())


PROGRAMS += [named(code, lambda lib, code=code: _seen(lib, code)) for code in FORMATS]


@program
def which_formats_a_tensor_has(lib: Any) -> Any:
    x = lib.ones(2, 3, 4, 5)
    y, z = x.contiguous(memory_format=lib.channels_last), lib.ones(1, 2, 2, 3, 4)
    tensors = (x, y, z, z.contiguous(memory_format=lib.channels_last_3d), x[0], lib.ones(2, 1, 4, 5))
    formats = (lib.channels_last, lib.channels_last_3d, lib.contiguous_format, lib.preserve_format)
    told = [t.is_contiguous(memory_format=f) for t in tensors for f in formats]
    return told, y.to(memory_format=lib.channels_last) is y, y.contiguous(memory_format=lib.channels_last) is y


@program
def results_of_tensors_that_repeat_elements_are_contiguous_in_every_dtype(lib: Any) -> Any:
    ways = [
        lambda t: t.cos(),
        lambda t: t.sqrt(),
        lambda t: t / 2,
        lambda t: t / t,
        lambda t: t * 1.5,
        lambda t: t * 1j,
        lambda t: t + 1,
        lambda t: t**2,
        lambda t: t % 1.5,
        lambda t: t // 2,
        lambda t: t.sigmoid(),
        lambda t: t.sgn(),
        lambda t: lib.atan2(t, t),
        lambda t: lib.where(t > 0, t, 0.5),
        lambda t: t.lerp(t, 0.5),
        lambda t: t.clamp(min=0.5),
        lambda t: t.flip(-1),
        lambda t: t.nan_to_num(),
        lambda t: t.index_fill(0, lib.tensor([0]), 1),
        lambda t: t.index_put((lib.tensor([0]),), t[:1]),
        lambda t: t.round(),
        lambda t: lib.nn.functional.softshrink(t),
        lambda t: lib.zeros_like(t),
        lambda t: t[None].cos(),
        lambda t: t[None].clone(),
        lambda t: t[:, None].bfloat16(),
    ]
    found = []
    for name in "bool uint8 int32 int64 float16 bfloat16 float32 float64".split():
        x = lib.tensor([1, 2, 3]).to(getattr(lib, name))
        wide = lib.arange(12).reshape(3, 4).t().to(getattr(lib, name))
        for t in (x.expand(2, 3), x.expand(2, 3, 3).transpose(1, 2), wide, x[:, None].expand(2, 3, 2)):
            for way in ways:
                try:
                    result = way(t)
                    found.append([step for n, step in zip(result.shape, result.stride(), strict=True) if n > 1])
                except RuntimeError:
                    found.append("refused")
    return found
