"""The notations a reader meets elsewhere: a table that translates, and converters that do it to arrays.

``print(notation.table())`` shows all dialects, ``print(notation.table("torch"))`` one of them, ``print(notation.letters())``
the letters that mean different things in different texts. A converter takes and returns arrays of NumPy and never
shares memory with its arguments.
"""

from attn_course.notation.glossary import DIALECTS, GLOSSARY, Term
from attn_course.notation.masks import additive_mask, boolean_mask, from_torch_masks, invert_mask
from attn_course.notation.meanings import LETTERS, Letter
from attn_course.notation.orientation import columns_from_rows, rows_from_columns, swap_state_layout
from attn_course.notation.packing import pack_query_key_value, unpack_query_key_value
from attn_course.notation.rotary import halves_from_interleaved, interleaved_from_halves
from attn_course.notation.scales import base2_from_natural, natural_from_base2, rescale_query
from attn_course.notation.tables import letters, table
from attn_course.notation.torch_weights import from_torch_weights, to_torch_weights

__all__ = [
    "DIALECTS",
    "GLOSSARY",
    "LETTERS",
    "Letter",
    "Term",
    "additive_mask",
    "base2_from_natural",
    "boolean_mask",
    "columns_from_rows",
    "from_torch_masks",
    "from_torch_weights",
    "halves_from_interleaved",
    "interleaved_from_halves",
    "invert_mask",
    "letters",
    "natural_from_base2",
    "pack_query_key_value",
    "rescale_query",
    "rows_from_columns",
    "swap_state_layout",
    "table",
    "to_torch_weights",
    "unpack_query_key_value",
]
