"""The tests mirror attn_course, plus notebooks (built files), exercises (the gates) and project (this repository)."""
