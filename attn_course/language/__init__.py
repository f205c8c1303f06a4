"""A real language model, run by this course's own attention or by the reader's: got, checked, asked, changed."""
