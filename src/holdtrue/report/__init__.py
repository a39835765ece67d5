"""Answers as summaries, and summaries as HTML, Markdown, CSV or terminal text."""
