"""Files of records with a seal, as runs write them."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from medtest.runner.records.seals import CONTENT, seal_of
from medtest.runner.records.shards import DIGEST, PRIMARY, WRITTEN


def write_sealed(table: pa.Table, path: Path) -> None:
    """Write records with the seal of their content."""
    metadata = table.schema.metadata or {}
    seal = seal_of([table], *(metadata.get(key, b"").decode() for key in (DIGEST, PRIMARY, WRITTEN)))
    pq.write_table(table.replace_schema_metadata({**metadata, CONTENT: seal}), path, write_page_checksum=True)
