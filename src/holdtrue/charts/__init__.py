"""What to draw. `charts.svg` draws it for the report and notebooks, `charts.axes` in Matplotlib."""

from holdtrue.charts.chart import Chart, Dot, Dots, Heat, Lines, Series, number, printable

__all__ = ["Chart", "Dot", "Dots", "Heat", "Lines", "Series", "number", "printable"]
