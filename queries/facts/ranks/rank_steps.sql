INSERT INTO facts.rank_steps BY NAME FROM new_rows
