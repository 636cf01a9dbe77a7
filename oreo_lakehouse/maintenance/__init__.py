"""One run over one table: observe, decide, plan, stage, verify, commit, record.

The door: `maintain.maintain`, `rollback.rollback`, `status.status`, `intake.import_queries`. What is kept between runs
is opened by `dossier.open_dossier`: state, ledger, intents, history.
"""
