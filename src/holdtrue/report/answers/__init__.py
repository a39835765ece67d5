"""From a fitted family to a `Summary`: the answer in two sentences, and what to be wary of."""

from holdtrue.report.answers.compare import compare_summary
from holdtrue.report.answers.rank import rank_summary
from holdtrue.report.answers.select import columns_notes, select_summary
from holdtrue.report.answers.size import size_summary
from holdtrue.report.answers.transfer import transfer_summary

__all__ = [
    "columns_notes",
    "compare_summary",
    "rank_summary",
    "select_summary",
    "size_summary",
    "transfer_summary",
]
