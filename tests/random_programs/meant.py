"""What the smallest program shows that differs on purpose, or where PyTorch is at fault: each with its reason.

`deliberate.py` leaves a step out beforehand; here a difference is looked at once it has been cut down. Each reason says
what must differ and in which operations, so that nothing else passes for it. `docs/differences.md` states them, and
tests hold our answers.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from tests.random_programs.deliberate import writes
from tests.random_programs.evidence import (
    DOUBLED_BY_NODE,
    MASKED,
    NODE_HOOK,
    RECORDED_VJP,
    Shown,
    agree_where_finite,
    as_near_as_torch,
    beside_a_hook,
    by_formula,
    constant_by_definition,
    constant_here,
    constant_in_torch,
    constant_tangents,
    constant_views,
    copied_parts,
    decided_by_rounding,
    dtype_of,
    for_each_element,
    independent_of_writes,
    kept_graphs,
    lost_by_torch,
    made_dense,
    masked_copies,
    masks_take_nothing,
    nan_for_zero,
    nan_in_torch,
    not_finite,
    nothing_of_copies,
    nothing_shown,
    numbers_agree,
    numbers_copied,
    of_a_stable_sort,
    of_one_maximum,
    of_the_first_call,
    of_the_square,
    of_the_values_before,
    once,
    only_denormal,
    passes_through_nothing_freed,
    refused_for_each,
    refused_in_reverse_alone,
    refused_in_turn,
    refused_operands_right,
    refused_results,
    refused_right,
    replaced,
    returns_from_outside,
    right,
    right_with_axes_of_their_own,
    same_here,
    same_in_double,
    seen_in_part,
    settled,
    silent,
    stacked_without_format,
    strided_bases,
    unused_by_definition,
    with_wide_integers,
    without_writes,
    writes_to_none,
    written_before_the_error,
    written_to_copies,
    zeros,
)
from tests.random_programs.steps import Program, forms_of

Reason = Callable[[Shown], bool]

REASONS: dict[str, Reason] = {
    "`linearize` calls the function once: torch calls it twice, with all that it writes": lambda d: (
        d.does("linearize(")
        and any(writes(form) for form in forms_of(d.program))
        and not d.what.startswith("refused")
        and (not d.what.startswith("values of") or once(d) or right(d))
    ),
    "a leaf that requires grad only after it was used: the derivatives of what used it do not reach it": lambda d: (
        d.does("{0}.requires_grad_()") and d.what.startswith("gradients of") and "raises" not in d.answers
    ),
    "of two reasons to refuse a call of `linearize`, the dtype comes first": lambda d: (
        d.does("linearize(") and "Expected primal to be floating" in d.ours and d.theirs.startswith("raises")
    ),
    "what `linearize` gives is a constant: torch's requires grad, but its gradient goes nowhere": lambda d: (
        d.does("linearize(") and d.what.startswith("requires_grad of") and d.ours == "False"
    ),
    "within transforms, a part of several may be written to, and keeps its history": lambda d: (
        d.transforms
        and d.does("chunk", "split", "unbind", "hsplit")
        and (d.only_torch_refuses("output of a function that ret") or written_before_the_error(d))
    ),
    "a view gets its new place in the graph at once: torch may refuse to write to it until then": lambda d: (
        d.only_torch_refuses("a leaf Variable that requires grad is being used")
    ),
    "within transforms, a result may have another layout, and share memory or not": lambda d: (
        (d.inside(".view(") and d.what.startswith("refused: ") and d.only_torch_refuses("view size is not compatible"))
        or (
            d.what.startswith(("view of", "values of", "writes to"))
            and d.transforms
            and d.inside(".contiguous(", ".flatten(", ".reshape(")
            and any(writes(form) for form in forms_of(d.program))
        )
    ),
    "results of `einsum` and `repeat_interleave` are no views of computed memory": lambda d: (
        d.does("einsum(", "repeat_interleave(")
        and (d.only_torch_refuses("Can't detach views|A view was created in no_grad mode") or d.does(".register_hook("))
        and nothing_of_copies(d, "einsum(", "repeat_interleave(")
    ),
    "a second `jvp` of a Function is that of its jvp: torch's is zero": lambda d: (
        d.inside("F.Modern", "F.Scaled")
        and d.does("jacfwd(lib.func.jacfwd", "jvp(lib", "hessian", "linearize")
        and (
            d.what.startswith("requires_grad of")
            or (d.what.startswith(("values of", "gradients of")) and right(d))
            or (
                d.only_torch_refuses(
                    "doesn't require gradient|does not require grad and does not have a grad_fn"
                    "|Expected gradient function to be set"
                )
                and refused_operands_right(d)
            )
        )
    ),
    "a tensor written over itself counts as written to": lambda d: (
        d.what.startswith("writes to ") and d.does("{0}[..., 0] = {1}", "{0}[0] = {1}", "{0}[...] = {1}")
    ),
    "a write by a mask within transforms counts, even if it changes nothing": lambda d: (
        d.what.startswith("writes to ") and d.transforms and d.does("] = 1.0", "masked_fill_")
    ),
    "in forward mode tangents have the dtype of the result: torch's of a 0-d tensor may be wider": lambda d: (
        d.forward
        and (
            (
                d.what.startswith("values of")
                and dtype_of(d.ours) != dtype_of(d.theirs)
                and numbers_agree(d.ours, d.theirs)
            )
            or d.only_torch_refuses(r"expected dtype \w+ for `\w+` but got dtype")
            or (
                d.only_torch_refuses(
                    "requires the source and destination dtypes match|expected self and source to have same dtypes"
                    "|expected both vectors to have same dtype"
                )
                and refused_right(d)
            )
        )
    ),
    "the rule of `einsum` saves other values than torch's: what has been detached since may be refused": lambda d: (
        d.does("einsum(") and d.only_pullback_refuses("has been detached in-place")
    ),
    "a tensor multiplied by itself in place: in forward mode torch multiplies by the values already written": (
        lambda d: (
            d.what.startswith(("values of", "gradients of"))
            and d.forward
            and d.inside("addcmul_(", "*= {", "mul_({")
            and right(d)
        )
    ),
    "in forward mode torch's result shares its tangent with an argument that is then written to": lambda d: (
        d.what.startswith("values of")
        and d.forward
        and d.inside("% 1.5")
        and any(writes(form) for form in forms_of(d.program))
        and right(d)
    ),
    "the Jacobian of windows that share elements: torch mixes up their tangents": lambda d: (
        d.what.startswith(("values of", "gradients of")) and d.forward and d.does("unfold(") and right(d)
    ),
    "elements that `as_strided` of a view takes from beyond it have their gradients: torch gives them none": lambda d: (
        d.what.startswith("gradients of")
        and d.does("as_strided(")
        and nothing_shown(strided_bases(d.program))
        and same_here(d, strided_bases(d.program))
    ),
    "within transforms, `as_strided` sees a tensor as if it were contiguous": lambda d: (
        d.transforms
        and d.inside("as_strided(")
        and (
            d.what.startswith(("values of", "gradients of"))
            or d.only_torch_refuses("can access memory outside of `tensor`")
        )
    ),
    "the gradients of `layer_norm` and `hypot` cancel: in low precision, rounding is all that is left": lambda d: (
        (d.does("layer_norm(") or (d.does("hypot(") and "bfloat16" in d.answers))
        and d.what.startswith("gradients of")
        and ("float64, [" not in d.answers or "float32" in d.text)  # a leaf of float64 may go through float32
        and same_in_double(d)
    ),
    "of two reasons to refuse a Function in forward mode, the missing jvp comes first": lambda d: (
        "you must implement the jvp" in d.ours and d.theirs.startswith("raises") and d.forward
    ),
    "under `vmap`, dtypes are promoted as for one element: torch counts the axis of the batch": lambda d: (
        d.does("vmap(")
        and (
            (d.what.startswith("values of") and dtype_of(d.ours) != dtype_of(d.theirs))
            or d.only_pullback_refuses(
                "requires the source and destination dtypes match|input, weight and bias of one dtype"
            )
            or d.only_torch_refuses(
                "expected self and source to have same dtypes|must have the same dtype"
                r"|source and destination dtypes match|expected dtype \w+ for `\w+` but got dtype"
            )
        )
        and for_each_element(d)
    ),
    "what `repeat`, `tile` and `stack` make of an inference tensor is no view: torch takes it for one, and refuses": (
        lambda d: (
            d.only_torch_refuses("A view was created in no_grad mode|Can't detach views")
            and d.does(".tile(", ".repeat(", ".stack(")
            and d.text.count("inference_mode") > 0
        )
    ),
    "in the gradients of `addcmul` and `atan2`, torch computes with integers as integers, which overflow": lambda d: (
        (d.what.startswith(("gradients of", "grad of")) or (d.transforms and d.what.startswith("values of")))
        and "raises" not in d.answers
        and (d.does("addcmul") or d.does("atan2("))
        and d.does("lib.uint8")
        and (not d.what.startswith("values of") or nothing_shown(with_wide_integers(d.program)))
    ),
    "a transformed function that returns a tensor from outside, which needs no conversion: a hook on it is called": (
        lambda d: (
            (d.only_pullback_refuses("NumPy cannot have the values of a tensor inside") or d.what == "hooks")
            and d.transforms
            and d.does(".register_hook(")
            and returns_from_outside(d)
        )
    ),
    "a tangent that is zero: torch has none of what a comparison wrote": lambda d: (
        d.does("forward_mode(")
        and d.only_torch_refuses("'NoneType' object has no attribute")
        and d.inside("eq_(", "ne_(", "lt_(", "le_(", "gt_(", "ge_(")
        and zeros(refused_results(d))
    ),
    "`t[...]` and `t % s` under `no_grad` are constants, and so are their tangents: torch's is that of `t`": lambda d: (
        d.forward
        and d.inside("[...]", "% 1.5")
        and "with lib.no_grad()" in d.text
        and (
            (d.what.startswith("requires_grad of") and d.ours == "False")
            or d.what.startswith(("values of", "gradients of"))
            or d.only_pullback_refuses("does not require grad and does not have a grad_fn")
        )
    ),
    "what a transform returns of a view made under `no_grad` is a constant: torch's claims to require grad": lambda d: (
        d.transforms
        and "with lib.no_grad()" in d.text
        and (
            (d.what.startswith("requires_grad of") and d.ours == "False")
            or (
                d.only_torch_refuses("cannot be registered on non-leaf tensors")
                and nothing_shown(constant_views(d.program))
            )
        )
    ),
    "within transforms, a view made under `no_grad` may be looked at after a write to its base": lambda d: (
        d.transforms and d.only_torch_refuses("A view was created in no_grad mode and its base or another view")
    ),
    "a gradient that nobody asks for is not computed: torch's rules of `cat` and `stack` show it to hooks": lambda d: (
        d.what == "hooks" and d.does("cat(", "stack(") and d.does("grad_fn.register_hook") and seen_in_part(d)
    ),
    "`baddbmm` has the shape of the product, within `vmap` as outside": lambda d: (
        d.transforms and d.only_pullback_refuses("expected input to be broadcast to the shape of the product")
    ),
    "a remainder of 0 has the sign of the divisor, as in Python: torch's may be -0.": lambda d: (
        d.does("% 1.5") and d.does("atan2(") and d.what.startswith("values of") and "3.14159" in d.ours
    ),
    "`index_fill_` refuses elements that share memory, as other writes do: torch warns": lambda d: (
        d.does("index_fill_(") and d.only_pullback_refuses("more than one element of the written-to tensor")
    ),
    "within transforms `as_strided` of another layout is a copy, which is refused a write": lambda d: (
        d.transforms
        and d.inside("as_strided(")
        and d.only_pullback_refuses("expected writable memory, found a read-only array")
    ),
    "a tangent to which nothing that is recorded contributes requires no grad: torch adds zeros that do": lambda d: (
        d.forward
        and (
            (
                d.what.startswith("requires_grad of")
                and d.ours == "False"
                and d.inside("where(")
                and "lib.complex" in d.text  # torch's gradient cannot be asked for: it fails within
            )
            or (
                d.does("requires_grad_()")
                and d.only_pullback_refuses("a leaf Variable that requires grad is being used")
            )
        )
    ),
    "a tangent that is a constant: torch's claims to require grad, and what follows of that differs": lambda d: (
        d.forward
        and (
            (
                (
                    d.only_pullback_refuses("appears to not have been used in the graph")
                    or d.only_torch_refuses("is a view and is being modified inplace")
                    or d.only_torch_refuses(
                        "A view was created in inference mode and is being modified inplace in normal mode"
                    )
                    or (d.what.startswith("requires_grad of") and d.ours == "False")
                )
                and (constant_here(d) or constant_by_definition(d))
            )
            or (
                d.only_pullback_refuses("appears to not have been used in the graph")  # it may require grad otherwise
                and unused_by_definition(d)
            )
            or (
                re.search("differentiated Tensors.*does not require grad", d.ours) is not None
                and "'NoneType' object has no attribute" in d.theirs
                and constant_here(d)
                and nothing_shown(constant_views(d.program))
            )
            or (
                d.only_torch_refuses(
                    "A view was created in inference mode and its base or another view of its base has"
                )
                and constant_here(d)
                and nothing_shown(constant_tangents(d.program))
            )
        )
    ),
    "within transforms, a write to a view of a tensor from outside reaches it: torch's derivative of it is zero": (
        lambda d: (
            d.what.startswith("values of")
            and d.transforms
            and d.inside("copy_(")
            and d.inside("[...]", "view_as(", "[0]")
            and not re.search(r"[1-9]", d.theirs.partition(", ")[2])
        )
    ),
    "within `vmap`, `cat` and `split` refuse elements without axes: torch says so of an axis of the batch": lambda d: (
        d.does("vmap(")
        and d.inside("cat(", ".split(")
        and re.search("zero-dimensional|at least a 1-dimensional", d.ours) is not None
        and d.theirs.startswith("raises IndexError")
        and for_each_element(d)
    ),
    "within `vmap`, torch cannot write by a mask to no elements": lambda d: (
        d.does("vmap(")
        and d.inside("] = 1.0")
        and d.only_torch_refuses("Dimension out of range")
        and for_each_element(d)
    ),
    "a product with a sparse matrix has second derivatives: torch's fail": lambda d: (
        d.does("lib.sparse.mm(")
        and d.only_torch_refuses("expected sparse coordinate tensor layout but got Strided")
        and nothing_shown(made_dense(d.program))
        and same_here(d, made_dense(d.program))
    ),
    "the node of `to_dense` is one of the entries: a hook sees their gradient, in torch's a sparse tensor": lambda d: (
        d.does(".to_dense()")
        and d.does(NODE_HOOK[0])
        and d.only_torch_refuses("can't convert Sparse layout tensor to numpy")
        and nothing_shown(replaced(d.program, *NODE_HOOK))
    ),
    "in forward mode, a leaf that requires grad is not written to by a view: torch makes it a dual tensor": lambda d: (
        d.does("forward_mode(")
        and d.only_pullback_refuses("inplace arithmetic is not possible on a tensor from outside")
        and nothing_shown(replaced(d.program, "requires_grad=True", "requires_grad=False"))
    ),
    "a write to a part needs nothing that a pass frees: torch's does": lambda d: (
        d.inside("] = ")
        and d.only_torch_refuses("a second time")
        and d.does(RECORDED_VJP[0])
        and nothing_shown(replaced(d.program, *RECORDED_VJP))
    ),
    "parts of several that belong to a graph outside of a transform may not be written to within it": lambda d: (
        d.transforms and d.only_pullback_refuses("is the output of a function that returns multiple vie")
    ),
    "`block_diag` sees rows of a matrix, of what has one axis: so does a hook on its node": lambda d: (
        d.what == "hooks" and d.does("block_diag") and d.does(".grad_fn.register_")
    ),
    "where torch's tangent is wider, `double()` of it is no copy, and is refused a write in inference mode": lambda d: (
        d.forward and d.does(".double()") and d.only_torch_refuses("Inplace update to inference tensor")
    ),
    "`alpha` is a product of its own: a hook on the node of the sum sees the gradient before it": lambda d: (
        d.what == "hooks" and d.does("alpha=") and d.does(".grad_fn.register_")
    ),
    "the axes of a result are in an order that an operand has, where operands or torch's choice leave two": lambda d: (
        d.what.startswith("layout of") and settled(d)
    ),
    "in half precision, what overflows is infinite or NaN by the order of operations": lambda d: (
        "float16, [" in d.ours
        and d.ours != d.theirs
        and (not_finite(d.ours) == not_finite(d.theirs) or agree_where_finite(d.ours, d.theirs))
        and same_in_double(d)
    ),
    "a second derivative that does not exist, of a norm or an angle at 0, is 0: torch's may be NaN": lambda d: (
        d.transforms
        and (d.what.startswith("values of") or (d.forward and d.what.startswith(("gradients of", "grad of"))))
        and "nan" in d.theirs
        and "nan" not in d.ours
        and d.inside("norm(", "std(", "hypot(", "abs(", "logaddexp", "sgn(", "atan2(")
    ),
    "a write to memory that repeats elements, or to a part of it, is refused in transforms": lambda d: (
        d.transforms and d.only_pullback_refuses("more than one element of the written-to tensor")
    ),
    "a write to what shares elements is refused: torch lets triangles, `clamp_` of integers, `t.copy_(t)` pass": (
        lambda d: (
            written_to_copies(d.program) != d.program
            and d.only_pullback_refuses("more than one element of the written-to tensor")
            and nothing_shown(written_to_copies(d.program))
        )
    ),
    "a write by a mask to what `expand` repeats is refused: torch lets it pass, or refuses when it has written": (
        lambda d: (
            d.does(*MASKED)
            and d.does(".expand(")
            and nothing_shown(masked_copies(d.program))
            and (
                d.only_pullback_refuses("more than one element of the written-to tensor")
                or (
                    d.what.startswith("values of")
                    and "raises" not in d.answers
                    and same_here(d, masked_copies(d.program))
                )
            )
        )
    ),
    "within `linearize`, a tensor from outside is not written to, as in other transforms": lambda d: (
        d.does("linearize(") and d.only_pullback_refuses("inplace arithmetic is not possible on a tensor from outside")
    ),
    "in forward mode the tangent of a real result is real: torch's may be complex": lambda d: (
        d.forward and d.what.startswith("values of") and "float" in dtype_of(d.ours) and "complex" in dtype_of(d.theirs)
    ),
    "in forward mode torch's `masked_scatter` fails where the source has another shape": lambda d: (
        d.forward
        and d.inside("masked_scatter")
        and d.only_torch_refuses("Trying to set a forward gradient that has a different size")
        and refused_right(d)
    ),
    "`gelu` of a large negative number is a tiny one: torch's is 0": lambda d: (
        d.does("gelu(") and d.does(".bool()", "== 0", "!= 0") and d.what.startswith("values of") and "bool" in d.ours
    ),
    "in bfloat16, second derivatives keep few digits, and what is computed from them may keep none": lambda d: (
        d.what.startswith(("values of", "gradients of"))
        and d.ours.strip("[").startswith("bfloat16")
        and d.theirs.strip("[").startswith("bfloat16")
        and d.does("create_graph=True")
        and not_finite(d.ours) == d.ours
        and same_in_double(d)
    ),
    "what `take` and `masked_scatter` make under `no_grad` is no view: torch takes it for one": lambda d: (
        d.transforms
        and d.inside(".take(", ".masked_scatter(")
        and d.only_torch_refuses("A view was created in no_grad mode")
        and refused_right(d)
    ),
    "a gradient that does not depend on what was written: torch refuses it where a view under `no_grad` shares it": (
        lambda d: (
            d.what.startswith(("gradients of", "grad of"))
            and d.only_torch_refuses("its base or another view of its base has been modified inplace")
            and independent_of_writes(d)
        )
    ),
    "a view whose axes are changed in place, and that is written to: torch's gradient has the axes it had before": (
        lambda d: d.what.startswith(("gradients of", "grad of")) and right_with_axes_of_their_own(d)
    ),
    "several passes at once, of any layout: torch's `vmap` refuses `as_strided` of some": lambda d: (
        d.only_torch_refuses("Calling Tensor.as_strided is not supported unless the batch dims") and refused_in_turn(d)
    ),
    "a leaf that a Function must not write to stays one: torch loses the nodes of its views": lambda d: (
        d.what.startswith("grad_fn of") and d.ours == "False" and lost_by_torch(d)
    ),
    "rules of transforms save other values than torch's: what is written to in between may be refused": lambda d: (
        d.transforms and d.only_pullback_refuses("modified by an inplace operation|has been detached in-place")
    ),
    "of numbers that are equal or zero but for rounding, either may be larger, with any sign or remainder": lambda d: (
        d.what.startswith(("values of", "gradients of", "grad of", "layout of"))
        and "raises" not in d.answers
        and decided_by_rounding(d)
    ),
    "forward mode goes through what has no rule for it in torch": lambda d: (
        d.forward
        and d.only_torch_refuses(r"Trying to use forward AD with \S+ that does not support it")
        and refused_right(d)
    ),
    "`cat`, `stack` and `roll` do not keep `channels_last`": lambda d: (
        d.what.startswith("layout of") and d.does("cat(", "stack(", ".roll(") and stacked_without_format(d)
    ),
    "the gradient of `repeat_interleave` needs nothing that a pass frees: torch's needs its positions": lambda d: (
        d.does("repeat_interleave(") and passes_through_nothing_freed(d)
    ),
    "a tangent does not need its primal where torch adds zeros that do: a pass has freed nothing of it": lambda d: (
        d.forward and passes_through_nothing_freed(d)
    ),
    "a view made under `no_grad` is a constant: torch's claims to require grad, and what follows differs": lambda d: (
        "with lib.no_grad()" in d.text
        and d.only_torch_refuses(
            "is a view and is being modified inplace"
            "|A view was created in inference mode and is being modified inplace in normal mode"
        )
        and nothing_shown(constant_views(d.program))
    ),
    "a comparison in place with what requires grad is two nodes: a hook on it sees the gradient between": lambda d: (
        d.what == "hooks"
        and d.does(".grad_fn.register_")
        and d.does(".eq_({1})")
        and nothing_shown(replaced(d.program, ".eq_({1})", ".eq_({1}.detach())"))
    ),
    "a product saves its operands: torch may save a copy of a batch, which is not written to": lambda d: (
        d.does("{0} @ {1}")
        and d.only_pullback_refuses("modified by an inplace operation|has been detached in-place")
        and nothing_shown(replaced(d.program, "{0} @ {1}", "{0}.clone() @ {1}.clone()"))
    ),
    "a tensor from outside that is written to before a checkpoint runs again is refused: torch's gradient mixes both": (
        lambda d: (
            d.does("checkpoint(")
            and d.only_pullback_refuses("modified by an inplace operation")
            and nothing_shown(without_writes(d.program))
        )
    ),
    "gradients of several passes at once are not sparse: torch lets those of no elements pass": lambda d: (
        d.does("is_grads_batched=True")
        and d.does(".to_sparse()")
        and d.does("lib.tensor([],", "lib.tensor([[],")
        and d.only_pullback_refuses("not defined for sparse tensors")
    ),
    "a gradient that does not exist is None: torch's may be whatever lay in memory": lambda d: (
        d.forward and d.what.startswith("gradients of") and "None" in d.ours and only_denormal(d.ours, d.theirs)
    ),
    "what `detach()` makes of an inference tensor is one: torch lets gradients be added to it": lambda d: (
        d.does(".grad = {1}.detach()")
        and d.only_pullback_refuses("Inplace update to inference tensor outside InferenceMode")
        and nothing_shown(replaced(d.program, ".grad = {1}.detach()", ".grad = {1}.detach().clone()"))
    ),
    "where numbers cancel, rounding is what is left: ours is as near as torch's": lambda d: (
        d.what.startswith(("values of", "gradients of", "grad of"))
        and "raises" not in d.answers
        and as_near_as_torch(d)
    ),
    "the logistic function of a complex number far to the left is zero: in torch it overflows, to NaN": lambda d: (
        d.what.startswith("values of") and d.does("sigmoid") and nan_in_torch(d) and same_in_double(d)
    ),
    "`gelu` takes windows of bfloat16 that share memory: torch's has no description of them": lambda d: (
        d.does("gelu(")
        and d.only_torch_refuses("could not construct a memory descriptor using strides")
        and same_in_double(d)
    ),
    "in several passes at once, hooks have no values to look at: torch's see one zero for all below `t ** 0`": (
        lambda d: (
            d.does("is_grads_batched=True")
            and d.does("** 0")
            and d.only_pullback_refuses("NumPy cannot have the values of a tensor inside")
            and nothing_shown(silent(d.program))
        )
    ),
    "a write by a mask that takes nothing needs nothing that a pass frees: torch's needs the mask": lambda d: (
        d.does("] = 1.0") and masks_take_nothing(d) and passes_through_nothing_freed(d)
    ),
    "torch's gradient of `sgn` is a zero that no NaN meets: here it may, where there is no derivative": (
        lambda d: d.transforms and d.inside(".sgn(") and d.what.startswith("values of") and nan_for_zero(d)
    ),
    "what a transform makes of no elements has a gradient of none: torch's may require no grad": lambda d: (
        d.transforms and d.only_torch_refuses("Expected gradient function to be set") and constant_in_torch(d)
    ),
    "`vjp` refuses a view made under `no_grad` whose base was written to: torch refuses its gradients, later": (
        lambda d: (
            "with lib.no_grad()" in d.text
            and d.does("vjp(")
            and d.what.startswith("values of")
            and nothing_shown(constant_views(d.program))
        )
    ),
    "a backward that needs what was freed adds nothing to any gradient: torch's has added to some before it fails": (
        lambda d: (
            d.what.startswith("grad of")
            and d.ours == "None"
            and d.does(".backward()")
            and nothing_shown(replaced(d.program, ".backward()", ".backward(retain_graph=True)"))
        )
    ),
    "third derivatives of `layer_norm` are those of its formula: torch's are wrong": lambda d: (
        d.does("layer_norm(")
        and d.does("create_graph=True")
        and d.what.startswith(("gradients of", "grad of"))
        and nothing_shown(by_formula(d.program))
        and same_here(d, by_formula(d.program))
    ),
    "a part stays valid if a write did not reach it: torch counts the writes to the whole memory, and refuses": (
        lambda d: (
            d.only_torch_refuses("modified by an inplace operation")
            and nothing_shown(copied_parts(d.program))
            and (not d.what.startswith(("gradients of", "grad of")) or same_here(d, copied_parts(d.program)))
        )
    ),
    "an element is saved by its value, and may be written to: torch refuses": lambda d: (
        d.only_torch_refuses("modified by an inplace operation|is a view and its base or another view of its base")
        and nothing_shown(numbers_copied(d.program))
        and (not d.what.startswith(("gradients of", "grad of")) or same_here(d, numbers_copied(d.program)))
    ),
    "the node of `gelu` has the probability as a second result: a second derivative meets its hooks, or frees it": (
        lambda d: (
            d.does("gelu(")
            and (
                (
                    d.what.startswith(("gradients of", "grad of"))
                    and d.does(DOUBLED_BY_NODE[0])
                    and nothing_shown(replaced(d.program, *DOUBLED_BY_NODE))
                )
                or (
                    d.only_pullback_refuses("a second time.*GeluBackward0 dropped")
                    and nothing_shown(kept_graphs(d.program))
                )
            )
        )
    ),
    "`mse_loss` saves the difference: torch's saves both, and computes with what `data` wrote to one since": lambda d: (
        d.does("mse_loss(")
        and d.what.startswith(("gradients of", "grad of"))
        and "raises" not in d.answers
        and of_the_values_before(d)
    ),
    "the function that `vjp` gives is that of its call: torch's computes with what was written since": lambda d: (
        d.what.startswith(("values of", "gradients of")) and "raises" not in d.answers and of_the_first_call(d)
    ),
    "in several passes at once, hooks have no values to look at: torch's have those of no elements": lambda d: (
        d.does("is_grads_batched=True")
        and d.does("lib.tensor([],", "lib.tensor([[],")
        and d.only_pullback_refuses("NumPy cannot have the values of a tensor inside")
        and nothing_shown(silent(d.program))
    ),
    "a write to no elements reaches no other part: torch counts it, and refuses": lambda d: (
        d.only_torch_refuses("modified by an inplace operation") and writes_to_none(d)
    ),
    "a part that a write did not reach keeps its place, apart from hooks that its base gets then": lambda d: (
        d.what.startswith("gradients of") and "raises" not in d.answers and beside_a_hook(d)
    ),
    "a part that a write did not reach has no gradient by what was written: torch's may be zero": lambda d: (
        d.what.startswith("gradients of")
        and "raises" not in d.answers
        and "None" in d.ours
        and nothing_shown(copied_parts(d.program))
        and same_here(d, copied_parts(d.program))
    ),
    "within `vmap`, torch cannot compute gradients of a convolution for no elements": lambda d: (
        d.transforms
        and d.inside("conv1d(", "conv2d(", "conv3d(")
        and d.only_torch_refuses(r"expected weight to be at least \d+ at dimension 0, but got weight of size \[0")
        and refused_in_reverse_alone(d)
    ),
    "a tensor multiplied by itself in place has the gradient of its square: torch refuses": lambda d: (
        d.what.startswith(("gradients of", "grad of"))
        and d.only_torch_refuses("modified by an inplace operation")
        and of_the_square(d)
    ),
    "of equal elements, `sort` keeps the order: torch's is stable only if that is asked for": lambda d: (
        d.what.startswith(("gradients of", "grad of")) and "raises" not in d.answers and of_a_stable_sort(d)
    ),
    "a part that a write did not reach needs nothing that a pass frees: torch's goes through the write": lambda d: (
        passes_through_nothing_freed(d)
        and nothing_shown(copied_parts(d.program))
        and (not d.what.startswith(("gradients of", "grad of")) or same_here(d, copied_parts(d.program)))
    ),
    "a tangent of `softplus` is a product with a sigmoid, which a second derivative frees: torch's has its own node": (
        lambda d: (
            d.forward
            and d.inside("softplus(")
            and d.only_pullback_refuses("a second time.*SigmoidBackward0 dropped")
            and nothing_shown(kept_graphs(d.program))
        )
    ),
    "within `vmap`, a tangent of `cat` of no elements has the axis of the batch: torch's has none, and no sum fits": (
        lambda d: (
            d.forward
            and d.inside("cat(")
            and d.only_torch_refuses("output with shape .* doesn't match the broadcast shape")
            and refused_for_each(d)
        )
    ),
    "no NaN comes past the mask of `amax`: torch multiplies by it": lambda d: (
        d.does(".amax(")
        and d.what.startswith(("values of", "gradients of", "grad of"))
        and "nan" in d.theirs
        and of_one_maximum(d)
    ),
}


def reason_of(what: str, answers: str, program: Program) -> str:
    """Why a difference is meant; "" if it is not."""
    shown = Shown(what, answers, program)
    return next((reason for reason, explains in REASONS.items() if explains(shown)), "")


def said(counts: dict[str, int]) -> str:
    """How often each reason was met, for the end of a run."""
    lines = [f"  {n:5} x {reason}" for reason, n in sorted(counts.items(), key=lambda pair: -pair[1])]
    return "\n".join([f"differences that are meant, in the smallest programs: {sum(counts.values())}", *lines])
