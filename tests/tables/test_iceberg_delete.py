"""A defect of Iceberg's that README warns of; when this fails, it is mended, and the warning and the chaos model's
`careful` can go."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from conftest import Place
    from pyspark.sql import SparkSession


@pytest.mark.parametrize("mode", ["merge-on-read", "copy-on-write"])
def test_iceberg_s_own_delete_takes_null_for_unequal_where_it_drops_whole_files(
    spark: SparkSession, place: Place, mode: str
) -> None:
    """No layout of ours is in this table. The bounds of a file exclude the value: all of its rows count as unequal."""
    name = f"{place.iceberg}.unequal"

    def left(condition: str) -> list[int]:
        spark.sql(
            f"CREATE OR REPLACE TABLE {name} (id BIGINT, s STRING) USING iceberg "
            f"TBLPROPERTIES ('write.delete.mode' = '{mode}')"
        )
        spark.sql(f"INSERT INTO {name} SELECT id, if(id = 0, NULL, 'b') FROM range(0, 2, 1, 1)")
        spark.sql(f"INSERT INTO {name} VALUES (2, 'a')")
        spark.sql(f"DELETE FROM {name} WHERE {condition}")
        return sorted(row.id for row in spark.table(name).collect())

    assert left("s <> 'a'") == left("s <> 'a' OR id = 9") == [2]  # 0 is gone: NULL <> 'a' is not TRUE
    assert left("s IS NOT NULL AND s <> 'a'") == left("(s IS NOT NULL AND s <> 'a') OR id = 9") == [0, 2]
