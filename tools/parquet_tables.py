#!/usr/bin/env python3
"""Writes the Parquet files of crates/minrnn/tests/fixtures/tables with Apache Arrow's own writer.

    pip install pyarrow
    python tools/parquet_tables.py crates/minrnn/tests/fixtures/tables

Row i of 300 has name = "series a" or "series b" by turns of 100 (a dictionary), step = i (int64), value = 0.25 i - 10 (float64),
half = i / 2 (float32), flag = i is a multiple of 3.
"""

import sys
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

ROWS = 300
rows = range(ROWS)
table = pa.table(
    {
        "name": pa.array(["series a" if i // 100 % 2 == 0 else "series b" for i in rows]).dictionary_encode(),
        "step": pa.array(rows, pa.int64()),
        "value": pa.array([0.25 * i - 10.0 for i in rows], pa.float64()),
        "half": pa.array([i / 2 for i in rows], pa.float32()),
        "flag": pa.array([i % 3 == 0 for i in rows], pa.bool_()),
    }
)
folder = Path(sys.argv[1])
folder.mkdir(parents=True, exist_ok=True)
# What pyarrow and pandas write unless told otherwise, in several groups of rows.
pq.write_table(table, folder / "default.parquet", row_group_size=128)
pq.write_table(table, folder / "gzip_pages_2.parquet", compression="gzip", data_page_version="2.0", data_page_size=256)
pq.write_table(table, folder / "plain_lz4.parquet", compression="lz4", use_dictionary=False)
pq.write_table(
    table,
    folder / "delta.parquet",
    use_dictionary=False,
    column_encoding={
        "name": "DELTA_BYTE_ARRAY",
        "step": "DELTA_BINARY_PACKED",
        "value": "BYTE_STREAM_SPLIT",
        "half": "BYTE_STREAM_SPLIT",
        "flag": "PLAIN",
    },
)
pq.write_table(table, folder / "zstd.parquet", compression="zstd")
