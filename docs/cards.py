"""One small picture for each example of the gallery, with type that can be read at 280 pixels.

Each function draws on a figure from what its example left behind: the names of the module after it
has run. `make_images.py` saves the pictures as `images/card_<name>.svg`, and the examples name them
as their thumbnails. Nothing is filled behind them.
"""

import matplotlib.pyplot as plt
import numpy as np

BLUE, ORANGE, GREY = "#2b8cc4", "#d96a1a", "#6c6c6c"  # on white; site.css brightens them on dark
SIZE = (3.4, 2.0)  # inches; with 11 points a letter is as high as in the text around the picture


def card(name, shown):
    """The small picture of the example `name`, whose variables are `shown`."""
    with plt.rc_context({"font.size": 11, "axes.titlesize": "medium"}):
        figure = plt.figure(figsize=SIZE, layout="constrained")
        figure.get_layout_engine().set(w_pad=0.06, h_pad=0.06)
        globals()[name](figure, shown)
    for ax in figure.axes:
        ax.spines[["top", "right"]].set_visible(False)
        ax.spines[:].set_color(GREY)
        ax.tick_params(colors=GREY, labelcolor=GREY)
        for text in (ax.xaxis.label, ax.yaxis.label, ax.title):
            text.set_color(GREY)
    return figure


def legend(ax, place="lower center", anchor=(0.5, 0.97), columns=2):
    """What the colours mean; above the axes unless told."""
    ax.legend(
        frameon=False,
        labelcolor=GREY,
        ncols=columns,
        loc=place,
        bbox_to_anchor=anchor,
        borderpad=0.1,
        handlelength=1.2,
        handletextpad=0.4,
        columnspacing=1.2,
    )


def rows(ax, names):
    """Names at the left, the first on top."""
    ax.set_yticks(np.arange(len(names)), names)
    ax.invert_yaxis()
    ax.tick_params(axis="y", length=0)


def categories(figure, shown):
    ax = figure.subplots()
    names = ["customer", "postcode", "plan", "spend"]
    for table, color, lift, label in (
        (shown["bits"], ORANGE, -0.2, "rows at hand"),
        (shown["table"], BLUE, 0.2, "new rows"),
    ):
        explained = 100 * (1 - table["score"] / table["no_column"])[names]
        ax.barh(np.arange(4) + lift, explained, height=0.38, color=color, label=label)
    rows(ax, names)
    ax.set(xlabel="explained (%)")
    legend(ax, "lower right", (1.02, -0.04), columns=1)


def audit(figure, shown):
    ax = figure.subplots()
    table = shown["audit"].set_index("column")
    noise = [name for name in table.index if name.startswith("noise")]
    names = ["bmi", "s5", "sex", *noise]
    colors = [ORANGE if name in noise else BLUE for name in names]
    ax.barh(range(len(names)), table["importance"][names], color=colors)
    rows(ax, names)
    ax.set(xlabel="importance in the forest")
    ax.set_xticks([0, 0.05, 0.1])


def encoder(figure, shown):
    ax = figure.subplots()
    for name, values in shown["losses"].items():
        color = {"GingerEncoder": BLUE, "means of the same rows": ORANGE}.get(name, GREY)
        label = {"GingerEncoder": "Ginger", "means of the same rows": "leaking means"}.get(name)
        ax.plot(shown["sizes"], values, "o-", color=color, markersize=4, label=label)
    ax.set(xscale="log", xlabel="orders learned from", ylabel="log loss")
    ax.set_xticks([250, 1000, 4000], ["250", "1,000", "4,000"])
    ax.minorticks_off()
    legend(ax)


def groups(figure, shown):
    ax = figure.subplots()
    names = list(shown["X"])
    for way, color, lift in (("new visits", ORANGE, -0.16), ("new patients", BLUE, 0.16)):
        place, promised, met = (
            np.arange(len(names)) + lift,
            shown["promised"][way],
            shown["met"][way],
        )
        ax.hlines(place, promised, met, color=color, linewidth=3)
        ax.plot(promised, place, "o", color=color, markersize=6, label=way)
        ax.plot(met, place, "|", color=color, markersize=10, markeredgewidth=2)
    rows(ax, names)
    ax.set(xlabel="wrong: ● promised, | met (%)")
    legend(ax)


def promise(figure, shown):
    ax = figure.subplots()
    top = 45
    ax.plot([0, top], [0, top], color=GREY, linewidth=1)
    for name, color, label in (
        ("on_the_fit", ORANGE, "by the fit"),
        ("promised", BLUE, "promised"),
    ):
        ax.plot(100 * shown[name], 100 * shown["met"], "o", color=color, markersize=4, label=label)
    ax.set(xlim=(0, top), ylim=(0, top), xlabel="said to be wrong (%)", ylabel="is wrong (%)")
    legend(ax, "lower right", (1.04, -0.05), columns=1)


def domains(figure, shown):
    ax = figure.subplots()
    effects = shown["model"].domain_effects_
    hospitals = np.arange(1, effects.shape[1] + 1)
    steady, fickle = effects[shown["data"].steady[0]], effects[np.argmax(effects.std(axis=1))]
    ax.axhline(0, color=GREY, linewidth=1)
    ax.plot(hospitals, fickle, "o-", color=ORANGE, linewidth=1.5, label="changes")
    ax.plot(hospitals, steady, "o-", color=BLUE, linewidth=1.5, label="holds")
    ax.set(xlabel="hospital", ylabel="effect", xticks=hospitals)
    legend(ax)


def compare(figure, shown):
    ax = figure.subplots()
    contest = shown["contest"]
    for place, name in enumerate(contest.names):
        color = BLUE if name in ("T-Greedy", "SteadyRidge") else GREY
        ax.hlines(place, *contest.interval(name), color=color, linewidth=3)
        ax.plot(contest.mean_errors[place], place, "o", color=color, markersize=8)
    rows(ax, contest.names)
    ax.set(xlabel="error at a new hospital")


def similarity(figure, shown):
    weights, pairs = figure.subplots(1, 2)
    weights.imshow(shown["weights"].reshape(8, 8), cmap="Blues")
    weights.set(xticks=[], yticks=[], title="weights")
    for ax in (weights, pairs):
        ax.spines[:].set_visible(False)
    order, limit, border = shown["order"], shown["limit"], shown["border"]
    pairs.imshow(shown["pairs"][np.ix_(order, order)], cmap="RdBu", vmin=-limit, vmax=limit)
    middles = [border / 2, (border + len(order)) / 2]
    pairs.set_xticks(middles, ["8s", "9s"])
    pairs.set_yticks(middles, ["8s", "9s"])
    pairs.set_title("never seen")


def site_sums(figure, shown):
    ax = figure.subplots()
    sizes = [shown["rows_size"], sum(map(len, shown["sent"]))]
    bars = ax.barh(range(2), sizes, color=[ORANGE, BLUE])
    labels = [f"{sizes[0] / 1e6:.0f} MB", f"{sizes[1] / 1e3:.0f} kB"]
    ax.bar_label(bars, labels, padding=4, color=GREY)
    rows(ax, ["rows", "sums"])
    ax.set(xlabel="sent by 12 sites", xlim=(0, 1.3 * sizes[0]), xticks=[])


def within(figure, shown):
    ax = figure.subplots()
    width, length, species = shown["width"][:, 0], shown["length"], shown["species"]
    for name in shown["iris"].target_names:
        x, y = width[species == name], length[species == name]
        ends = np.array([x.min(), x.max()])
        line = y.mean() + shown["slopes"]["domain"].coef_[0] * (ends - x.mean())
        ax.plot(x, y, "o", color=BLUE, alpha=0.25, markersize=3)
        label = "in each species" if name == species[0] else None
        ax.plot(ends, line, color=BLUE, linewidth=2.5, label=label)
    ends = np.array([width.min(), width.max()])
    pooled = np.polyval(np.polyfit(width, length, 1), ends)
    ax.plot(ends, pooled, "--", color=ORANGE, linewidth=2.5, label="pooled")
    ax.set(xlabel="sepal width", ylabel="length")
    legend(ax)


def sources(figure, shown):
    ax = figure.subplots()
    path = shown["model"].path_
    chosen = path.chosen_size
    ax.plot(path.scores[:31], color=BLUE, linewidth=2)
    ax.plot(chosen, path.scores[chosen], "o", color=ORANGE, markersize=8)
    ax.annotate(
        f"take {chosen} of 1,000",
        (chosen, path.scores[chosen]),
        (10, 0.9),
        color=ORANGE,
    )
    ax.set(xlabel="models chosen", ylabel="left-out error")


def matrix(figure, shown):
    ax = figure.subplots()
    weights = shown["display"].weights.T
    limit = np.abs(weights).max()
    ax.imshow(weights, cmap="RdBu", vmin=-limit, vmax=limit, aspect="auto")
    ax.set(xticks=range(10), yticks=range(0, 10, 3), xlabel="blurred digit", ylabel="model of")


def shelf(figure, shown):
    ax = figure.subplots()
    ways = {
        "GreedyTL": "GreedyTL",
        "heads + pixels (RLS)": "all heads",
        "pixels alone (logistic)": "no head",
        "the head best on 12 rows": "best head",
    }
    shares = [100 * np.mean(shown["right"][way]) for way in ways]
    bars = ax.barh(range(4), shares, color=[BLUE, GREY, GREY, GREY])
    ax.bar_label(bars, [f"{share:.0f} %" for share in shares], padding=4, color=GREY)
    rows(ax, list(ways.values()))
    ax.set(xlim=(50, 85), xlabel="right, 12 labels")


def model_size(figure, shown):
    ax = figure.subplots()
    grid, data, choices = shown["grid"], shown["data"], shown["model"].choices_
    for name, color, width in (("aic", ORANGE, 1.5), ("dee", BLUE, 2.5)):
        fit = shown["fits"][choices[name] - 1]
        ax.plot(
            grid, fit, color=color, linewidth=width, label=f"{name.upper()}: {choices[name]} terms"
        )
    ax.plot(data.X, data.y, "o", color=GREY, markersize=5)
    ax.set(ylim=(-0.6, 1.6), xlabel="x", ylabel="y")
    legend(ax)


def band(figure, shown):
    ax = figure.subplots()
    curve, deviation, x = shown["curve"], shown["deviation"], shown["grid"][:, 0]
    ax.fill_between(x, curve - 2 * deviation, curve + 2 * deviation, color=BLUE, alpha=0.3)
    ax.plot(x, curve, color=BLUE, linewidth=2.5)
    ax.plot(shown["few"], shown["y_few"], "o", color=GREY, markersize=5)
    ax.set(xlabel="body mass index", ylabel="disease")


def order(figure, shown):
    ax = figure.subplots()
    ways = {
        "average, in LARS order": "average",
        "RidgeCV": "RidgeCV",
        "LARS order": "LARS order",
        "columns as they stand": "as they stand",
        "all columns": "all columns",
    }
    for place, way in enumerate(ways):
        color = GREY if way in ("RidgeCV", "all columns") else BLUE
        errors = shown["errors"][way]
        ax.hlines(place, min(errors), max(errors), color=color, linewidth=2)
        ax.plot(np.median(errors), place, "o", color=color, markersize=7)
    rows(ax, list(ways.values()))
    ax.set(xlabel="error, 50 patients", xticks=[0.5, 0.6, 0.7, 0.8])
