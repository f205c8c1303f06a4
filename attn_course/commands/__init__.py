"""The commands of attn-course, one file for each; `attn_course.cli` puts them together."""
