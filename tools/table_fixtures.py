#!/usr/bin/env python3
"""Writes the Parquet and Arrow files of crates/minrnn/tests/fixtures/tables with Apache Arrow's own writers and those of Polars.

    pip install pyarrow polars
    python tools/table_fixtures.py crates/minrnn/tests/fixtures/tables

Row i of 300 has name = "series a" or "series b" by turns of 100 (a dictionary), step = i (int64), value = 0.25 i - 10 (float64),
half = i / 2 (float32), flag = i is a multiple of 3; in times.*, hour i of 2024 as ds in several units, and its date as day; times_zone.*: as ds of a zone. In decimals*, row i of 6 has
price = (i - 3) / 100, small = (i - 3) / 1000, whole = i - 3, large = (i - 3) 10^37 but none in the last row, half = i / 4.
"""

import sys
from datetime import datetime, timedelta
from decimal import Decimal
from pathlib import Path

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.feather as feather
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
# What pyarrow and pandas write by default, in several row groups.
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
pq.write_table(table.slice(0, 3), folder / "brotli.parquet", compression="brotli")

# The same table as Arrow: files, as pandas and polars write them, and a stream.
feather.write_feather(table, folder / "default.feather", compression="uncompressed", chunksize=128)
feather.write_feather(table, folder / "lz4.feather", compression="lz4")
feather.write_feather(table, folder / "zstd.feather", compression="zstd")
with pa.ipc.new_stream(folder / "stream.arrows", table.schema) as writer:
    writer.write_table(table, max_chunksize=128)
# And as Polars writes it: its files do not begin with a message and have their dictionaries at the end.
polars = pl.from_arrow(table).with_columns(pl.col("name").cast(pl.Categorical))
polars.write_ipc(folder / "polars.arrow", record_batch_size=128)
polars.write_ipc(folder / "polars_lz4.arrow", compression="lz4", record_batch_size=128)

# What databases return: exact decimals of every width, and half-precision numbers.
decimals = pa.table(
    {
        "price": pa.array([Decimal(i - 3) / 100 for i in range(6)], pa.decimal128(12, 2)),
        "small": pa.array([Decimal(i - 3) / 1000 for i in range(6)], pa.decimal128(30, 3)),
        "whole": pa.array([Decimal(i - 3) for i in range(6)], pa.decimal128(20, 0)),
        "large": pa.array([Decimal(i - 3) * 10**37 for i in range(5)] + [None], pa.decimal256(60, 2)),
        "half": pa.array(np.arange(6, dtype=np.float16) / 4),
    }
)
pq.write_table(decimals, folder / "decimals.parquet")
pq.write_table(decimals.drop_columns("half"), folder / "decimals_small.parquet", store_decimal_as_integer=True)
feather.write_feather(decimals, folder / "decimals.feather", compression="uncompressed")

hours = [datetime(2024, 1, 1) + timedelta(hours=i) for i in range(48)]
times = pa.table(
    {
        "ds": pa.array(hours, pa.timestamp("ns")),
        "us": pa.array(hours, pa.timestamp("us", tz="UTC")),
        "ms": pa.array(hours, pa.timestamp("ms")),
        "day": pa.array([hour.date() for hour in hours], pa.date32()),
        "x": pa.array([float(i % 24) for i in range(48)], pa.float64()),
    }
)
pq.write_table(times, folder / "times.parquet")
zone = times.select(["us", "x"]).rename_columns(["ds", "x"])
zone = zone.set_column(0, "ds", zone["ds"].cast(pa.timestamp("us", tz="Europe/Berlin")))
pq.write_table(zone, folder / "times_zone.parquet")
pq.write_table(times.select(["ds", "x"]), folder / "times_96.parquet", use_deprecated_int96_timestamps=True)
feather.write_feather(times, folder / "times.feather", compression="uncompressed")
