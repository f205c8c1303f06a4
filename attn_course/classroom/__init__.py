"""Mark a class: run what was handed in where it can do no harm, judge it, keep every result, write what teachers and students read."""
