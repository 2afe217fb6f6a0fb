-- The rows of `facts.loops`. Text is an enum in NumPy's columns; no text is "".
INSERT INTO facts.loops BY NAME
SELECT * REPLACE (nullif(parent::VARCHAR, '') AS parent) FROM rows_to_insert
