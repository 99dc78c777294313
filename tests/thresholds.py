"""Every size from which on the library computes in another way, and the small one that tests lower it to.

The samples of the table are small, so that most of them never meet the code for large arrays. `pytest --low-thresholds`
runs any tests with all of these sizes lowered; `tests/house/test_thresholds.py` holds that none is missing here.
"""

from __future__ import annotations

import importlib

# The name of each threshold, and its value in a run for large arrays.
LOWERED = {
    "kernels.masks._LARGE": 1,
    "kernels.matrices._BLOCK": 2,
    "kernels.positions._FEW": 0,
    "kernels.positions._LONG": 1,
    "kernels.positions._MANY": 2**62,  # NumPy's ways; the loop in C has tests/compile/test_adding_rows.py
    "kernels.positions._VERY_LONG": 2,
    "kernels.taps._BLOCK": 2,
    "kernels.taps._MANY": 1,
    "kernels.taps._RUNS": 1,
    "ops.elementwise.analysis._LARGE": 2,  # what is written with out= has an axis
    "ops.elementwise.arithmetic._BLOCK": 2,
    "ops.elementwise.limits._LARGE": 1,
    "ops.products.distances._AT_ONCE": 2,
    "ops.reduce.sorting._FEW": -1,  # no row, so that all are searched
    "ops.reduce.sorting._LONG": 4,
    "ops.reduce.sorting._SHORTEST": 2,
    "ops.reduce.sorting._TIMES": 4,  # fewer blocks than that leave nothing out
    "ops.reduce.sums._LONG": 1,
    "ops.shape.rearranging._FEW": 1,
    "ops.sparse.pattern._BLOCK": 2,
    "tensor.adding.BLOCK": 2,
    "tensor.adding.FEW": 4,
    "tensor.adding.SHORT": 2,
    "tensor.adding.WIDE": 4,
    "nn.functional.gaussian._BLOCK": 2,
    "nn.functional.images.pooling._BLOCK": 2,
    "nn.functional.images.trilinear._COLUMNS": 2,
    "nn.functional.images.trilinear._MANY": 1,
    "tensor.arrays._SMALL": 1,
    "optim.sweep.BLOCK": 64,
    "optim.sweep.JOINED": 16,
    "compile.plan.plan._LARGE": 1,
    "table.calls._LARGE": 1,
    "optim.elementwise._LARGE": 1,
    "compile.eager.kernel._TOGETHER": 8,
    "compile.equal_steps.FEWEST": 3,
    "compile.backends.blocks.BLOCK": 4,
    "compile.backends.blocks.SMALL": 0,
    "compile.backends.blocks._PARALLEL": 8,
    "compile.backends.c_source.BLOCK": 4,
    "compile.backends.c_source._PIECE": 8,
    "compile.backends.gpu.cuda_source.GRID": 2,
    "compile.backends.gpu.cuda_source.LEAST": 1,
    "compile.backends.gpu.cuda_source.IN_32_BITS": 1,
    "scipy.implicit.DENSE": 1,
    "scipy.integrate.batched_adjoint._STEPS": 2,
    "scipy.integrate.implicit_steps.MANY": 2,
    "scipy.integrate.ivp_runs.EQUATIONS": 2,
    "scipy.integrate.ivp_runs._ELEMENTS": 1 << 9,
    "scipy.integrate.stage_equations._AT_ONCE": 8,
    "scipy.optimize.outer_products.FEW": 1,
    "table.writing._FEW": 0,
    "scipy.signal.convolving._LARGEST": 2,
}

# What is written in the same way, and is no such size.
OTHERS = {
    "tensor.adding.NEAR": "the longest row that is added up at once; those of all samples are shorter",
    "ops.make.generators._FIRST_SEED": "a seed",
    "table.door._BOUND": "a bound of integers",
    "ops.products.distances._MANY": "as in torch, it decides how exact the result is",
    "ops.reduce.sums._LARGEST_HALF": "a number of float16",
    "nn.functional.images.trilinear._GAP": "a distance in memory",
    "nn.functional.images.trilinear._SHORT": "rows that are at most so long; all samples have them",
    "func.sparse.colouring._TRIES": "how many colourings are tried",
    "func.sparse.spy._BLANK": "the number of a character",
    "interpreters.patterns.MOST": "a bound of what is computed at all",
    "compile.trace.closure._DEEPEST": "how deep it looks",
    "compile.equal_steps._LONGEST": "a bound of what is looked for",
    "compile.equal_steps._TRIED": "a bound of what is looked for",
    "compile.rolling.LARGE": "beyond it, loops are written out",
    "compile.simplify._SMALL": "a bound of what is compared",
    "compile.trace.program._COMPARED": "a bound of what is compared",
    "compile.compiled._MANY": "a bound of a cache",
    "compile.eager.kernel._FORMS": "a bound of what is traced",
    "compile.eager.kernel._SOURCES": "a bound of what is compiled",
    "compile.eager.kernel._SIZES": "a bound of a cache",
    "compile.backends.waiting._BAR": "a number of characters",
    "compile.eager.in_place._FORMS": "a bound of what is traced",
    "compile.eager.in_place._SIZES": "a bound of a cache",
    "compile.compiled._OFTEN": "the number of traces at which a warning is given",
    "compile.compiled._MOST": "a bound of a cache",
    "ops.elementwise.gamma._DIMENSIONS": "a bound of what is computed at all",
    "ops.elementwise.polynomials._HIGHEST": "a bound of what is computed at all",
    "ops.elementwise.polynomials._SMALL": "a degree; tests/ops/test_degrees.py has both sides",
    "nn.layers.layer._MOST_LAYERS": "a bound of what is made at all",
    "ops.shape.splitting._MOST_PIECES": "a bound of what is computed at all",
    "compile.plan.fuse.STEPS_PER_LOOP": "a length of programs",
    "compile.plan.saving.COST_LIMIT": "a cost",
    "compile.trace.program._SHOWN": "how many steps of a loop an example computes",
    "compile.plan.replays._CHECKS": "how many checks are left for later",
    "compile.backends.gpu.cublas._STEPS": "a bound of integers",
    "compile.backends.gpu.copies.MOST": "what a kernel takes",
    "compile.backends.gpu.copies._BLOCKS": "a number of blocks",
    "compile.backends.c_source.VECTOR": "bytes of a register",
    "compile.backends.gpu.cuda._ARRAYS": "what a kernel takes",
    "compile.backends.gpu.cuda_source.THREADS": "the threads of a block",
    "compile.backends.gpu.cuda_source.WANTED": "a number of blocks",
    "compile.backends.gpu.cuda_source.WARP": "threads of the processor",
    "compile.backends.steps.COSTLY": "a cost",
    "compile.backends.cache.LIMIT": "a size on disk",
    "cuda.graphs._ROUNDS": "a bound of what is computed at all",
    "distributed.board.ROW": "bytes of a file",
    "distributed.collectives._TAGS": "the largest number of a kind of message",
    "distributed.data_parallel._MB": "a unit",
    "distributed.meeting._BITS": "bits of a word",
    "distributed.messages._SAID": "bytes of a message",
    "distributed.moves._OFTEN": "one in so many nodes",
    "distributed.process_group._LOOKS": "how often it looks before it waits",
    "distributed.solvers_over_ranks._PRODUCTS": "how often a solver multiplies before it says that it is slow",
    "scipy.bindings._MANY": "a bound of what is looked into",
    "scipy.bindings._MOST": "a bound of what is looked into",
    "scipy.in_programs._KEPT": "a bound of what is kept",
    "scipy.integrate.implicit_steps._ITERATIONS": "a number of iterations",
    "scipy.integrate.ivp_runs._STAYS": "a number of steps",
    "scipy.integrate.stage_equations._ITERATIONS": "a number of iterations",
    "scipy.ndimage.moved_images._BORDER": "SciPy's own border",
    "scipy.repeated_calls._BYTES": "a bound of what is compared",
    "scipy.repeated_calls._KEPT": "a bound of what is kept",
    "scipy.special.incomplete._TERMS": "a number of terms",
    "scipy.user_functions._ROUNDS": "a bound of what is searched at all",
    "utils.time_steps._MOST": "a bound of what is computed at all",
}


def lower() -> None:
    """Lower all of them, for the rest of the process."""
    for name, value in LOWERED.items():
        module, _, constant = name.rpartition(".")
        home = importlib.import_module(f"pullback.{module}")
        if not hasattr(home, constant):
            raise AttributeError(f"pullback.{name} is gone: tests/thresholds.py lists it")
        setattr(home, constant, value)
