"""Grade a whole class: find what was handed in, run it side by side, keep every result, write what teachers and students read."""
