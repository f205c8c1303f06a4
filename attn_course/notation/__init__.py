"""The notations a reader meets elsewhere: a table that translates, and converters that do it to arrays.

``print(notation.table())`` shows all dialects, ``print(notation.table("torch"))`` one of them, ``print(notation.letters())``
the letters that mean different things in different texts. A converter takes and returns arrays of NumPy and never
shares memory with its arguments. Weights of torch and GPT-2 are loaded by `attn_course.modules.MultiHeadAttention`.
"""

from attn_course.notation.glossary import DIALECTS, GLOSSARY, Term
from attn_course.notation.masks import from_torch_masks, invert_mask
from attn_course.notation.meanings import LETTERS, Letter
from attn_course.notation.orientation import columns_from_rows, rows_from_columns
from attn_course.notation.tables import letters, table
from attn_course.notation.torch_weights import to_torch_weights

__all__ = [
    "DIALECTS",
    "GLOSSARY",
    "LETTERS",
    "Letter",
    "Term",
    "columns_from_rows",
    "from_torch_masks",
    "invert_mask",
    "letters",
    "rows_from_columns",
    "table",
    "to_torch_weights",
]
