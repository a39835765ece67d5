"""Layers of holdtrue, and their drawing with all imports: docs/images/modules.svg.

Run `python docs/draw_modules.py` after a module has come or gone. tests/test_architecture.py reads
the table of layers and compares the committed drawing with the source.
"""

from __future__ import annotations

import ast
import sys
from html import escape
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
SOURCE = ROOT / "src" / "holdtrue"
PICTURE = ROOT / "docs" / "images" / "modules.svg"

# Upper layers first; a box is a module or package directly below holdtrue. A box imports only from
# its own layer and from those below it.
LAYERS = [
    ["cli", "demo"],
    ["compare", "deployed", "report"],
    ["categories", "domains", "model_size", "sources"],
    ["tables", "datasets"],
    ["engine", "columns", "sums"],
    ["path"],
    ["charts", "evidence", "files", "progress", "row_copies", "targets", "validation"],
    ["errors", "records"],
]
WIDTH, GAP, LAYER_GAP = 1080, 18, 46
LETTER = 6.6


def modules_of(box: str) -> list[str]:
    """Modules and packages in a package, or nothing for a single module."""
    files = [*(SOURCE / box).glob("*.py"), *(SOURCE / box).glob("*/__init__.py")]
    names = {p.parent.name if p.stem == "__init__" else p.stem for p in files}
    return sorted(names - {box})


def files_of(box: str) -> list[Path]:
    """Source files of a box."""
    package = SOURCE / box
    return sorted(package.rglob("*.py")) if package.is_dir() else [package.with_suffix(".py")]


def imports_of(box: str) -> set[str]:
    """Boxes that a box imports, wherever the statement stands."""
    names = set()
    for path in files_of(box):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("holdtrue"):
                parts = (node.module or "").split(".")
                names |= {parts[1]} if len(parts) > 1 else {alias.name for alias in node.names}
    return names - {box}


def drawing() -> str:
    """The drawing as SVG text."""
    layers = [[box for box in layer if files_of(box)[0].exists()] for layer in LAYERS]
    place: dict[str, tuple[float, float, float, float]] = {}
    parts, y = [], 16.0
    for layer in layers:
        lines = {box: [box, *_wrapped(modules_of(box))] for box in layer}
        widths = {box: max(map(len, text)) * LETTER + 20 for box, text in lines.items()}
        height = max(len(text) for text in lines.values()) * 14 + 10
        x = (WIDTH - sum(widths.values()) - GAP * (len(layer) - 1)) / 2
        for box in layer:
            place[box] = (x, y, widths[box], height)
            parts.append(
                f'<rect x="{x:.0f}" y="{y:.0f}" width="{widths[box]:.0f}" height="{height}" rx="5" '
                'fill="#f4f8fb" stroke="#0072b2"/>'
            )
            for i, line in enumerate(lines[box]):
                weight = ' font-weight="bold"' if i == 0 else ' fill="#555"'
                parts.append(
                    f'<text x="{x + 10:.0f}" y="{y + 17 + 14 * i:.0f}"{weight}>'
                    f"{escape(line)}</text>"
                )
            x += widths[box] + GAP
        y += height + LAYER_GAP
    arrows = []  # imports within a layer would be arcs over its boxes: they are not drawn
    for box, (left, top, width, height) in place.items():
        for target in sorted(imports_of(box) & set(place) - {"errors"}):  # all import errors
            to_left, to_top, to_width, _ = place[target]
            if to_top <= top:
                continue
            x1, y1 = left + width / 2, top + height
            x2, y2 = to_left + to_width / 2, to_top
            bend = (y2 - y1) / 2
            arrows.append(
                f'<path d="M{x1:.0f} {y1:.0f}C{x1:.0f} {y1 + bend:.0f} {x2:.0f} {y2 - bend:.0f} '
                f'{x2:.0f} {y2:.0f}"><title>{box} imports {target}</title></path>'
            )
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {y:.0f}" '
        'font-family="sans-serif" font-size="12" role="img" '
        'aria-label="Modules of holdtrue in layers; every arrow, an import, points downwards">'
        f'<g fill="none" stroke="#d55e00" stroke-width="0.8" opacity="0.45">{"".join(arrows)}</g>'
        f"{''.join(parts)}</svg>\n"
    )


def _wrapped(names: list[str], per_line: int = 3) -> list[str]:
    return [" · ".join(names[i : i + per_line]) for i in range(0, len(names), per_line)]


if __name__ == "__main__":
    PICTURE.write_text(drawing(), "utf-8")
    sys.stdout.write(f"wrote {PICTURE.relative_to(ROOT)}\n")
