-- The rows of `facts.loop_iterations`.
INSERT INTO facts.loop_iterations BY NAME FROM rows_to_insert
