"""Check a learner's notebook: fresh kernel, pristine check cells, one verdict for each task."""
