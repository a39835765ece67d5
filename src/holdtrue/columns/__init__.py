"""A column of data: its values, which of them differ, and how often each comes."""
