"""Trees to look at: in words and drawn. Both read only the nested dicts of a tree."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from holdtrue.report.plots import _pyplot

__all__ = ["TreeDisplay", "export_text"]

# Colours that stay apart for colour-blind readers (Okabe & Ito 2008).
_CLASSES = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9")


def export_text(estimator: Any, *, max_depth: int | None = None, max_children: int = 20) -> str:
    """The tree of a fitted `GingerTreeClassifier` in words, one node a line.

    Parameters
    ----------
    estimator : GingerTreeClassifier
        Fitted.
    max_depth : int, optional
        Deeper nodes are left out.
    max_children : int, default=20
        Of more children those with the most rows are shown.

    Returns
    -------
    text : str

    Examples
    --------
    >>> from holdtrue import GingerTreeClassifier, export_text
    >>> X = [["red"], ["red"], ["red"], ["blue"], ["blue"], ["blue"]]
    >>> tree = GingerTreeClassifier().fit(X, ["yes", "yes", "yes", "no", "no", "no"])
    >>> print(export_text(tree))
    6 rows: no 50%
      x0 = 'blue': 3 rows: no 88%
      x0 = 'red': 3 rows: yes 88%
    """
    lines = []
    for depth, line, _ in _walk(estimator.to_dict(), max_depth, max_children):
        lines.append("  " * depth + line)
    return "\n".join(lines)


class TreeDisplay:
    """Drawing of a tree, from the root at the left to the leaves at the right.

    A dot's colour is the class that its node predicts, its area follows the number of rows.

    Parameters
    ----------
    tree : dict
        ``to_dict()`` of a fitted `GingerTreeClassifier`.

    Attributes
    ----------
    ax_ : matplotlib Axes
    figure_ : matplotlib Figure

    Examples
    --------
    >>> from holdtrue import GingerTreeClassifier, TreeDisplay
    >>> model = GingerTreeClassifier().fit([["a"], ["a"], ["b"], ["b"]], [0, 0, 1, 1])
    >>> display = TreeDisplay.from_estimator(model)  # doctest: +SKIP
    """

    ax_: Any
    figure_: Any

    def __init__(self, tree: dict[str, Any]):
        self.tree = tree

    @classmethod
    def from_estimator(
        cls, estimator: Any, *, max_depth: int | None = 3, max_children: int = 12, ax: Any = None
    ) -> TreeDisplay:
        """Draw the tree of a fitted estimator, on ``ax`` if given; see `plot`."""
        return cls(estimator.to_dict()).plot(max_depth=max_depth, max_children=max_children, ax=ax)

    def plot(
        self, *, max_depth: int | None = 3, max_children: int = 12, ax: Any = None
    ) -> TreeDisplay:
        """Draw the tree down to a depth, and of many children those with the most rows."""
        shown = list(_walk(self.tree, max_depth, max_children))
        if ax is None:
            deepest = max(depth for depth, _, _ in shown)
            size = (4.5 + 2.2 * deepest, 1 + 0.28 * len(shown))
            ax = _pyplot("TreeDisplay").subplots(figsize=size, layout="constrained")[1]
        classes = list(dict.fromkeys(node["class"] for _, _, node in shown if node))
        total = sum(self.tree["counts"])
        above: dict[int, int] = {}
        for row, (depth, line, node) in enumerate(shown):
            above[depth] = row
            if depth:
                parent = above[depth - 1]
                ax.plot([depth - 1, depth - 1, depth], [parent, row, row], "-", color="#C8C8C8")
            if node:
                area = 20 + 180 * sum(node["counts"]) / total
                color = _CLASSES[classes.index(node["class"]) % len(_CLASSES)]
                ax.scatter([depth], [row], s=area, color=color, zorder=3)
            ax.annotate(line, (depth, row), xytext=(10, 0), textcoords="offset points", va="center")
        ax.set(xlim=(-0.3, max(depth for depth, _, _ in shown) + 2), ylim=(len(shown) - 0.5, -0.5))
        ax.set_axis_off()
        self.ax_, self.figure_ = ax, ax.figure
        return self


def _walk(
    tree: dict[str, Any], max_depth: int | None, max_children: int
) -> Iterator[tuple[int, str, dict[str, Any] | None]]:
    """Depth, line and node of what is shown, parents first; None stands for what is left out."""
    waiting: list[tuple[int, str, dict[str, Any] | None]] = [(0, "", tree)]
    while waiting:
        depth, before, node = waiting.pop()
        if node is None:
            yield depth, before, None
            continue
        rows = sum(node["counts"])
        line = (
            f"{rows} row{'s' if rows != 1 else ''}: {node['class']} {max(node['probability']):.0%}"
        )
        yield depth, before + line, node
        children = node.get("children", [])
        if not children or (max_depth is not None and depth >= max_depth):
            continue
        most = sorted(children, key=lambda child: -sum(child["counts"]))[:max_children]
        kept = {child["node"] for child in most}
        if len(kept) < len(children):
            left = len(children) - len(kept)
            waiting.append((depth + 1, f"{node['column']} …: {left} more values", None))
        for child in reversed(children):
            if child["node"] in kept:
                waiting.append((depth + 1, f"{node['column']} {child['when']}: ", child))
