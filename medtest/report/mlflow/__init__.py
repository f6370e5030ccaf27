"""Content of runs in MLflow: metrics, tags and tables; :mod:`medtest.report.tracking` writes them."""
