"""TableEncoder: the commands' way to read a table, for Python."""

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyarrow import feather

from holdtrue import TableEncoder
from holdtrue.tables import open_table, rows_of


@pytest.fixture
def rows():
    rng = np.random.default_rng(0)
    n = 60
    frame = pd.DataFrame(
        {
            "dose": rng.normal(50, 9, n),
            "plan": rng.choice(["free", "paid", "team"], n),
            "smoker": rng.random(n) < 0.3,
            "seen": pd.to_datetime("2024-01-01") + pd.to_timedelta(rng.integers(0, 99, n), "D"),
            "id": [f"u{i}" for i in range(n)],
        }
    )
    frame.loc[::7, "dose"] = np.nan
    frame.loc[::5, "plan"] = None
    return frame


def test_it_encodes_what_the_commands_encode(rows):
    table = open_table(rows.assign(y=np.arange(60.0)))
    expected = rows_of(table, "y")
    encoder = TableEncoder()
    np.testing.assert_array_equal(encoder.fit_transform(rows), expected.X)
    assert encoder.get_feature_names_out().tolist() == expected.feature_names
    assert encoder.columns_ == expected.columns
    again = TableEncoder.from_columns(expected.columns)
    np.testing.assert_array_equal(again.transform(rows), expected.X)


@pytest.mark.parametrize("frame", [pl.from_pandas, pa.Table.from_pandas])
def test_every_kind_of_frame_gives_the_same(rows, frame):
    expected = TableEncoder().fit(rows).transform(rows.head(9))
    encoder = TableEncoder().fit(frame(rows))
    np.testing.assert_allclose(encoder.transform(frame(rows.head(9))), expected)


def with_views(rows):
    """Text as views, as Polars writes it to Arrow files; one column as codes of views."""
    table = pa.Table.from_pandas(rows)
    codes = table["plan"].dictionary_encode()
    views = pa.dictionary(codes.type.index_type, pa.string_view())
    return table.set_column(1, "plan", codes.cast(views)).set_column(
        4, "id", table["id"].cast(pa.string_view())
    )


def test_text_in_views_is_text(rows, tmp_path):
    rows["id"] = rows["id"].str[-1]
    expected = TableEncoder().fit_transform(rows)
    try:
        table = with_views(rows)
    except pa.ArrowNotImplementedError as error:
        pytest.skip(f"pyarrow {pa.__version__} makes no views: {error}")
    np.testing.assert_allclose(TableEncoder().fit_transform(table), expected)
    feather.write_feather(table, tmp_path / "views.arrow")
    with (
        pa.OSFile(str(tmp_path / "views.arrows"), "wb") as file,
        pa.ipc.new_stream(file, table.schema) as stream,
    ):
        stream.write_table(table)
    pq.write_table(table.drop_columns("plan"), tmp_path / "views.parquet")
    for name in ("views.arrow", "views.arrows", "views.parquet"):
        frame = rows if name != "views.parquet" else rows.drop(columns="plan")
        read = rows_of(open_table(tmp_path / name), "smoker", "id")
        np.testing.assert_allclose(read.X, rows_of(open_table(frame), "smoker", "id").X)


def test_a_record_batch_is_a_table_and_a_query_is_refused(rows):
    batch = pa.RecordBatch.from_pandas(rows)
    expected = TableEncoder().fit_transform(rows)
    np.testing.assert_allclose(TableEncoder().fit_transform(batch), expected)
    query = pl.from_pandas(rows).lazy()
    with pytest.raises(ValueError, match=r"X is a query of polars that has not been run.*collect"):
        TableEncoder().fit(query)


def test_new_values_and_missing_columns_of_values_are_encoded_too(rows):
    encoder = TableEncoder(max_levels=2).fit(rows.drop(columns="id"))
    names = encoder.get_feature_names_out().tolist()
    assert names == ["dose", "plan=(missing)", "plan=free", "plan=(other)", "smoker", "seen"] or (
        "plan=(other)" in names
    )
    new = rows.drop(columns="id").head(2).assign(plan="gold", dose=None)
    X = dict(zip(names, encoder.transform(new).T, strict=True))
    assert X["plan=(other)"].tolist() == [1.0, 1.0]
    np.testing.assert_allclose(X["dose"], rows["dose"].mean())


def test_what_each_column_held_is_kept(rows):
    columns = {column.name: column for column in TableEncoder().fit(rows).columns_}
    assert {name: column.kind for name, column in columns.items()} == {
        "dose": "number",
        "plan": "text",
        "smoker": "bool",
        "seen": "date",
        "id": "text",
    }
    assert columns["dose"].low == rows["dose"].min()
    assert columns["dose"].high == rows["dose"].max()
    assert set(columns["plan"].seen) == {"free", "paid", "team", None}
    assert columns["id"].features == ()


@pytest.mark.parametrize(
    "name, values, message",
    [
        ("plan", 1.0, r"column 'plan' was text\. Got double\. Read it as text"),
        ("dose", "much", r"column 'dose' was a number\. Got .*string\. Convert it"),
    ],
)
def test_a_column_of_another_kind_is_refused(rows, name, values, message):
    encoder = TableEncoder().fit(rows)
    with pytest.raises(ValueError, match=f"^TableEncoder: {message}"):
        encoder.transform(rows.assign(**{name: values}))


def test_a_table_without_features_is_refused():
    with pytest.raises(ValueError, match=r"^TableEncoder: no column is left as a feature"):
        TableEncoder().fit(pd.DataFrame({"one": [1, 1, 1]}))
    with pytest.raises(ValueError, match="max_levels must be a whole number"):
        TableEncoder(max_levels=0).fit(pd.DataFrame({"a": [1, 2]}))
