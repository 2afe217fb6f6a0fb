"""From a file that nsys wrote to raw relations in DuckDB: what it is, its export, the cache, the scope."""
