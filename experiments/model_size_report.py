"""Tables and figures of `experiments.model_size`, made from its CSVs alone."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import matplotlib
import numpy as np
from experiments.model_size import PAPER, PRINTED_MEAN, PRINTED_MEDIAN, PROTOTYPE_MEDIAN
from experiments.records import markdown_table, read_csv

from holdtrue.model_size import kernel

matplotlib.use("Agg")
import matplotlib.pyplot as plt

OURS = ("adj (drawn)", "dee (drawn)", "seb (softer)", "loo", "aic", "aicc", "adjusted_r2", "bayes")


def report(folder: Path) -> None:
    """Write README.md and the figures beside the CSVs that are there."""
    parts = [
        "# model_size: Chapelle, Vapnik & Bengio (2002) again, and beyond\n\n"
        "Made by `python -m experiments.model_size`. Each CSV says which command, seed and "
        "versions made it. *Ratio* is the error of the chosen size over that of the best size, "
        "both on new data and with the noise included: 1 is perfect."
    ]
    for name, write in (
        ("tables", tables),
        ("figures", figures),
        ("targets", targets),
        ("real", real),
    ):
        if (folder / f"{name}.csv").exists():
            parts.append(write(read_csv(folder / f"{name}.csv"), folder))
    parts += [contest(read_csv(folder / f"contest_{kind}.csv"), kind) for kind in KINDS
              if (folder / f"contest_{kind}.csv").exists()]  # fmt: skip
    if (folder / "bands.csv").exists():
        parts.append(bands(read_csv(folder / "bands.csv")))
    if (folder / "wild.csv").exists():
        parts.append(wild(read_csv(folder / "wild.csv")))
    if any((folder / f"contest_{kind}.csv").exists() for kind in KINDS):
        parts.append(DECISION)
    (folder / "README.md").write_text("\n\n".join(parts) + "\n", encoding="utf-8")


def bands(rows: list[dict[str, Any]]) -> str:
    """How often the band holds generated curves, with and without the terms beyond the last."""
    kinds = dict.fromkeys(row["curve"] for row in rows)
    lines = [
        [each, *(f"{np.mean([row[part] for row in rows if each in (row['curve'], 'all')]):.0%}"
                 for part in ("without", "coverage"))]
        for each in (*kinds, "all")
    ]  # fmt: skip
    return (
        "## Bands on generated curves\n\n"
        f"Made by `python -m experiments.model_size_bands`: 20, 30 and 50 rows, two noises, "
        f"{rows[0]['draws']} draws each. Share of new inputs whose true curve lies within 1.96 "
        "deviations. The deviation has room for the terms beyond the last of a basis, which the "
        "prior counts as noise; curves like these decided that, before those above were run again. "
        "No other widening was tried.\n\n"
        + markdown_table(["curve", "without that room", "with it"], lines)
    )


def wild(rows: list[dict[str, Any]]) -> str:
    """How often wild targets are set aside, and the error with and without them."""
    errors = ("followed", "error", "ratio")
    lines = [
        [row["kind"], row["fits"], row["set_aside"],
         *(f"{row[part]:.3g}" if row["set_aside"] else "" for part in errors), row["worse"]]
        for row in rows
    ]  # fmt: skip
    return (
        "## Wild targets\n\n"
        "Made by `python -m experiments.model_size_wild`: eleven curves of deviation 1 with noise "
        ".1 and .3, n = 20, 40, 60; one or two targets moved by 10 to 100, heavy and skewed noise, "
        "and a peak of height 10 that is real and about one row wide. Errors of the curve, and the "
        "geometric mean of their ratio, over the fits in which rows were set aside. The rule was "
        "made on other curves and draws in three variants. A fourth, stricter one is in use since "
        "the problems above showed a false alarm on the paper's sinc (experiment c) and harm on "
        "*solar*, counts that are mostly 0, so it has seen these. A wild target at an end of the "
        "range, or within three ranges of the others, is kept, with a warning.\n\n"
        + markdown_table(
            ["noise", "fits", "set aside", "error, followed", "error, set aside", "ratio", "worse"],
            lines,
        )
    )


def pivot(rows: list[dict[str, Any]], value: str) -> dict[str, list[float]]:
    """Criterion → values of experiments a to l."""
    table: dict[str, list[float]] = {}
    for row in sorted(rows, key=lambda row: row["experiment"]):
        table.setdefault(row["criterion"], []).append(row[value])
    return table


def tables(rows: list[dict[str, Any]], folder: Path) -> str:
    """Tables 1 and 2 beside print; Figures 3 and 4."""
    text = [f"## Tables 1 and 2\n\n{rows[0]['trials']} trials each."]
    for number, value, printed in ((1, "median", PRINTED_MEDIAN), (2, "mean", PRINTED_MEAN)):
        measured = pivot(rows, value)
        lines = []
        for name in [*printed, *OURS]:
            average = float(np.mean(measured[name]))
            row = [name, *measured[name], f"**{average:.3g}**"]
            if name in printed:
                row.append(float(np.mean(printed[name])))
                if number == 1:
                    goal = PROTOTYPE_MEDIAN.get(name)
                    row += ["", ""] if goal is None else [goal, f"{average / goal - 1:+.1%}"]
            else:
                row += ["", "", ""] if number == 1 else [""]
            lines.append(row)
        header = ["criterion", *PAPER, "average", "in print"]
        header += ["prototype", "to prototype"] if number == 1 else []
        text.append(f"### Table {number}: {value} ratio\n\n{markdown_table(header, lines)}")
        lines = [[name, *printed[name], float(np.mean(printed[name]))] for name in printed]
        summary = f"<summary>Table {number} as printed</summary>"
        body = markdown_table(["criterion", *PAPER, "average"], lines)
        text.append(f"<details>{summary}\n\n{body}\n\n</details>")
    for number, target in ((3, "sinc"), (4, "step")):
        draw_boxes(rows, target, folder / f"figure{number}.png")
        text.append(f"![Figure {number}: ratios for the {target} function](figure{number}.png)")
    text.append(explanation(rows))
    return "\n\n".join(text)


def explanation(rows: list[dict[str, Any]]) -> str:
    """What does not match print, with its numbers and the reason."""
    median, mean = pivot(rows, "median"), pivot(rows, "mean")

    def at(table: dict[str, list[float]], name: str, letters: str) -> str:
        return ", ".join(f"{table[name]['abcdefghijkl'.index(c)]:.3g}" for c in letters)

    se = {(r["experiment"], r["criterion"]): r["mean_se"] for r in rows}
    notes = [
        f"""**SEB** as printed, (20) and (21), forbids 6 or more terms at n = 20, so on a, c, e it
        gives {at(median, "seb", "ace")} against 1.01, 1.91, 1.18 in print. No constant in (21)
        changes that: the square root is too large. `k = (1 - 0.7 (d (ln(2n/d) + 1) + 3)/n)₊`,
        without the root, comes close to the printed medians (*seb (softer)*:
        {at(median, "seb (softer)", "ace")}); it is a fit to their table and no bound, so the
        library ships SEB as printed.""",
        f"""**FPE** at n = 20 (a, c, e): {at(median, "fpe", "ace")} against 1.48, 2.32, 1.50. It
        runs to the largest size that is allowed, so it depends on d_max, which print does not
        give.""",
        f"""**Means of the heavy-tailed criteria** (Table 2: FPE, GCV, BIC, CPM, RIC) are set by
        single trials with an absurdly large model: CPM's mean on h is {at(mean, "cpm", "h")} with
        a standard error of {se["h", "cpm"]:.2g}. Print and rerun agree that they are huge, not on
        how huge.""",
        """**BIC and CPM** have medians above print on the step function; they use the true σ²
        here, and so know nothing of the bias that the step leaves.""",
        f"""*(drawn)* has no unlabelled points and draws them from a kernel density of the 20 or 50
        inputs: the mean of DEE goes from {np.mean(mean["dee"]):.3g} to
        {np.mean(mean["dee (drawn)"]):.3g}, that of ADJ from {np.mean(mean["adj"]):.3g} to
        {np.mean(mean["adj (drawn)"]):.3g}.""",
        f"""*bayes*, the reference beyond the paper: median {np.mean(median["bayes"]):.3f} and mean
        {np.mean(mean["bayes"]):.3f}, where ADJ has {np.mean(median["adj"]):.3f} and
        {np.mean(mean["adj"]):.3f}. Its prior was picked among about thirty variants on other draws
        of these twelve experiments, so the lead here flatters it; the targets and data below had no
        part in the choice.""",
    ]
    lines = "\n".join("- " + " ".join(note.split()) for note in notes)
    return f"### What does not match print, and why\n\n{lines}"


def draw_boxes(rows: list[dict[str, Any]], target: str, path: Path) -> None:
    """Figures 3 and 4: the ratio's quantiles per experiment, in boxplot style."""
    letters = [letter for letter, setting in PAPER.items() if setting[0] == target]
    names = [*PRINTED_MEDIAN, "bayes"]
    figure, axes = plt.subplots(3, 2, figsize=(11, 10), layout="constrained")
    for ax, letter in zip(axes.flat, letters, strict=True):
        found = {row["criterion"]: row for row in rows if row["experiment"] == letter}
        boxes = [
            {"med": found[n]["median"], "q1": found[n]["q25"], "q3": found[n]["q75"],
             "whislo": found[n]["q5"], "whishi": found[n]["q95"], "fliers": [], "label": n}
            for n in names
        ]  # fmt: skip
        ax.bxp(boxes, showfliers=False, medianprops={"color": "#D55E00"})
        ax.set_yscale("log")
        ax.tick_params(axis="x", rotation=60)
        _, noise, n = PAPER[letter]
        ax.set_title(f"({letter}) n = {n}, σ = {noise}", fontsize="medium")
    figure.supylabel("ratio to the best size (box: quartiles, whiskers: 5 % and 95 %)")
    figure.suptitle(f"{target} function")
    figure.savefig(path, dpi=80)
    plt.close(figure)


def figures(rows: list[dict[str, Any]], folder: Path) -> str:
    """Figures 1 and 2."""
    first = [row for row in rows if row["figure"] == 1]
    d = np.array([row["n_terms"] for row in first])
    true = np.array([row["median_risk"] / row["median_train"] for row in first])
    dee = np.array([row["dee_factor"] for row in first])
    fpe = kernel.fpe(np.ones(len(d)), d, 50.0)
    figure, ax = plt.subplots(figsize=(7, 4.2), layout="constrained")
    ax.semilogy(d, true, "k", label="median error on new points / median training error")
    ax.semilogy(d, dee, color="#0072B2", label="DEE's factor (17), median")
    ax.semilogy(d, fpe, "--", color="#D55E00", label="Akaike's factor (4)")
    ax.set(xlabel="number of terms", ylabel="factor", title="Figure 1: step, n = 50, σ = 0.05")
    ax.legend(frameon=False)
    figure.savefig(folder / "figure1.png", dpi=80)
    plt.close(figure)

    second = [row for row in rows if row["figure"] == 2]
    d2 = [row["n_terms"] for row in second]
    figure, axes = plt.subplots(1, 2, figsize=(11, 4.2), layout="constrained", sharey=True)
    for ax, names in zip(axes, (("dee", "cv"), ("fpe", "adj")), strict=True):
        ax.semilogy(d2, [row["median_risk"] for row in second], "k", label="error on new points")
        for name, style in zip(names, ("-", "--"), strict=True):
            values = [row[f"median_{name}"] for row in second]
            ax.semilogy(d2, values, style, label=f"{name}, median")
        ax.set(xlabel="number of terms")
        ax.legend(frameon=False)
    axes[0].set_ylabel("mean squared error")
    figure.suptitle("Figure 2: (x + 3/2)²/10, n = 40, σ = 0.05")
    figure.savefig(folder / "figure2.png", dpi=80)
    plt.close(figure)

    at = {row["n_terms"]: row for row in second}
    lines = [
        [size, *(at[size][f"median_{k}"] for k in ("risk", "dee", "adj", "cv", "fpe"))]
        for size in (2, 5, 10, 15, 20, 23)
    ]
    share = [row["median_dee"] / row["median_risk"] for row in second]
    lowest, where = min(share), d2[int(np.argmin(share))]
    picked = [9, 19, 29, 39]
    return "\n\n".join(
        [
            "## Figures 1 and 2",
            "![Figure 1](figure1.png)",
            "\n".join(
                f"- {d[i]} terms: the true factor is {true[i]:.3g}, DEE's {dee[i]:.3g}, Akaike's "
                f"{fpe[i]:.3g}."
                for i in picked
            )
            + "\n\nMedians, because the mean of the trace does not exist for practical purposes: a"
            " few samples with nearly dependent terms decide it.",
            "![Figure 2](figure2.png)",
            markdown_table(["terms", "true", "dee", "adj", "cv", "fpe"], lines),
            "Medians again. As in print, ADJ follows the error on new points on the careful side,"
            " FPE falls far below it as terms are added, and five-fold cross-validation rises above"
            " it because it trains on fewer points. DEE follows it too, but from 10 terms on a"
            f" little low: its median is at least {lowest:.2f} of the true one, at {where} terms.",
        ]
    )


def targets(rows: list[dict[str, Any]], folder: Path) -> str:
    """Targets that the paper did not try, with where each criterion is worst."""
    names = ["bayes", "adj", "dee", "cv", "loo", "gcv", "aicc", "bic"]
    found = {(r["target"], r["n"], r["criterion"]): r for r in rows}
    keys = list(dict.fromkeys((r["target"], r["n"]) for r in rows))
    text = [
        "## Further targets\n\nCosine basis on [0, 1], largest size 3n/4, σ² not known. Median"
        " (mean) of the ratio; the least median of each row in bold."
    ]
    lines = []
    for target, n in keys:
        median = {c: found[target, n, c]["median"] for c in names}
        best = min(median.values())
        cells = []
        for c in names:
            mean = found[target, n, c]["mean"]
            said = f"{median[c]:.2f} ({mean:.3g})"
            cells.append(f"**{said}**" if median[c] <= best * 1.005 else said)
        lines.append([target, n, *cells])
    text.append(markdown_table(["target", "n", *names], lines))
    lost = [
        f"{target}, n = {n} ({found[target, n, 'bayes']['median']:.2f} against "
        f"{min(found[target, n, c]['median'] for c in names):.2f})"
        for target, n in keys
        if found[target, n, "bayes"]["median"]
        > 1.05 * min(found[target, n, c]["median"] for c in names)
    ]
    text.append(
        "The Bayesian reference is more than 5 % behind the best of these on: "
        + ("; ".join(lost) if lost else "none")
        + "."
    )
    return "\n\n".join(text)


# Columns of the table of real data; what is not named here comes in a second table.
MAIN = (
    "bayes (inputs known)", "adj (inputs known)", "dee (inputs known)", "bayes", "adj", "dee",
    "aicc", "cv", "loo", "LassoLarsIC", "RidgeCV", "OrthogonalMatchingPursuitCV",
)  # fmt: skip


def real(rows: list[dict[str, Any]], folder: Path) -> str:
    """Real data, and when DEE or ADJ is worth using."""
    found = {(row["data"], row["n"], row["method"]): row for row in rows}
    keys = list(dict.fromkeys((row["data"], row["basis"], row["n"]) for row in rows))
    others = [m for m in dict.fromkeys(row["method"] for row in rows) if m not in MAIN]

    def table(methods: Any) -> str:
        lines = []
        for data, basis, n in keys:
            cells = [found[data, n, method] for method in methods]
            best = min(cell["median"] for cell in cells)
            said = [f"{cell['median']:.2f} ({cell['q90']:.2g})" for cell in cells]
            lines.append(
                [f"{data}, {basis}", n]
                + [
                    f"**{text}**" if cell["median"] <= best * 1.005 else text
                    for text, cell in zip(said, cells, strict=True)
                ]
            )
        averages = [
            [float(np.exp(np.mean([np.log(found[d, n, m][value]) for d, _, n in keys])))
             for value in ("median", "q90")]
            for m in methods
        ]  # fmt: skip
        lines.append(["geometric mean", "", *(f"{m:.2f} ({q:.2g})" for m, q in averages)])
        return markdown_table(["data, basis", "n", *methods], lines)

    def at(data: str, method: str) -> str:
        return "/".join(f"{found[d, n, method]['median']:.2f}" for d, _, n in keys if d == data)

    verdict = [
        f"""**Worth it: a function of one or few inputs on an ordered basis.** On mcycle with 20, 30
        and 50 points DEE is at {at("mcycle", "dee")} and ADJ at {at("mcycle", "adj")}, five-fold
        cross-validation at {at("mcycle", "cv")} and leave-one-out at {at("mcycle", "loo")}. With a
        prior for smoothness `bayes` has {at("mcycle", "bayes")}, and the shortest tails.""",
        f"""**Worth it: known inputs, where the basis is learnt from them.** On spectra (meats),
        passing the inputs of the rows to be predicted as `X_unlabeled` is worth more than the
        choice of the criterion: DEE goes from {at("meats", "dee")} to
        {at("meats", "dee (inputs known)")}, ADJ from {at("meats", "adj")} to
        {at("meats", "adj (inputs known)")}, `bayes` from {at("meats", "bayes")} to
        {at("meats", "bayes (inputs known)")}.""",
        f"""**Not worth it: known inputs beyond the training rows, for a basis on a range.** They
        widen the range, and what lies between the last training row and its end is extrapolated
        where it would be held level. On mcycle DEE goes from {at("mcycle", "dee")} to
        {at("mcycle", "dee (inputs known)")}, `bayes` from {at("mcycle", "bayes")} to
        {at("mcycle", "bayes (inputs known)")}: leave `X_unlabeled` out there.""",
        f"""**Not worth it: principal components of few rows without unlabelled inputs.** The
        components were fitted to the very rows from which the kernel density is drawn, so DEE and
        ADJ cannot see that they fit new rows less well: on meats use `cv` ({at("meats", "cv")}) or
        `aicc` ({at("meats", "aicc")}).""",
        f"""**Hardly matters: a handful of ordinary columns** (prostate, swiss, diabetes). Nearly
        all criteria lie within a few percent of one another, and scikit-learn's `LassoLarsIC`
        ({at("prostate", "LassoLarsIC")} on prostate, where DEE has {at("prostate", "dee")}) or
        `RidgeCV` ({at("swiss", "RidgeCV")} on swiss, DEE {at("swiss", "dee")}) does as well or
        better. ADJ with drawn inputs is the one to avoid there ({at("diabetes", "adj")} on
        diabetes).""",
        f"""**Lost: yacht to OrthogonalMatchingPursuitCV**
        ({at("yacht", "OrthogonalMatchingPursuitCV")}), which picks terms out of order: the hull's
        speed alone matters, and its high powers come late in an order by total degree.""",
        """**Ten rows (longley)** are too few for everybody: one split in ten is more than three
        times worse than the best size, whatever chooses.""",
    ]
    text = [
        "## Real small data\n\n"
        f"{rows[0]['splits']} random splits, the other rows are the test set. Median of the test"
        " error over that of the best size (of the path without known inputs), the 90 % quantile in"
        " brackets, the least median of each row in bold. Rivals from scikit-learn, with their"
        " defaults, see the same terms and may beat every size, so fall below 1. *Inputs known*:"
        " the test rows' inputs were given as `X_unlabeled`; otherwise 1,000 inputs were drawn from"
        " a kernel density. Bases were fixed before the first run. longley has 16 rows, so n = 10"
        " alone; swiss has 47, so no n = 50.",
        table(MAIN),
        "The other criteria:",
        table(others),
        "### When DEE or ADJ is worth using, and when not",
        "\n".join("- " + " ".join(line.split()) for line in verdict),
    ]
    return "\n\n".join(text)


# --- The average beside other regressors ---------------------------------------------------------

KINDS = {
    "one": "Real problems of one input",
    "several": "Real problems of several inputs",
    "curves": "Generated curves: the paper's twelve experiments and nine further targets",
}


DECISION = """## How `basis="auto"` was decided

By one rule, fixed before the runs: the geometric mean of the error over that of the best method, on
the real problems marked `decided` in the CSVs (other draws than above) and on eight curves with
even and with crowded inputs (uniform, and beta(.6, 3)), two levels of noise, n = 20, 30, 50, 100.
These numbers come from trial scripts that are not kept here. Knots at quantiles, shapes of the
prior, scale, number of k and holding were compared at n = 20 and 50 alone, with 2 to 8 draws. The
threshold from which an input counts as crowded was set to save time, and was not compared.

- **One input, 27 variants**: the maps range, half ranks, logarithm, and pairs and all three of them
  together; each basis alone; B-splines with knots at quantiles, alone, in place of the even knots,
  as a fourth basis, and with the logarithm; terms scaled over drawn inputs, over the range, and
  over both; root mean square or deviation; three further shapes of the prior; 4 to 20 values of k;
  and predictions held at the range of y or a tenth beyond. Range and logarithm were taken, best on
  both together: curves 1.16 (range alone 1.17, range and half ranks 1.17, all by half ranks 1.20,
  all by logarithm 1.19), real problems 1.07 (1.07, 1.07, 1.07, 1.06). Knots at quantiles gave 1.25
  where even knots gave 1.26 on curves, and 1.08 against 1.09 on real problems: not worth a fourth
  basis. The Gaussian process had 1.10 on the curves, its lead mostly from a Gaussian bump and three
  periods of a sine.
- **Several inputs, 27 variants**: the same maps, with as many terms as the sample could fit, with
  all of the second degree, or with higher degrees up to 200 terms; with and without bases of single
  inputs; predictions held or not. All of the second degree, range and logarithm, and single inputs
  were taken: 1.072. Half ranks as a third map gave 1.067, holding predictions at the very range of
  y 1.066; without single inputs it was 1.13, and 1.27 for a Gaussian process. Higher degrees were
  tried after the problem `leaf` had been seen, where they would help, and were 2 % worse on the
  problems that decide.
- **Gaussian processes beside them, about 40 variants**, later: kernels of all inputs at once and of
  single inputs added up, four to six widths, with and without the logarithm; priors that fall with
  a term's degree instead of its place; all weighed by the evidence, its square root, the density of
  left-out rows, or their error. Decided on the same eight problems and on longley, hitters,
  breastcancer, solar, flights and chemistry (draws 500 to 523), whose earlier results were known;
  the other nine had no part. Taken: kernels of all inputs with widths from 2 on, by the square root
  of the evidence (1.096; without kernels 1.106; by the whole evidence 1.118; with narrow kernels
  too 1.135, which lose on wages).
- **Processes of one input, 40 variants**, last: Gaussian and Matérn kernels of up to six widths and
  cubic smoothing splines beside the three families or in their place, weighed by the evidence or a
  root of it. Decided by the product of two geometric means: the ten problems marked `decided`
  (draws 700 to 705, n = 20, 50, 100) and ten curves with even, beta(.6, 3) and log-normal inputs,
  two levels of noise, n = 20, 50, three draws. Before: 1.055 and 1.248. Taken: Gaussian kernels of
  two widths and the square root of the evidence, 1.051 and 1.220, one rule for any number of
  inputs. All three kinds of kernels gave 1.049 and 1.221, the kernels alone 1.050 and 1.209; a
  third width 1.049 and 1.220 for a tenth more time. In the same runs the Gaussian process had 1.094
  and 1.415, the smoothing spline 1.111 and 1.700.
- **The mean beside them, 14 variants**: predictions drawn to the mean of y by the factor that
  left-out rows prefer, always, or only where the average gains little on left-out rows. Found with
  the draws of `solar` above in view, where four fits erred by more than twice the variance; decided
  on the eight problems marked `decided` (draws 700 to 705, n = 20, 30, 50): 1.041 before, one fit
  above twice the variance; always 1.045; where little is gained 1.033 and none, whatever is called
  little (0 to 20 %). Of one input it would cost half a percent and nothing was to be mended.
- **A row that outweighs all others, 28 variants**: with two fits of `solar` still above 2 in
  view, where one row has most of the variance of y. Tried: shares shrunk by their own standard
  error, the gain asked to exceed it, the least share over leaving out any row, the share without
  the most extreme row. Decided by the fewest fits above 2, then above 1.5, on 1,511 draws: the
  eight problems marked `decided` (draws 1,000 to 1,009), heavy-tailed targets of Boston, flights
  and hitters that are not judged, and generated counts, heavy-tailed and log-normal targets.
  Taken: a row with more than half of the squares has no say (8 -> 5 fits above 2, 24 -> 18 above
  1.5; the mean alone has 4 and 13). It costs 1.3 % on the heavy-tailed problems and 0.1 % on the
  eight, and gains 0.5 % on the generated ones.
- **Inputs of two or three values**, two limits: drawn at their values instead of between them. On
  five generated binary inputs `bayes` had been up to five times `new_error_` and is .7 to 1.1 of
  it; errors of predictions differ by less than 1 % (prostate, boston, wages, generated).

Most variants lie within 2 % of one another, which is about what the draws can tell apart.

Lost, and known why: `leaf`, where the area follows exactly from two columns (circularity times the
square of the perimeter, a term of the third degree) and a Gaussian process finds the identity;
`solar`, counts that are nearly all zero: with 20 rows the mean beats every method there (1.09, the
average 1.11);
`flights`, where rows farther than any of the sample are held at its range and a line goes on."""


def contest(rows: list[dict[str, Any]], kind: str) -> str:
    """Errors over the best method's, in geometric mean, and where the average loses."""
    methods = list(dict.fromkeys(row["method"] for row in rows))
    cells = list(dict.fromkeys((row["problem"], row["n"]) for row in rows))
    errors = {(row["method"], row["problem"], row["n"]): row for row in rows}
    decided = np.array([bool(errors["average", *cell]["decided"]) for cell in cells])
    sizes = np.array([n for _, n in cells])
    error = np.array([[errors[m, *cell]["error"] for cell in cells] for m in methods])
    ratio = error / np.nanmin(error, axis=0)

    def mean(values: np.ndarray) -> float:
        values = values[np.isfinite(values)]
        return float(np.exp(np.mean(np.log(values)))) if len(values) else float("nan")

    subsets = {"all": np.ones(len(cells), dtype=bool)}
    if decided.any():
        subsets |= {"decided on": decided, "not seen": ~decided}
    subsets |= {f"n = {n}": sizes == n for n in sorted(set(sizes)) if np.sum(sizes == n) > 1}
    lines = []
    for place in np.argsort([mean(each) for each in ratio]):
        mine = [errors[methods[place], *cell] for cell in cells]
        lines.append(
            [methods[place], *(mean(ratio[place, subset]) for subset in subsets.values()),
             max(float(row["worst"]) for row in mine if row["worst"] == row["worst"]),
             sum(row["above_2"] for row in mine), sum(row["failed"] for row in mine),
             f"{np.mean([row['milliseconds'] for row in mine]):.0f}"]
        )  # fmt: skip
    header = ["method", *subsets, "worst error", "fits above 2", "refused", "ms"]
    average = methods.index("average")
    ours = [errors["average", *cell] for cell in cells]
    lost = np.argsort(-ratio[average])[:8]
    best = np.nanargmin(error, axis=0)
    text = [
        f"## {KINDS[kind]}: the average beside others\n\n{len(cells)} pairs of problem and n, "
        f"{rows[0]['draws']} draws each. Geometric mean of the error over that of the best method "
        "of each pair; 1 is best everywhere. Errors are in units of the variance of the test "
        "targets; milliseconds are CPU time of fit and prediction, the average's of a later and "
        "busier run than the others' (the benchmarks have their ratio side by side).",
        markdown_table(header, lines),
        f"Path score at the chosen size over the test error of the average: median "
        f"{np.median([row['path_ratio'] for row in ours]):.2f} over the pairs' medians "
        f"(quartiles {np.percentile([row['path_ratio'] for row in ours], 25):.2f} to "
        f"{np.percentile([row['path_ratio'] for row in ours], 75):.2f}); `new_error_` over it: "
        f"{np.median([row['new_error_ratio'] for row in ours]):.2f}.",
        "Largest losses: "
        + "; ".join(
            f"{cells[j][0]} with {cells[j][1]} rows {ratio[average, j]:.2f} ({methods[best[j]]})"
            for j in lost
        )
        + ".",
    ]
    problems = np.array([problem for problem, _ in cells])
    ranges = []
    for line in lines[:3]:
        place = methods.index(line[0])
        without = {each: mean(ratio[place, problems != each]) for each in dict.fromkeys(problems)}
        least = min(without, key=lambda each: without[each])
        ranges.append(
            f"{line[0]} {without[least]:.2f} (without {least}) to {max(without.values()):.2f}"
        )
    text.append(f"With any one problem left out: {'; '.join(ranges)}.")
    if kind == "curves":
        coverage = [row["coverage"] for row in ours]
        text.append(
            f"The true curve lies within 1.96 deviations of the average at {np.mean(coverage):.0%} "
            f"of new inputs (quartiles over pairs {np.percentile(coverage, 25):.0%} to "
            f"{np.percentile(coverage, 75):.0%}, least {min(coverage):.0%} on "
            f"{cells[int(np.argmin(coverage))][0]}). 12 periods with 20 or 30 rows cannot be told "
            "from pure noise: left-out rows gain nothing in either, and a band that holds the one "
            "would be as wide as the data around the other."
        )
    return "\n\n".join(text)
