"""The 1,000 ImageNet heads as 1,000 ONNX files beside the same scores as columns, on Caltech-101.

python -m experiments.sources_onnx              files, fits, then the tables
python -m experiments.sources_onnx --report     tables from the CSV alone

Every head becomes a file of its own (one ``Gemm``), written with `onnx.helper`. For each task the
fit from the folder and the fit from columns must choose the same candidates and give the same
scores; the largest difference is in the table. The draws are those of `experiments.sources_tasks`.
"""

from __future__ import annotations

import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
from experiments.records import asked_options, progress, write_csv
from experiments.sources import some_targets
from experiments.sources_tasks import draw, load
from onnx import TensorProto, helper, numpy_helper

from holdtrue import GreedyTLClassifier, SourcePool

RESULTS = Path(__file__).parent / "results" / "sources"
N_TARGETS, POSITIVES = 10, (2, 10)


def write_heads(folder: Path) -> list[str]:
    """Each head as a file of its own; their names."""
    heads = load("Caltech-101").heads
    names = [f"imagenet{j:03d}" for j in range(len(heads.bias))]
    row = helper.make_tensor_value_info("X", TensorProto.FLOAT, [None, heads.weights.shape[1]])
    score = helper.make_tensor_value_info("score", TensorProto.FLOAT, [None, 1])
    for name, weights, bias in zip(names, heads.weights, heads.bias, strict=True):
        constants = [
            numpy_helper.from_array(weights[:, None].astype(np.float32), "W"),
            numpy_helper.from_array(np.array([bias], dtype=np.float32), "b"),
        ]
        product = helper.make_node("Gemm", ["X", "W", "b"], ["score"])
        graph = helper.make_graph([product], name, [row], [score], constants)
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)])
        model.ir_version = 8
        (folder / f"{name}.onnx").write_bytes(model.SerializeToString())
    return names


def timed(run: Any, *arguments: Any) -> tuple[float, float, Any]:
    """Wall and CPU seconds, and what was returned."""
    wall, cpu = time.perf_counter(), time.process_time()
    value = run(*arguments)
    return time.perf_counter() - wall, time.process_time() - cpu, value


def run(seed: int) -> list[dict[str, Any]]:
    """One line for each task, and one for writing and opening the files."""
    rows: list[dict[str, Any]] = []

    def keep(stage: str, target: str, positives: int, wall: float, cpu: float, **more: Any) -> None:
        blank = {"sources_run": 0, "chosen": 0, "same_choice": "", "score_difference": ""}
        rows.append({"stage": stage, "target": target, "positives": positives, "wall_s": wall,
                     "cpu_s": cpu, **blank, **more})  # fmt: skip

    heads = load("Caltech-101").heads
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        wall, cpu, names = timed(write_heads, folder)
        keep("write", "", 0, wall, cpu)
        SourcePool.from_folder(folder).scores(np.zeros((2, heads.weights.shape[1])))  # imports
        wall, cpu, pool = timed(SourcePool.from_folder, folder)
        keep("list the folder", "", 0, wall, cpu)
        wall, cpu, count = timed(len, pool)
        keep("open the files", "", 0, wall, cpu, chosen=count)
        tasks = [(t, n) for t in some_targets("Caltech-101", N_TARGETS) for n in POSITIVES]
        for target, positives in progress(tasks, len(tasks), "ONNX heads"):
            task = draw("Caltech-101", target, 0, positives, seed)
            before = pool.n_runs
            files = GreedyTLClassifier(pool)
            wall, cpu, _ = timed(files.fit, task.X, task.y)
            run_at_fit = pool.n_runs - before
            # The same scores, as columns beside the features.
            both = [np.hstack([X, X @ heads.weights.T + heads.bias]) for X in (task.X, task.X_test)]
            at = task.X.shape[1] + np.arange(len(names))
            columns = GreedyTLClassifier(SourcePool.from_columns(at.tolist()))
            columns_wall, columns_cpu, _ = timed(columns.fit, both[0], task.y)
            name = load("Caltech-101").names[target]
            of_files = [names.index(s.split(":")[0]) if s in files.source_names_ else s
                        for s in files.selected_]  # fmt: skip
            of_columns = [int(s.removeprefix("x")) - task.X.shape[1]
                          if s in columns.source_names_ else s
                          for s in columns.selected_]  # fmt: skip
            wall_new, cpu_new, scores = timed(files.decision_function, task.X_test)
            difference = np.abs(scores - columns.decision_function(both[1])).max()
            keep("fit from files", name, positives, wall, cpu, sources_run=run_at_fit,
                 chosen=len(of_files), same_choice=int(of_files == of_columns),
                 score_difference=float(difference))  # fmt: skip
            keep("fit from columns", name, positives, columns_wall, columns_cpu,
                 chosen=len(of_columns))  # fmt: skip
            keep("predict from files", name, positives, wall_new, cpu_new, chosen=len(of_files))
    return rows


def main() -> None:
    """Run, then make every table there are CSVs for."""
    options = asked_options(__doc__, {"heads": run}, RESULTS)
    if options.parts:
        rows = run(options.seed)
        command = "python -m experiments.sources_onnx"
        packages = ("onnx", "onnxruntime")
        path = options.out / "onnx.csv"
        write_csv(path, rows, command=command, seed=options.seed, packages=packages)
    from experiments.sources_report import report

    report(options.out)
    print(f"Tables: {options.out / 'README.md'}")


if __name__ == "__main__":
    main()
