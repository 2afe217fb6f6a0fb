-- The rows of `facts.loops`. Text is an enum in NumPy's columns; "" stands for NULL.
INSERT INTO facts.loops BY NAME
SELECT * REPLACE (nullif(parent::VARCHAR, '') AS parent) FROM rows_to_insert
