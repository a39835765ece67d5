"""The user's own models in `holdtrue compare`: loaded, and given the columns they are made for."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
from sklearn.compose import ColumnTransformer
from sklearn.pipeline import Pipeline

from holdtrue.cli.ask import Data
from holdtrue.errors import InputError, MissingFileError, MissingPackageError, did_you_mean
from holdtrue.skops_files import UnfitFile, load_skops


def own_models(files: Sequence[str], field: Collection[str]) -> dict[str, Any]:
    """Models by the names of their files; ``field`` are names that are taken."""
    models: dict[str, Any] = {}
    for file in files:
        name = Path(file).stem
        if name in models:
            listed = ", ".join(files)
            raise InputError(f"models of --model must have different names. Got {listed}.")
        if name in field:
            raise InputError(f"{name!r} is a model of the field (--model). Rename {file}.")
        if not Path(file).is_file():
            raise MissingFileError(f"no file {file!r} (--model). Pass a model in a .skops file.")
        try:
            models[name] = load_skops(file)
        except UnfitFile as error:
            raise InputError(f"{file} {error}") from error
    return models


def raw_columns(name: str, model: Any, data: Data, features: Sequence[str]) -> list[str] | None:
    """Columns of the table that a model reads as they are; None: it takes the encoded numbers.

    A model that was fitted on named columns reads these. Another reads all columns if it picks some
    by name or begins with an encoder of categories. ``features`` are names of the encoded numbers.
    """
    needed = [str(each) for each in getattr(model, "feature_names_in_", ())]
    missing = [each for each in needed if not data.table.has(each)]
    if missing and set(needed) <= set(features):
        return None
    parts = [model, *model.get_params().values()] if hasattr(model, "get_params") else []
    by_name = [
        column
        for part in parts
        if isinstance(part, ColumnTransformer)
        for _, _, columns in part.transformers
        for column in ([columns] if isinstance(columns, str) else columns)
        if isinstance(column, str)
    ]
    missing = [each for each in needed or by_name if not data.table.has(each)]
    if missing:
        listed = ", ".join(f"{each!r}{did_you_mean(each, data.names)}" for each in missing)
        raise InputError(
            f"model {name!r} (--model) reads columns that {data.table.description} lacks: "
            f"{listed}. Rename the columns, or leave the model out."
        )
    if data.target in needed:
        raise InputError(f"model {name!r} (--model) was fitted on the target {data.target!r}.")
    first = model[0] if isinstance(model, Pipeline) else model
    takes_text = hasattr(first, "__sklearn_tags__") and (
        (tags := first.__sklearn_tags__().input_tags).categorical or tags.string
    )
    if needed or by_name or takes_text:
        return needed or [each for each in data.names if each in data.table.plain_names]
    return None


def raw_frame(data: Data, names: Sequence[str]) -> Any:
    """Columns of the table as a pandas frame, which scikit-learn's pipelines read by name."""
    rows = pa.Table.from_batches(data.table.batches(names))
    try:
        return rows.to_pandas()
    except ImportError as error:
        raise MissingPackageError(
            "a model that reads columns by name (--model) needs pandas. Run `pip install pandas`."
        ) from error
