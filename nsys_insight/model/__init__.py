"""The model: views over the raw relations, with one term per concept, and the catalogs that they read."""
