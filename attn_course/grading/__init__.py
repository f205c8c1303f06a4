"""Judge whole notebooks: fresh kernel, pristine check cells, one verdict for each task."""
