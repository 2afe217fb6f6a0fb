"""Convert a trace to another form: a DuckDB file, a folder of Parquet files, a timeline for Perfetto."""
