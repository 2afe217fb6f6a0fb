"""A trace in another form: a DuckDB file, a folder of Parquet files, a timeline for Perfetto."""
