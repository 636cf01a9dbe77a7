r"""An Airflow DAG: every night, after compaction, repair what it undid of the layout, then decide about new queries.

Copy it into the DAGs folder. `oreo-maintain` must be on the PATH of the worker; OREO_HOME is the folder where it runs,
with an oreo.toml if there are settings, and OREO_TABLES what it maintains: names, patterns, paths.

Airflow's own test runner runs it once, without a scheduler; in this folder, with `oreo-maintain` on the PATH:

    export AIRFLOW_HOME=$(mktemp -d) AIRFLOW__CORE__DAGS_FOLDER=$PWD AIRFLOW__CORE__LOAD_EXAMPLES=False
    uv run --no-project --with 'apache-airflow==3.*' sh -c \
        "airflow db migrate && airflow dags reserialize && airflow dags test oreo_maintain"
"""

from __future__ import annotations

import os
from datetime import UTC, datetime, timedelta

from airflow.providers.standard.operators.bash import BashOperator
from airflow.sdk import DAG

TABLES = os.environ.get("OREO_TABLES", "analytics.orders 'analytics.events_*'")

with DAG(
    "oreo_maintain",
    description="Lay tables out for the queries they get now",
    schedule="0 3 * * *",
    start_date=datetime(2026, 1, 1, tzinfo=UTC),
    catchup=False,
    max_active_runs=1,
) as dag:
    # Your own compaction goes first, as any task of yours: compact >> maintain.
    maintain = BashOperator(
        task_id="maintain",
        bash_command=f"oreo-maintain {TABLES} --after-optimize --budget 200GB --max-minutes 120 --cooldown 6h --json",
        cwd=os.environ.get("OREO_HOME", "/opt/oreo"),
        # 1: somebody else was faster, 3: not known yet. Both are settled by running it again.
        retries=2,
        retry_delay=timedelta(minutes=15),
    )
