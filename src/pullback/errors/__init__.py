"""Messages of errors and warnings, and the names of functions in them.

Every refusal of the library names five things, as far as they are known: the operation, the argument, what was
expected, what was found, and what to do. The exception's type is the one PyTorch raises for the same mistake, so that
`except` clauses written for PyTorch keep working; the wording is this library's own.

`words.py` formats a message, `others.py` has the words for objects of other libraries. `translation.py` has PyTorch's
error for one of NumPy or a device, and `naming.py` writes the name of the public function into it. `callers.py` looks
for the user's line, and `foreign.py` for classes of PyTorch's own `Function`.
"""

from .callers import FIRST, WarnAlways, absent, callers_level, tell
from .foreign import foreign_function, home_of, is_meant_for_us, is_of_pytorch, notice_foreign_functions
from .naming import CALLED, Called, called, door, doors, named, named_constructor, rename
from .others import hands_out_an_array, of_another_library
from .translation import INSTALLED, Elsewhere, LinAlgError, NotConverted, OutOfMemoryError, of_size, translate
from .words import broadcast_message, describe, final, holding, message, no_tensor, refuse_foreign

__all__ = [
    "CALLED",
    "FIRST",
    "INSTALLED",
    "Called",
    "Elsewhere",
    "LinAlgError",
    "NotConverted",
    "OutOfMemoryError",
    "WarnAlways",
    "absent",
    "broadcast_message",
    "called",
    "callers_level",
    "describe",
    "door",
    "doors",
    "final",
    "foreign_function",
    "hands_out_an_array",
    "holding",
    "home_of",
    "is_meant_for_us",
    "is_of_pytorch",
    "message",
    "named",
    "named_constructor",
    "no_tensor",
    "notice_foreign_functions",
    "of_another_library",
    "of_size",
    "refuse_foreign",
    "rename",
    "tell",
    "translate",
]
