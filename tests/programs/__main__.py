"""`python -m tests.programs` counts the programs; `--record` writes PyTorch's answers to them, beside them.

An answer that differs from the recorded one by rounding only stays as it is. `--show NAME` prints what the programs of
that name do: the answer, and what each library that is installed makes of them.
"""

from __future__ import annotations

import argparse
import importlib.util
import sys
import warnings

import pullback
from tests.programs import answers, catalogue


def main(arguments: list[str] | None = None) -> int:
    """Run the command."""
    parser = argparse.ArgumentParser(prog="python -m tests.programs", description=__doc__)
    parser.add_argument("--record", action="store_true", help="ask PyTorch, and write its answers")
    parser.add_argument("--show", metavar="NAME", help="print what the programs of this name do")
    options = parser.parse_args(arguments)
    if options.record and importlib.util.find_spec("torch") is None:
        print("The answers are PyTorch's, which is not installed (pip install torch==2.13.0).", file=sys.stderr)
        return 1
    warnings.simplefilter("ignore")
    count = 0
    for module in catalogue.modules():
        found = catalogue.cases(module)
        count += len(found)
        if options.record and catalogue.record(module, catalogue.oracle()):
            print(f"written: {catalogue.file_of(module).relative_to(catalogue.HOME)}")
        for case in found:
            if options.show and options.show in case.id:
                print(f"{case.id}\n  recorded: {case.answer()}\n  pullback: {answers.written(case.outcome(pullback))}")
    print(f"{count} programs")
    return 0


if __name__ == "__main__":
    sys.exit(main())
