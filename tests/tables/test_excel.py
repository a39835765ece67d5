"""Sheets of Excel files; the files are made here, cell by cell."""

import datetime as dt
import zipfile
from xml.sax.saxutils import escape

import pyarrow as pa
import pytest

from holdtrue.tables import open_table

pytest.importorskip("python_calamine")

MAIN = 'xmlns="http://schemas.openxmlformats.org/spreadsheetml/2006/main"'
OFFICE = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
PACKAGE = "http://schemas.openxmlformats.org/package/2006"


def cell(value):
    if isinstance(value, bool):
        return f'<c t="b"><v>{int(value)}</v></c>'
    if isinstance(value, dt.date):
        days = (value - dt.date(1899, 12, 30)).days
        return f'<c s="1"><v>{days}</v></c>'
    if isinstance(value, str) and value.startswith("#"):
        return f'<c t="e"><v>{value}</v></c>'
    if isinstance(value, str):
        return f'<c t="inlineStr"><is><t>{escape(value)}</t></is></c>'
    return "<c/>" if value is None else f"<c><v>{value!r}</v></c>"


def write_excel(path, **sheets):
    """Write sheets, lists of rows, as an .xlsx file."""
    numbers = range(1, len(sheets) + 1)
    listed = "".join(
        f'<sheet name="{n}" sheetId="{i}" r:id="r{i}"/>'
        for i, n in zip(numbers, sheets, strict=True)
    )
    links = "".join(
        f'<Relationship Id="r{i}" Type="{OFFICE}/worksheet" Target="worksheets/s{i}.xml"/>'
        for i in numbers
    )
    links += f'<Relationship Id="rs" Type="{OFFICE}/styles" Target="styles.xml"/>'
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as book:
        book.writestr("[Content_Types].xml", f'<Types xmlns="{PACKAGE}/content-types"/>')
        book.writestr(
            "_rels/.rels",
            f'<Relationships xmlns="{PACKAGE}/relationships"><Relationship Id="r0" '
            f'Type="{OFFICE}/officeDocument" Target="xl/workbook.xml"/></Relationships>',
        )
        book.writestr(
            "xl/workbook.xml",
            f'<workbook {MAIN} xmlns:r="{OFFICE}"><sheets>{listed}</sheets></workbook>',
        )
        book.writestr(
            "xl/_rels/workbook.xml.rels",
            f'<Relationships xmlns="{PACKAGE}/relationships">{links}</Relationships>',
        )
        book.writestr(
            "xl/styles.xml",
            f'<styleSheet {MAIN}><cellXfs><xf numFmtId="0"/><xf numFmtId="14"/></cellXfs>'
            "</styleSheet>",
        )
        for i, rows in zip(numbers, sheets.values(), strict=True):
            body = "".join(f"<row>{''.join(map(cell, row))}</row>" for row in rows)
            book.writestr(
                f"xl/worksheets/s{i}.xml",
                f"<worksheet {MAIN}><sheetData>{body}</sheetData></worksheet>",
            )


ROWS = [
    ["City", "n", "share", "day", "on", "zip", "mixed"],
    ["oslo", 3, 0.5, dt.date(2024, 1, 31), True, "00501", 7],
    ["rome, it", None, 1.25, dt.date(2024, 2, 29), False, "10001", "seven"],
    ["", 5, "#DIV/0!", None, True, None, 1.5],
]


def test_columns_of_a_sheet_are_typed_as_those_of_a_csv_file(tmp_path):
    write_excel(tmp_path / "a.xlsx", Data=[["A table of cities"], [], *ROWS], Empty=[])
    table = open_table(tmp_path / "a.xlsx")
    assert table.description == "a.xlsx (Excel)"
    assert table.types == {
        "City": pa.string(),
        "n": pa.int64(),
        "share": pa.float64(),
        "day": pa.date32(),
        "on": pa.bool_(),
        "zip": pa.string(),
        "mixed": pa.string(),
    }
    assert table.column("City").to_pylist() == ["oslo", "rome, it", None]
    assert table.column("n").to_pylist() == [3, None, 5]
    assert table.column("share").to_pylist() == [0.5, 1.25, None]
    assert table.column("day").to_pylist() == [dt.date(2024, 1, 31), dt.date(2024, 2, 29), None]
    assert table.column("zip").to_pylist() == ["00501", "10001", None]
    assert table.column("mixed").to_pylist() == ["7", "seven", "1.5"]
    typed = open_table(tmp_path / "a.xlsx", types={"n": "text"})
    assert typed.column("n").to_pylist() == ["3", None, "5"]


def test_a_sheet_is_named_where_there_are_several(tmp_path):
    write_excel(tmp_path / "a.xlsx", Notes=[["x", "y"], [1, 2]], Data=ROWS)
    with pytest.raises(ValueError, match=r"a.xlsx has 2 sheets \('Notes', 'Data'\). Pass the name"):
        open_table(tmp_path / "a.xlsx")
    assert open_table(tmp_path / "a.xlsx", table="Notes").names == ["x", "y"]
    with pytest.raises(ValueError, match=r"no sheet 'data' in a.xlsx, which .*mean 'Data'"):
        open_table(tmp_path / "a.xlsx", table="data")


def test_files_without_a_table_are_refused(tmp_path, monkeypatch):
    path = tmp_path / "a.xlsx"
    write_excel(path, Data=[])
    with pytest.raises(ValueError, match=r"a.xlsx has no rows"):
        open_table(path)
    write_excel(path, Data=[["one"], [1]])
    with pytest.raises(ValueError, match=r"at most one column in sheet 'Data'"):
        open_table(path)
    write_excel(path, Data=[["a", "b", "a"], [1, 2, 3]])
    with pytest.raises(ValueError, match=r"distinct. a.xlsx has 'a' as column 1 and column 3"):
        open_table(path)
    write_excel(path, Data=ROWS)
    content = bytearray(path.read_bytes())
    for place in range(400, 500):
        content[place] ^= 0xFF
    path.write_bytes(content)
    with pytest.raises(ValueError, match=r"a.xlsx (cannot be|is a zip file)"):
        open_table(path)
    monkeypatch.setattr("holdtrue.tables.files._MAX_UNPACKED", 1 << 16)
    write_excel(path, Data=[["a", "b"], *([["x" * 1000, 1]] * 2000)])
    with pytest.raises(ValueError, match=r"a.xlsx unpacks to more than .* Save the sheet as CSV"):
        open_table(path)


def test_an_old_excel_file_that_is_none_is_refused(tmp_path):
    (tmp_path / "a.xls").write_bytes(b"\xd0\xcf\x11\xe0 and so on")
    with pytest.raises(ValueError, match=r"a.xls cannot be read as an Excel file"):
        open_table(tmp_path / "a.xls")
