"""The model: views over the raw relations, one word per thing, and the catalogs that they read."""
